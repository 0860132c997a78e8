#include "bench/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/ledger/committed.h"
#include "scheduler/cli/replay/recorded_work.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "topology/base/status.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Instant kStart{Millis{1'767'225'600'000}};  // 2026-01-01
constexpr int kTeams = 20;
constexpr int kGpusPerNode = 8;
constexpr int kSizes[] = {1, 1, 1, 1, 1, 1, 2, 2, 4, 8};
constexpr double kMeanSize = 2.2;
constexpr std::size_t kAtOnce = 512;  // as a recorder hands over

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

class Maker {
 public:
  explicit Maker(const ReplayBenchOptions& options) : options_(options), random_(options.seed) {}

  std::vector<PastChange> Objects() {
    std::vector<PastChange> changes;
    const auto says = [&changes](const char* kind, const std::string& name, std::string object) {
      changes.push_back({kStart, kind, name, std::move(object)});
    };
    for (int i = 0; i < options_.nodes; ++i) {
      const std::string name = fmt::format("gpu-node-{:05}", i);
      says("Node", name,
           fmt::format(
               R"({{"metadata":{{"name":"{0}","labels":{{"kubernetes.io/hostname":"{0}",)"
               R"("nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.count":"{1}",)"
               R"("nvidia.com/gpu.memory":"81559"}}}},"status":{{)"
               R"("allocatable":{{"nvidia.com/gpu":"{1}"}},)"
               R"("capacity":{{"nvidia.com/gpu":"{1}"}}}}}})",
               name, kGpusPerNode));
    }
    says("GPUQuota", "org", R"({"metadata":{"name":"org"},"spec":{}})");
    says("GPUClass", "train",
         R"({"metadata":{"name":"train"},"spec":{"priorityClassNames":["train"],"rank":2}})");
    says("PriorityClass", "train", R"({"metadata":{"name":"train"},"value":10})");
    for (int team = 0; team < kTeams; ++team) {
      const std::string name = fmt::format("team-{}", team);
      says("Namespace", name, fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
      says("GPUQuota", name,
           fmt::format(R"({{"metadata":{{"name":"{0}"}},"spec":{{"parent":"org",)"
                       R"("namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":)"
                       R"("{0}"}}}},"lines":[{{"model":"h100","nominal":{{"gpus":{1}}}}}]}}}})",
                       name, options_.nodes * kGpusPerNode / kTeams));
    }
    return changes;
  }

  // In the order in which they come.
  std::vector<PastPod> Pods() {
    const auto span = std::chrono::hours(24 * options_.days);
    const double hours = options_.fill * options_.nodes * kGpusPerNode * 24.0 * options_.days /
                         (options_.pods * kMeanSize);
    std::exponential_distribution<double> runtime(1.0 / hours);
    std::vector<PastPod> pods;
    for (int i = 0; i < options_.pods; ++i) {
      PastPod& pod = pods.emplace_back();
      pod.uid = PodUid(fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", random_() >> 32,
                                   random_() & 0xffff, random_() & 0xfff, random_() & 0xfff,
                                   random_() & 0xffffffffffff));
      const auto team = random_() % kTeams;
      pod.name = {fmt::format("team-{}", team),
                  fmt::format("job-{}-{:05x}", i, random_() & 0xfffff)};
      pod.owner = fmt::format("{:032x}", random_());
      pod.created = kStart + span * i / options_.pods;
      const int gpus = kSizes[random_() % std::size(kSizes)];
      pod.object = fmt::format(
          R"({{"metadata":{{"name":"pod","ownerReferences":[{{"kind":"Job","controller":true}}],)"
          R"("labels":{{"app":"train","batch.kubernetes.io/job-name":"job-{}"}}}},"spec":{{)"
          R"("containers":[{{"name":"main","resources":{{"limits":{{"cpu":"16","memory":"128Gi",)"
          R"("nvidia.com/gpu":"{}"}}}}}}],"priority":10,"priorityClassName":"train"}}}})",
          i / 4, gpus);
      pod.node = NodeName(fmt::format("gpu-node-{:05}", random_() % options_.nodes));
      pod.started = *pod.created + std::chrono::seconds(3);
      const double seconds = std::clamp(runtime(random_) * 3600, 60.0, 7.0 * 24 * 3600);
      pod.ended = *pod.started + std::chrono::seconds(static_cast<int64_t>(seconds));
      pod.how = PastEnd::kByItself;
      pod.devices = fmt::format(
          R"({{"v":1,"epoch":1,"leaf":"team-{}","knowledge":"counts","containers":[{{"name":)"
          R"("main","devices":[{{"index":null,"slot":{},"uuid":null,"milli":1000,"mib":81559,)"
          R"("mig":null}}]}}]}})",
          team, random_() % kGpusPerNode);
    }
    return pods;
  }

 private:
  const ReplayBenchOptions& options_;
  std::mt19937_64 random_;
};

struct Measured {
  double write_seconds = 0;
  int64_t bytes = 0;  // of the file
  double read_seconds = 0;
  double floor_seconds = 0;
  double live_seconds = 0;
  PastSums sums;
  int64_t waiting = 0;
};

