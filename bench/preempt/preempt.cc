#include "bench/preempt/preempt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "bench/preempt/crowd.h"
#include "bench/report/report.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;
using Result = PlanOutcome::Result;

// Between two waiting pods, beyond any pause the planner takes after a miss.
constexpr std::chrono::seconds kStep{30};

// The engine saw its crowd start so long ago: nobody is guarded as new any more.
constexpr std::chrono::hours kSettled{1};

constexpr const char* kResults[] = {"plan", "fits", "impossible", "blocked", "unresolved"};

struct Sample {
  std::size_t kind = 0;
  Result result = Result::kImpossible;
  bool optimal = false;
  int64_t evaluations = 0;
  double micros = 0;
};

struct Measured {
  std::vector<Sample> samples;
  std::vector<double> floor;  // us
  double ready_seconds = 0;
};

int64_t ResidentMib() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE) / (1 << 20);
}

class Questions {
 public:
  Questions(const Profile& profile, Crowd& crowd, Measured& measured)
      : profile_(profile), crowd_(crowd), measured_(measured), now_(crowd.start() + kSettled) {}

  void Ask(std::size_t turn) {
    now_ += kStep;
    Engine& engine = crowd_.engine();
    engine.Tick(now_);
    Replace(turn);
    const std::size_t kinds = profile_.waiting.size();
    const std::size_t kind = turn % kinds;
    const ProfilePod& waiting = profile_.waiting[kind];
    PodFacts pod;
    pod.request =
        RequestFor(fmt::format("wait-{}", turn), TeamOf(waiting.team, turn / kinds), waiting.milli);
    pod.unschedulable = true;
    pod.created = now_;
    engine.UpsertPod(pod, now_);
    engine.Filter(pod.request, crowd_.node_names(), now_, answer_);
    for (;;) {
      const auto begin = SteadyClock::now();
      const std::optional<PlanOutcome> outcome = engine.PlanNext(now_);
      const double micros = Micros(SteadyClock::now() - begin).count();
      if (!outcome) break;
      measured_.samples.push_back(
          {kind, outcome->result, outcome->optimal, outcome->evaluations, micros});
    }
    engine.DeletePod(pod.request.uid, now_);
    Drain();
    Floor();
  }

 private:
  // The teams of a kind take turns.
  int TeamOf(const std::string& kind, std::size_t turn) const {
    std::vector<int> teams;
    for (int team = 0; team < profile_.teams; ++team) {
      if (profile_.KindOf(team).name == kind) teams.push_back(team);
    }
    return teams[turn % teams.size()];
  }

  void Replace(std::size_t turn) {
    const PodFacts& pod = crowd_.running()[turn * 7 % crowd_.running().size()];
    crowd_.engine().DeletePod(pod.request.uid, now_);
    crowd_.engine().UpsertPod(pod, now_);
  }

  void Drain() { crowd_.engine().effects() = {}; }

  // Looking at every holding once: no planner that starts afresh can do with less.
  void Floor() {
    const auto begin = SteadyClock::now();
    const volatile int64_t sum = crowd_.engine().SumHeldQuanta().compute;
    measured_.floor.push_back(Micros(SteadyClock::now() - begin).count());
    static_cast<void>(sum);
  }

  const Profile& profile_;
  Crowd& crowd_;
  Measured& measured_;
  Instant now_;
  FilterAnswer answer_;
};

absl::Status Measure(const PreemptOptions& options, const Profile& profile, Measured& measured) {
  std::fprintf(stderr, "filling %d nodes with %d pods\n", profile.nodes, profile.pods);
  const auto begin = SteadyClock::now();
  absl::StatusOr<std::unique_ptr<Crowd>> crowd = Crowd::Make(profile, options.seed);
  if (!crowd.ok()) return crowd.status();
  measured.ready_seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  std::fprintf(stderr, "planning for %d s\n", options.seconds);
  Questions questions(profile, **crowd, measured);
  const bool shows = isatty(STDERR_FILENO) != 0;
  const auto until = SteadyClock::now() + std::chrono::seconds(options.seconds);
  auto shown = SteadyClock::now();
  const auto turns = static_cast<std::size_t>(options.turns);
  const auto more = [&](std::size_t turn) {
    if (turns > 0) return turn < turns;
    return turn < profile.waiting.size() || SteadyClock::now() < until;
  };
  for (std::size_t turn = 0; more(turn); ++turn) {
    questions.Ask(turn);
    if (!shows || SteadyClock::now() - shown < std::chrono::milliseconds(200)) continue;
    shown = SteadyClock::now();
    std::fprintf(stderr, "\r%zu plans", measured.samples.size());
  }
  if (shows) std::fprintf(stderr, "\r\x1b[K");
  return absl::OkStatus();
}

struct Row {
  std::string name;
  std::vector<double> micros;
  int64_t optimal = 0;
  int64_t evaluations = 0;
};

struct Summary {
  Row plans{"plan", {}}, negatives{"impossible", {}};
  std::vector<Row> by_kind;  // kind and result
  double total_micros = 0;
};

void Add(Row& row, const Sample& sample) {
  row.micros.push_back(sample.micros);
  row.optimal += sample.optimal;
  row.evaluations += sample.evaluations;
}

