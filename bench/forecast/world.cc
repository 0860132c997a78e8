#include "bench/forecast/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/rehearsal.h"
#include "scheduler/foresight/track_record.h"

namespace tranche::bench::forecast {
namespace {

constexpr std::size_t kRecent = 100;       // starts the baseline looks at
constexpr std::size_t kMostForetold = 40;  // jobs at a time, evenly among those that wait
constexpr int64_t kHour = 3'600;

Instant At(int64_t seconds) { return Instant(std::chrono::seconds(1'700'000'000 + seconds)); }
int64_t SecondsOf(Instant at) {
  return std::chrono::duration_cast<std::chrono::seconds>(at - At(0)).count();
}

std::string UidOf(std::size_t job, int pod) { return fmt::format("job-{:06}-{}", job, pod); }

// A job of more GPUs than a node has is a gang of pods.
std::vector<PodCopy> PodsOf(const World& world, std::size_t job) {
  const Job& spec = world.trace.jobs[job];
  const int pods = (spec.gpus + kGpusPerNode - 1) / kGpusPerNode;
  std::vector<PodCopy> copies;
  int left = spec.gpus;
  for (int i = 0; i < pods; ++i) {
    const int gpus = std::min(left, kGpusPerNode);
    left -= gpus;
    PodCopy& copy = copies.emplace_back();
    PodRequest& request = copy.facts.request;
    request = WholeGpus(PodUid(UidOf(job, i)),
                        {world.trace.tenants[static_cast<std::size_t>(spec.tenant)].name,
                         pods == 1 ? spec.name : fmt::format("{}-{}", spec.name, i)},
                        gpus);
    if (pods > 1) {
      request.gang = spec.name;
      request.gang_size = pods;
    }
    if (world.declared) request.expected_runtime = std::chrono::seconds(spec.duration);
    copy.facts.owner = "owner-of-" + spec.name;
  }
  return copies;
}

// Every tenant has its own nodes' GPUs and borrows nothing.
std::shared_ptr<const PolicySet> QuotasOf(const Trace& trace) {
  auto set = std::make_shared<PolicySet>();
  for (const Tenant& tenant : trace.tenants) {
    GpuQuota& quota = set->quotas.emplace_back();
    quota.name = tenant.name;
    LabelSelector own;
    own.match_expressions.push_back(
        {"kubernetes.io/metadata.name", SelectorTerm::Operator::kIn, {tenant.name}});
    quota.namespaces = std::move(own);
    QuotaLine line;
    line.model = "any";
    line.nominal.gpus = MilliGpu::Of(int64_t{1000} * kGpusPerNode * tenant.nodes);
    line.borrow_limit = QuotaAmount();
    quota.lines.push_back(std::move(line));
  }
  std::ranges::sort(set->quotas, {}, &GpuQuota::name);
  set->FindOwners();
  return set;
}

int64_t MedianOf(std::deque<int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

int64_t MeanOf(const std::deque<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<int64_t>(values.size());
}

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  uint64_t Of(uint64_t most) { return random_() % most; }
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0; }
  double Normal() {
    const double first = Uniform();
    return std::sqrt(-2 * std::log(first)) * std::cos(2 * 3.14159265358979 * Uniform());
  }

 private:
  std::mt19937_64 random_;
};

class Life {
 public:
  Life(const World& world, int most_rehearsals)
      : world_(world), most_rehearsals_(most_rehearsals), engine_(Options()) {
    engine_.SetPolicies(QuotasOf(world.trace), GpuPolicy(), At(0));
    for (int i = 0; i < world.trace.nodes(); ++i) engine_.UpsertNode(NodeOf(i), At(0));
    engine_.FinishRestore(At(0));
    engine_.effects() = {};
    RehearsalRules rules;
    rules.end_of = [this](const PodCopy& pod) -> std::optional<Instant> {
      const std::size_t job = std::stoul(pod.facts.request.uid.str().substr(4, 6));
      return *pod.facts.running_at + std::chrono::seconds(world_.trace.jobs[job].duration);
    };
    rules.most_tries = 100'000'000;
    rules.most_moments = 100'000'000;
    truth_ = std::make_unique<Rehearsal>(engine_, Copy(At(0)), std::move(rules));
    for (std::size_t i = 0; i < world.trace.jobs.size(); ++i) {
      for (PodCopy& pod : PodsOf(world, i)) {
        truth_->Arrive(std::move(pod), At(world.trace.jobs[i].submit), Rehearsal::Arrival::kTold);
      }
    }
  }

  std::vector<Foretold> Run(int64_t every) {
    const int64_t last = world_.trace.jobs.back().submit;
    for (int64_t now = every + world_.quiet;
         now <= last + every + world_.quiet || !watched_.empty(); now += every) {
      truth_->Run(At(now));
      Learn(now);
      Ask(now);
    }
    truth_->Run(At(last + 365 * 24 * kHour));
    std::erase_if(foretold_, [this](Foretold& one) { return !Judge(one); });
    return std::move(foretold_);
  }

 private:
  static EngineOptions Options() {
    EngineOptions options;
    options.name_seed = 0x9e3779b97f4a7c15;
    options.tentative_lifetime = Millis(0);
    return options;
  }
  ClusterCopy Copy(Instant at) {
    ReplicaWalk walk;
    while (!walk.done()) engine_.CopySlice(walk, at);
    return walk.Take();
  }
  std::optional<int64_t> StartOf(std::size_t job) const {
    const auto start = truth_->starts().find(PodUid(UidOf(job, 0)));
    if (start == truth_->starts().end()) return std::nullopt;
    return SecondsOf(start->second);
  }

  RunKind KindOf(const Job& job) const {
    return RunKindOf({world_.trace.tenants[static_cast<std::size_t>(job.tenant)].name, job.name},
                     "", MilliGpu::Of(int64_t{1000} * std::min(job.gpus, kGpusPerNode)));
  }

  void Learn(int64_t now) {
    for (const std::size_t job : watched_) {
      const std::optional<int64_t> start = StartOf(job);
      if (start) record_.NoteStart(PodUid(UidOf(job, 0)), At(*start));
    }
    std::vector<std::pair<int64_t, std::size_t>> starts;
    for (std::size_t i = 0; i < world_.trace.jobs.size(); ++i) {
      const Job& job = world_.trace.jobs[i];
      if (job.submit > now) break;
      const std::optional<int64_t> start = StartOf(i);
      if (!start) continue;
      if (began_.insert(i).second) {
        waits_.push_back(*start - job.submit);
        starts.emplace_back(*start, i);
      }
      if (waits_.size() > kRecent) waits_.pop_front();
      if (*start + job.duration > now || !ended_.insert(i).second) continue;
      runtimes_.Add(KindOf(job), {std::chrono::seconds(job.duration), true});
      Work& work = work_[job.tenant];
      work.seconds += job.duration;
      work.gpu_seconds += job.duration * job.gpus;
      ++work.jobs;
    }
    std::ranges::sort(starts);
    for (const auto& [at, job] : starts) {
      runtimes_.NoteBegun(KindOf(world_.trace.jobs[job]), At(at),
                          At(world_.trace.jobs[job].submit));
    }
  }

  void Ask(int64_t now) {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < world_.trace.jobs.size(); ++i) {
      if (world_.trace.jobs[i].submit <= now && !StartOf(i)) waiting.push_back(i);
    }
    watched_ = waiting;
    if (waiting.empty()) return;
    tranche::ForecastRules rules;
    rules.most_rehearsals = most_rehearsals_;
    Forecasts forecasts = Foretell(Copy(At(now)), runtimes_, rules);
    const Forecasts said = forecasts;
    record_.Move(forecasts);
    const int64_t median = MedianOf(waits_);
    const int64_t mean = MeanOf(waits_);
    std::map<int, int64_t> position;  // by tenant
    std::map<std::size_t, int64_t> position_of;
    for (const std::size_t job : waiting) {
      position_of[job] = ++position[world_.trace.jobs[job].tenant];
    }
    const std::size_t step = (waiting.size() + kMostForetold - 1) / kMostForetold;
    for (std::size_t at = 0; at < waiting.size(); at += step) {
      const std::size_t job = waiting[at];
      const PodName name = PodsOf(world_, job).front().facts.request.name;
      const auto forecast = forecasts.pods.find(name);
      if (forecast == forecasts.pods.end()) continue;
      Foretold& one = foretold_.emplace_back();
      one.job = job;
      one.asked = now;
      const Job& spec = world_.trace.jobs[job];
      one.thumbs.median = std::max(spec.submit + median, now);
      one.thumbs.mean = std::max(spec.submit + mean, now);
      const Work& work = work_[spec.tenant];
      const int64_t ended = std::max<int64_t>(work.jobs, 1);
      const auto& tenant = world_.trace.tenants[static_cast<std::size_t>(spec.tenant)];
      one.thumbs.position = now + position_of[job] * (work.seconds / ended);
      one.thumbs.position_by_gpus =
          now + position_of[job] * (work.gpu_seconds / ended / (tenant.nodes * kGpusPerNode));
      told_.emplace_back(said.pods.at(name), forecast->second);
      one.given = forecast->second.p50.has_value();
    }
  }

  // False: it never started.
  bool Judge(Foretold& one) {
    const auto& [said, told] = told_[static_cast<std::size_t>(judged_++)];
    const std::optional<int64_t> start = StartOf(one.job);
    if (!start) return false;
    one.start = *start;
    if (told.p50) one.p50 = SecondsOf(*told.p50);
    one.covered = Covers(told, one.start);
    one.covered_before = Covers(said, one.start);
    if (told.p10 && told.p90) one.width = SecondsOf(*told.p90) - SecondsOf(*told.p10);
    return true;
  }
  static bool Covers(const Forecast& told, int64_t start) {
    return told.p10 && SecondsOf(*told.p10) <= start &&
           (!told.p90 || start <= SecondsOf(*told.p90) + 1);
  }

  const World& world_;
  const int most_rehearsals_;
  Engine engine_;
  std::unique_ptr<Rehearsal> truth_;
  Runtimes runtimes_;
  std::set<std::size_t> began_, ended_;
  std::deque<int64_t> waits_;
  std::vector<Foretold> foretold_;
  TrackRecord record_;
  std::vector<std::size_t> watched_;  // waited when that was looked at last
  struct Work {
    int64_t seconds = 0;
    int64_t gpu_seconds = 0;
    int64_t jobs = 0;
  };
  std::map<int, Work> work_;  // by tenant, of what ended
  // As rehearsals said and as it was shown; parallel to what foretold_ was before it was judged.
  std::vector<std::pair<Forecast, Forecast>> told_;
  int64_t judged_ = 0;
};

}  // namespace

NodeFacts NodeOf(int number) {
  NodeFacts node;
  node.name = NodeName(fmt::format("node-{:04}", number));
  node.uid = NodeUid(fmt::format("uid-{}", number));
  node.product = "Tesla-V100-SXM2-32GB";
  node.memory = Mebibytes::Of(32'510);
  node.count = kGpusPerNode;
  node.replicas = 1;
  node.gpu = ResourceCount{kGpusPerNode, kGpusPerNode};
  return node;
}

PodRequest WholeGpus(PodUid uid, PodName name, int gpus) {
  PodRequest request;
  request.uid = std::move(uid);
  request.name = std::move(name);
  request.style = RequestStyle::kNative;
  request.containers.push_back({"main", ContainerRole::kApp, gpus});
  Ask ask;
  ask.resource = Resource::kGpu;
  ask.count = gpus;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu", gpus});
  return request;
}

World Synthetic(uint64_t seed, int jobs, bool declared, bool at_once) {
  World world;
  world.declared = declared;
  if (at_once) world.quiet = 24 * kHour;
  Chance chance(seed);
  for (const char* const name : {"vision", "language", "speech", "search"}) {
    world.trace.tenants.push_back({name, 4});
  }
  struct Kind {
    const char* name;
    int gpus;
    double mean_hours;
  };
  constexpr Kind kKinds[] = {{"debug", 1, 0.3}, {"sweep", 1, 4}, {"train", 8, 9}, {"tune", 2, 3}};
  double at = 0;
  const double capacity = world.trace.nodes() * kGpusPerNode;
  for (int i = 0; i < jobs; ++i) {
    const Kind& kind = kKinds[chance.Of(4)];
    Job job;
    job.name = fmt::format("{}-{}", kind.name, i);
    job.tenant = static_cast<int>(chance.Of(4));
    job.gpus = kind.gpus;
    // Log-normal, a factor of about two either way.
    const double seconds = kind.mean_hours * kHour * std::exp(0.7 * chance.Normal());
    job.duration = std::max<int64_t>(60, static_cast<int64_t>(seconds));
    job.submit = static_cast<int64_t>(at);
    const double work = kind.gpus * kind.mean_hours * kHour * 1.28;
    if (!at_once) at += -std::log(chance.Uniform()) * work / (capacity * 1.02);
    world.trace.jobs.push_back(std::move(job));
  }
  return world;
}

World Uneven(uint64_t seed, int jobs) {
  World world;
  Chance chance(seed);
  constexpr int kNodes[] = {8, 4, 2, 2};
  for (const int nodes : kNodes) {
    world.trace.tenants.push_back({fmt::format("vc{}", world.trace.tenants.size()), nodes});
  }
  struct Size {
    int gpus;
    double chance;
  };
  constexpr Size kSizes[] = {{16, 0.06}, {8, 0.12}, {4, 0.11}, {2, 0.11}, {1, 1}};
  constexpr double kMedian = 206, kMost = 7 * 24 * kHour, kSpread = 2.2, kWithin = 1;
  // Of one GPU; the mean of what is drawn below, without its cut.
  const double mean = kMedian * std::exp((kSpread * kSpread + kWithin * kWithin) / 2);
  double at = 0;
  for (int i = 0; i < jobs;) {
    const int tenant = std::array{0, 0, 0, 0, 1, 1, 2, 3}[chance.Of(8)];
    const double nodes = kNodes[tenant];
    const double drawn = chance.Uniform();
    const Size* size = kSizes;
    while (size->chance < 1 && drawn >= size->chance) ++size;
    const double median = kMedian * std::exp(kSpread * chance.Normal());
    const int alike = static_cast<int>(1 - std::log(chance.Uniform()) * 3);
    double work = 0;
    for (int k = 0; k < alike && i < jobs; ++k, ++i) {
      Job job;
      job.name = fmt::format("job{:06}", i);
      job.tenant = tenant;
      job.gpus = std::min<int>(size->gpus, static_cast<int>(nodes) * kGpusPerNode);
      const double seconds = std::min(median * std::exp(kWithin * chance.Normal()), kMost);
      job.duration = std::max<int64_t>(10, static_cast<int64_t>(seconds));
      job.submit = static_cast<int64_t>(at) + k;
      work += job.gpus * mean;
      world.trace.jobs.push_back(std::move(job));
    }
    const double hour = std::fmod(at / kHour, 24);
    const double busy = hour >= 8 && hour < 20 ? 1.5 : 0.5;
    at += -std::log(chance.Uniform()) * work / (world.trace.nodes() * kGpusPerNode * busy * 1.3) +
          alike;
  }
  std::ranges::stable_sort(world.trace.jobs, {}, &Job::submit);
  return world;
}

std::vector<Foretold> Live(const World& world, int64_t every_seconds, int most_rehearsals) {
  return Life(world, most_rehearsals).Run(every_seconds);
}

}  // namespace tranche::bench::forecast