absl::Status Tell(Ledger& ledger, const std::vector<PastPod>& pods) {
  const auto hand_over = [&](PastNews& news) {
    ledger.NotePast(std::exchange(news, {}));
    return Committed(ledger) ? absl::OkStatus() : absl::UnavailableError(ledger.health().problem);
  };
  enum class Part { kCame, kStarted, kEnded };
  for (const Part part : {Part::kCame, Part::kStarted, Part::kEnded}) {
    PastNews news;
    for (const PastPod& whole : pods) {
      PastPod pod;
      pod.uid = whole.uid;
      if (part == Part::kCame) {
        pod.name = whole.name;
        pod.owner = whole.owner;
        pod.created = whole.created;
        pod.object = whole.object;
      } else if (part == Part::kStarted) {
        pod.node = whole.node;
        pod.started = whole.started;
        pod.devices = whole.devices;
      } else {
        pod.ended = whole.ended;
        pod.how = whole.how;
      }
      news.at = *whole.created;
      news.pods.push_back(std::move(pod));
      if (news.pods.size() < kAtOnce) continue;
      TRANCHE_RETURN_IF_ERROR(hand_over(news));
    }
    TRANCHE_RETURN_IF_ERROR(hand_over(news));
  }
  return absl::OkStatus();
}

absl::Status Write(const ReplayBenchOptions& options, const ledger::Options& file, Instant until,
                   Measured& measured) {
  auto opened = ledger::SqliteLedger::Open(file);
  if (!opened.ok()) return opened.status();
  ledger::SqliteLedger& ledger = **opened;
  Maker maker(options);
  PastNews objects{kStart, {}, maker.Objects(), PastNews::Rest()};
  for (const PastChange& change : objects.changes) {
    objects.rest->objects.emplace_back(change.kind, change.name);
  }
  std::ranges::sort(objects.rest->objects);
  ledger.NotePast(std::move(objects));
  if (!Committed(ledger)) return absl::UnavailableError(ledger.health().problem);
  const std::vector<PastPod> pods = maker.Pods();
  const auto start = SteadyClock::now();
  TRANCHE_RETURN_IF_ERROR(Tell(ledger, pods));
  measured.write_seconds = SecondsSince(start);
  ledger.Heartbeat(until, {});
  ledger.Close();
  measured.bytes = static_cast<int64_t>(std::filesystem::file_size(file.path));
  return absl::OkStatus();
}

absl::Status Live(const ledger::Options& file, Instant until, Measured& measured) {
  auto start = SteadyClock::now();
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(file.path));
  TRANCHE_ASSIGN_OR_RETURN(const ledger::RecordedPast recorded, reader.Past(kStart, until));
  replay::WorkQuery query;
  query.from = kStart;
  query.until = until;
  TRANCHE_ASSIGN_OR_RETURN(const replay::RecordedWork work, replay::MakeWork(recorded, query));
  measured.read_seconds = SecondsSince(start);
  start = SteadyClock::now();
  SumOf(work.happened, kStart, until);
  measured.floor_seconds = SecondsSince(start);
  start = SteadyClock::now();
  const LivedPast lived = LiveAgain(work.past);
  measured.live_seconds = SecondsSince(start);
  measured.sums = SumOf(lived, kStart, until);
  for (const WorkLife& life : lived.lives) measured.waiting += life.runs.empty() ? 1 : 0;
  return absl::OkStatus();
}

void Print(const ReplayBenchOptions& options, const Measured& measured) {
  const double pods = options.pods;
  const double bytes = static_cast<double>(measured.bytes) / pods;
  const double used =
      static_cast<double>(measured.sums.held) / static_cast<double>(measured.sums.offered);
  fmt::print(
      "nodes {}  pods {}  days {}  file {:.0f} MiB, {:.0f} bytes a pod  written {:.0f} pods/s\n"
      "read {:.2f} s  lived {:.2f} s, {:.0f} pods/s, {:.0f} times as fast as it happened\n"
      "used {:.1f} %  evictions {}  never started {}\n",
      options.nodes, options.pods, options.days, static_cast<double>(measured.bytes) / (1 << 20),
      bytes, pods / measured.write_seconds, measured.read_seconds, measured.live_seconds,
      pods / measured.live_seconds, options.days * 86'400.0 / measured.live_seconds, used * 100,
      measured.sums.evictions, measured.waiting);
  if (options.out.empty()) return;
  std::ofstream(options.out) << fmt::format(
      R"({{"benchmark":"replay","runs":[{{"policy":"tranche","seeds":[{}],"nodes":{},"pods":{},)"
      R"("days":{},"bytesPerPod":{:.0f},"readSeconds":{:.3f},"floorSeconds":{:.4f},)"
      R"("liveSeconds":{:.3f},"used":{:.4f},"evictions":{},"neverStarted":{}}}]}})"
      "\n",
      options.seed, options.nodes, options.pods, options.days, bytes, measured.read_seconds,
      measured.floor_seconds, measured.live_seconds, used, measured.sums.evictions,
      measured.waiting);
}

}  // namespace

absl::Status RunReplay(const ReplayBenchOptions& options) {
  std::error_code ignored;
  const std::filesystem::path folder =
      (options.folder.empty() ? std::filesystem::temp_directory_path()
                              : std::filesystem::path(options.folder)) /
      "tranche-bench-replay";
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::create_directories(folder, ignored);
  ledger::Options file;
  file.path = (folder / "ledger.db").string();
  file.now = kStart;
  file.past_kept = Millis(0);
  const Instant until = kStart + std::chrono::hours(24 * options.days);
  Measured measured;
  absl::Status status = Write(options, file, until, measured);
  if (status.ok()) status = Live(file, until, measured);
  if (status.ok()) Print(options, measured);
  if (!options.keep) std::filesystem::remove_all(folder, ignored);
  return status;
}

}  // namespace tranche::bench