Summary Summarise(const Profile& profile, const Measured& measured) {
  Summary summary;
  std::map<std::pair<std::size_t, Result>, Row> rows;
  for (const Sample& sample : measured.samples) {
    summary.total_micros += sample.micros;
    if (sample.result == Result::kPlan) Add(summary.plans, sample);
    if (sample.result == Result::kImpossible || sample.result == Result::kBlocked) {
      Add(summary.negatives, sample);
    }
    Add(rows[{sample.kind, sample.result}], sample);
  }
  for (auto& [key, row] : rows) {
    row.name = fmt::format("{}: {}", profile.waiting[key.first].name,
                           kResults[static_cast<std::size_t>(key.second)]);
    summary.by_kind.push_back(std::move(row));
  }
  return summary;
}

void PrintRow(const Row& row) {
  const auto count = static_cast<double>(std::max<std::size_t>(row.micros.size(), 1));
  std::printf("%-28s %8zu %9.1f %9.1f %9.1f %9.1f %7.0f%% %8.1f\n", row.name.c_str(),
              row.micros.size(), Quantile(row.micros, 0.5), Quantile(row.micros, 0.99),
              Quantile(row.micros, 0.999), Quantile(row.micros, 1.0),
              100.0 * static_cast<double>(row.optimal) / count,
              static_cast<double>(row.evaluations) / count);
}

void Print(const Profile& profile, const Measured& measured, const Summary& summary,
           int64_t resident_mib) {
  std::printf("preempt: %d nodes x %d GPUs, full, %d pods of %d teams; ready after %.1f s\n\n",
              profile.nodes, profile.gpus_per_node, profile.pods, profile.teams,
              measured.ready_seconds);
  std::printf("%-28s %8s %9s %9s %9s %9s %8s %8s\n", "PlanNext, us", "asked", "p50", "p99", "p99.9",
              "max", "optimal", "fits");
  PrintRow(summary.plans);
  PrintRow(summary.negatives);
  for (const Row& row : summary.by_kind) PrintRow(row);
  PrintRow({"floor: every holding once", measured.floor});
  std::printf("\n%.0f decisions/s, RSS %lld MiB\n",
              static_cast<double>(measured.samples.size()) * 1e6 / summary.total_micros,
              static_cast<long long>(resident_mib));
}

std::string ToJson(const PreemptOptions& options, const Profile& profile, const Measured& measured,
                   const Summary& summary, int64_t resident_mib) {
  const auto run = [&](std::string_view policy, const std::vector<double>& micros, double rate,
                       const std::string& more) {
    return fmt::format(
        R"({{"policy":"{}","seeds":[{}],"nodes":{},"gpusPerNode":{},"pods":{},"p50Us":{:.1f},)"
        R"("p99Us":{:.1f},"p999Us":{:.1f},"decisionsPerSecond":{:.0f},"rssMiB":{}{}}})",
        policy, options.seed, profile.nodes, profile.gpus_per_node, profile.pods,
        Quantile(micros, 0.5), Quantile(micros, 0.99), Quantile(micros, 0.999), rate, resident_mib,
        more);
  };
  double floor_micros = 0;
  for (const double micros : measured.floor) floor_micros += micros;
  const std::string negatives = fmt::format(
      R"(,"plans":{},"optimal":{},"fits":{},"negatives":{},"negativeP50Us":{:.1f},)"
      R"("negativeP99Us":{:.1f},"negativeP999Us":{:.1f})",
      summary.plans.micros.size(), summary.plans.optimal, summary.plans.evaluations,
      summary.negatives.micros.size(), Quantile(summary.negatives.micros, 0.5),
      Quantile(summary.negatives.micros, 0.99), Quantile(summary.negatives.micros, 0.999));
  return fmt::format(
      R"({{"benchmark":"preempt","runs":[{},{}]}})",
      run("planner", summary.plans.micros,
          static_cast<double>(measured.samples.size()) * 1e6 / summary.total_micros, negatives),
      run("floor", measured.floor, static_cast<double>(measured.floor.size()) * 1e6 / floor_micros,
          ""));
}

}  // namespace

absl::Status RunPreempt(const PreemptOptions& options) {
  const absl::StatusOr<Profile> profile = ReadProfile(options.profile);
  if (!profile.ok()) return profile.status();
  for (const ProfilePod& pod : profile->waiting) {
    if (std::ranges::find(profile->kinds, pod.team, &ProfileTeam::name) != profile->kinds.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        fmt::format("{}: expected each waiting pod of a kind of team, found {}",
                    options.profile.file, pod.name));
  }
  Measured measured;
  if (absl::Status status = Measure(options, *profile, measured); !status.ok()) return status;
  if (measured.samples.empty()) {
    return absl::InternalError("expected the planner to be asked, it never was");
  }
  const int64_t resident_mib = ResidentMib();
  const Summary summary = Summarise(*profile, measured);
  Print(*profile, measured, summary, resident_mib);
  return WriteReport(ToJson(options, *profile, measured, summary, resident_mib), options.out);
}

}  // namespace tranche::bench
