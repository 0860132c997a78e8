#include "bench/forecast/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/rehearsal.h"

namespace tranche::bench::forecast {
namespace {

constexpr std::size_t kRecent = 100;       // starts the baseline looks at
constexpr std::size_t kMostForetold = 40;  // jobs at a time, evenly among those that wait
constexpr int64_t kHour = 3'600;

Instant At(int64_t seconds) { return Instant(std::chrono::seconds(1'700'000'000 + seconds)); }
int64_t SecondsOf(Instant at) {
  return std::chrono::duration_cast<std::chrono::seconds>(at - At(0)).count();
}

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
    request.uid = PodUid(UidOf(job, i));
    request.name = {world.trace.tenants[static_cast<std::size_t>(spec.tenant)].name,
                    pods == 1 ? spec.name : fmt::format("{}-{}", spec.name, i)};
    request.style = RequestStyle::kNative;
    request.containers.push_back({"main", ContainerRole::kApp, gpus});
    Ask ask;
    ask.resource = Resource::kGpu;
    ask.count = gpus;
    request.asks.push_back(ask);
    request.pool_needs.push_back({"nvidia.com/gpu", gpus});
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
    for (int64_t now = every; now <= last; now += every) {
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
    }
    std::ranges::sort(starts);
    for (const auto& [at, job] : starts) {
      runtimes_.NoteBegun(KindOf(world_.trace.jobs[job]), At(at));
    }
  }

  void Ask(int64_t now) {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < world_.trace.jobs.size(); ++i) {
      if (world_.trace.jobs[i].submit <= now && !StartOf(i)) waiting.push_back(i);
    }
    if (waiting.empty()) return;
    tranche::ForecastRules rules;
    rules.most_rehearsals = most_rehearsals_;
    const Forecasts forecasts = Foretell(Copy(At(now)), runtimes_, rules);
    const int64_t wait = MedianOf(waits_);
    const std::size_t step = (waiting.size() + kMostForetold - 1) / kMostForetold;
    for (std::size_t at = 0; at < waiting.size(); at += step) {
      const std::size_t job = waiting[at];
      const PodName name = PodsOf(world_, job).front().facts.request.name;
      const auto forecast = forecasts.pods.find(name);
      if (forecast == forecasts.pods.end()) continue;
      Foretold& one = foretold_.emplace_back();
      one.job = job;
      one.asked = now;
      one.baseline = std::max(world_.trace.jobs[job].submit + wait, now);
      told_.push_back(forecast->second);
      one.given = forecast->second.p50.has_value();
    }
  }

  // False: it never started.
  bool Judge(Foretold& one) {
    const Forecast& told = told_[static_cast<std::size_t>(judged_++)];
    const std::optional<int64_t> start = StartOf(one.job);
    if (!start) return false;
    one.start = *start;
    if (told.p50) one.p50 = SecondsOf(*told.p50);
    one.covered = told.p10 && SecondsOf(*told.p10) <= one.start &&
                  (!told.p90 || one.start <= SecondsOf(*told.p90) + 1);
    return true;
  }

  const World& world_;
  const int most_rehearsals_;
  Engine engine_;
  std::unique_ptr<Rehearsal> truth_;
  Runtimes runtimes_;
  std::set<std::size_t> began_, ended_;
  std::deque<int64_t> waits_;
  std::vector<Foretold> foretold_;
  std::vector<Forecast> told_;  // parallel to what foretold_ was before it was judged
  int64_t judged_ = 0;
};

}  // namespace

World Synthetic(uint64_t seed, int jobs, bool declared) {
  World world;
  world.declared = declared;
  std::mt19937_64 random(seed);
  const auto uniform = [&random] {
    return (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
  };
  for (const char* const name : {"vision", "language", "speech", "search"}) {
    world.trace.tenants.push_back({name, 4});
  }
  struct Kind {
    const char* name;
    int gpus;
    double mean_hours;
  };
  constexpr Kind kKinds[] = {{"debug", 1, 0.3}, {"sweep", 1, 4}, {"train", 8, 9}, {"tune", 2, 3}};
  double work = 0, at = 0;
  const double capacity = world.trace.nodes() * kGpusPerNode;
  for (int i = 0; i < jobs; ++i) {
    const Kind& kind = kKinds[random() % 4];
    Job job;
    job.name = fmt::format("{}-{}", kind.name, i);
    job.tenant = static_cast<int>(random() % 4);
    job.gpus = kind.gpus;
    // Log-normal, a factor of about two either way.
    const double normal =
        std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979 * uniform());
    const double seconds = kind.mean_hours * 3'600 * std::exp(0.7 * normal);
    job.duration = std::max<int64_t>(60, static_cast<int64_t>(seconds));
    job.submit = static_cast<int64_t>(at);
    work = kind.gpus * kind.mean_hours * 3'600 * 1.28;
    at += -std::log(uniform()) * work / (capacity * 1.02);
    world.trace.jobs.push_back(std::move(job));
  }
  return world;
}

std::vector<Foretold> Live(const World& world, int64_t every_seconds, int most_rehearsals) {
  return Life(world, most_rehearsals).Run(every_seconds);
}

}  // namespace tranche::bench::forecast
