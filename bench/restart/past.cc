#include "bench/restart/past.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/ledger/committed.h"
#include "scheduler/ledger/sqlite_ledger.h"

namespace tranche::bench {
namespace {

constexpr int kTeams = 20;
constexpr const char* kModels[] = {"h200", "a100", "l4"};
constexpr const char* kClasses[] = {"inference-prod", "training", "notebook", "scavenger"};
constexpr Millis kSpan = std::chrono::hours(24 * 31);
constexpr Millis kLongest = std::chrono::hours(4);
constexpr std::size_t kGroup = 2'000;  // events a commit

std::string TeamOf(uint64_t number) { return fmt::format("research-team-{:02}", number); }

// What a pod of so many GPUs says, as it is kept for whoever lives the past again.
std::string ObjectOf(const MeterEvent& event) {
  constexpr const char* kPod =
      R"({{"metadata":{{"name":"job","namespace":"{}"}},"spec":{{"priorityClassName":"{}",)"
      R"("containers":[{{"name":"main","resources":{{"limits":{{"cpu":"8",)"
      R"("nvidia.com/gpu":"{}"}}}}}}]}}}})";
  return fmt::format(kPod, event.pod.ns, event.workload_class,
                     event.parts.at(0).charge.compute / kQuantaPerGpu);
}

// What is kept of what happens to it.
PastPod PastOf(const MeterEvent& event) {
  PastPod pod;
  pod.uid = event.uid;
  pod.name = event.pod;
  if (event.kind == MeterKind::kOpen) {
    pod.created = event.at;
    pod.object = ObjectOf(event);
  }
  pod.node = event.node;
  if (event.kind == MeterKind::kRunning) pod.started = event.at;
  if (event.kind == MeterKind::kClose) pod.ended = event.at;
  pod.how = pod.ended ? PastEnd::kByItself : PastEnd::kNot;
  return pod;
}

// Pods in the order things happen to them.
class Pods {
 public:
  Pods(const PastOptions& options, Instant start, Instant end)
      : random_(options.seed),
        left_(options.ended),
        now_(start),
        step_((end - kLongest - start) / std::max<int64_t>(1, options.ended)) {}

  bool Done() const { return left_ == 0 && later_.empty(); }
  MeterEvent Next() {
    if (left_ > 0 && (later_.empty() || later_.top().at > now_)) {
      --left_;
      MeterEvent open = Open();
      now_ += step_;
      return open;
    }
    MeterEvent event = later_.top();
    later_.pop();
    return event;
  }

 private:
  struct Later {
    bool operator()(const MeterEvent& left, const MeterEvent& right) const {
      return left.at > right.at;
    }
  };

  MeterEvent Open() {
    MeterEvent event;
    event.at = now_;
    event.uid = PodUid(fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", random_() >> 32,
                                   random_() & 0xffff, random_() & 0xfff, random_() & 0xfff,
                                   random_() & 0xffffffffffff));
    const uint64_t team = random_() % kTeams;
    event.leaf = TeamOf(team);
    event.pod = {event.leaf, fmt::format("job-{}", left_)};
    event.node = NodeName(fmt::format("gpu-node-{}", random_() % 125));
    event.workload_class = kClasses[random_() % std::size(kClasses)];
    const int64_t gpus = random_() % 8 == 0 ? 4 : 1;
    event.parts = {
        {kModels[team % std::size(kModels)], {gpus * kQuantaPerGpu, gpus * kQuantaPerGpu}}};
    event.devices =
        fmt::format(R"([{{"name":"main","devices":[{{"index":{},"uuid":"GPU-{:016x}","milli":1000,)"
                    R"("mib":143771}}]}}])",
                    random_() % 8, random_());
    const Millis length{60'000 + static_cast<int64_t>(random_() % (kLongest.count() - 60'000))};
    MeterEvent running = event;
    running.kind = MeterKind::kRunning;
    running.at += Millis(3'000);
    running.parts.clear();
    running.devices.clear();
    later_.push(std::move(running));
    MeterEvent close = event;
    close.kind = MeterKind::kClose;
    close.at += length;
    close.devices.clear();
    later_.push(std::move(close));
    return event;
  }

  std::mt19937_64 random_;
  int64_t left_;
  Instant now_;
  Millis step_;
  std::priority_queue<MeterEvent, std::vector<MeterEvent>, Later> later_;
};

constexpr const char* kHead = R"({"apiVersion":"tranche.dev/v1alpha1","kind":)";

std::string Budget(const std::string& name, const std::string& quota, const std::string& window) {
  return fmt::format(R"({}"GPUBudget","metadata":{{"name":"{}","uid":"budget-{}"}},"spec":{{)"
                     R"("quotaRef":"{}","gpuHours":"100000000","window":{{{}}},)"
                     R"("onExhaustion":"Warn"}}}})",
                     kHead, name, name, quota, window);
}

}  // namespace

absl::Status WritePastLedger(const PastOptions& options, const std::string& path) {
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  ledger::Options file;
  file.path = path;
  file.now = now - kSpan;
  file.group_size = kGroup;
  const absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>> ledger =
      ledger::SqliteLedger::Open(file);
  if (!ledger.ok()) return ledger.status();
  Pods pods(options, now - kSpan, now);
  while (!pods.Done()) {
    // Far below the queue's limit; the writer always has the next group waiting.
    for (int i = 0; i < 10 && !pods.Done(); ++i) {
      std::vector<MeterEvent> group;
      PastNews past;
      while (group.size() < kGroup && !pods.Done()) {
        group.push_back(pods.Next());
        past.pods.push_back(PastOf(group.back()));
        past.at = group.back().at;
      }
      (*ledger)->Append(std::move(group), {});
      (*ledger)->NotePast(std::move(past));
    }
    if (!Committed(**ledger)) return absl::UnavailableError((*ledger)->health().problem);
  }
  PastNews all;
  all.at = now;
  all.rest.emplace();
  (*ledger)->NotePast(std::move(all));
  (*ledger)->Heartbeat(now, {});
  (*ledger)->Close();
  return absl::OkStatus();
}

absl::Status WritePastOwners(const std::string& path) {
  std::ofstream file(path);
  file << R"({"apiVersion":"v1","kind":"List","items":[)"
       << fmt::format(R"({}"GPUQuota","metadata":{{"name":"research"}},"spec":{{"lines":[)"
                      R"({{"model":"any","nominal":{{"gpus":"1000"}}}}]}}}})",
                      kHead);
  for (int team = 0; team < kTeams; ++team) {
    const std::string name = TeamOf(static_cast<uint64_t>(team));
    file << fmt::format(R"(,{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{0}",)"
                        R"("labels":{{"kubernetes.io/metadata.name":"{0}"}}}}}},)",
                        name)
         << fmt::format(R"({0}"GPUQuota","metadata":{{"name":"{1}"}},"spec":{{"parent":"research",)"
                        R"("namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":)"
                        R"("{1}"}}}},"lines":[{{"model":"any","nominal":{{"gpus":"50"}}}}]}}}},)",
                        kHead, name)
         << Budget(name + "-month", name, R"("type":"Month")") << ','
         << Budget(name + "-rolling", name, R"("type":"Rolling","duration":"744h")");
  }
  file << ',' << Budget("research-rolling", "research", R"("type":"Rolling","duration":"744h")")
       << "]}";
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError("expected to write " + path);
}

}  // namespace tranche::bench
