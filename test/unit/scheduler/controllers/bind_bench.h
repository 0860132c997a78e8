// A Binder on a real engine, a scripted API server and hand-moved timers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/controllers/binder.h"
#include "scheduler/host/clocks.h"
#include "scheduler/host/host.h"
#include "scheduler/host/timers.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/allocation_json.h"

namespace tranche {

class ManualTimers : public Timers {
 public:
  Clock::time_point Now() const override { return now_; }
  void After(std::chrono::milliseconds delay, std::function<void()> call) override {
    calls_.emplace(now_ + delay, std::move(call));
  }
  void Advance(std::chrono::milliseconds step) {
    const Clock::time_point end = now_ + step;
    while (!calls_.empty() && calls_.begin()->first <= end) {
      now_ = calls_.begin()->first;
      const std::function<void()> call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      call();
    }
    now_ = end;
  }

 private:
  Clock::time_point now_{std::chrono::hours(1)};
  std::multimap<Clock::time_point, std::function<void()>> calls_;
};

// An API server that keeps one pod per name and goes wrong as told, one entry per call.
class ScriptedApi : public PodWrites, public NodeWrites {
 public:
  enum class Outcome {
    kFine,
    kLostBefore,
    kLostAfter,
    kNotSent,
    kRefused,
    kWrittenButRefused,
    kHeld
  };

  std::deque<Outcome> writes;  // empty: all fine
  int failing_lookups = 0;     // < 0: all
  std::map<PodName, PodFacts> pods;
  std::vector<BindingWrite> posts;
  int lookups = 0;
  std::map<NodeName, std::string> locks;  // empty: free
  Millis lock_age{0};                     // of every lock of others
  bool failing_locks = false;
  std::vector<PodAnnotationWrite> annotated;
  std::vector<PodCreation> created;
  bool creations_fail = false;
  std::vector<PodName> deleted;
  std::vector<std::function<void(WriteResult)>> held;

  void Bind(BindingWrite write, std::function<void(WriteResult)> done) override {
    posts.push_back(write);
    const Outcome how = writes.empty() ? Outcome::kFine : writes.front();
    if (!writes.empty()) writes.pop_front();
    switch (how) {
      case Outcome::kFine:
        done(Store(write) ? WriteResult{WriteResult::Kind::kDone, 201, ""}
                          : WriteResult{WriteResult::Kind::kRejected, 409, "conflict"});
        return;
      case Outcome::kLostBefore:
        done({WriteResult::Kind::kUnknown, 0, "connection reset"});
        return;
      case Outcome::kLostAfter:
        Store(write);
        done({WriteResult::Kind::kUnknown, 504, "timeout"});
        return;
      case Outcome::kNotSent:
        done({WriteResult::Kind::kNotSent, 0, "connection refused"});
        return;
      case Outcome::kWrittenButRefused:
        Store(write);
        done({WriteResult::Kind::kRejected, 409, "already bound"});
        return;
      case Outcome::kRefused:
        done({WriteResult::Kind::kRejected, 403, "denied"});
        return;
      case Outcome::kHeld:
        held.push_back(std::move(done));
        return;
    }
  }

  void Requeue(PodName, PodUid, Instant, std::function<void(WriteResult)> done) override {
    done({WriteResult::Kind::kDone, 200, ""});
  }
  // One lock for each node, taken over as the API's contract says.
  void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override {
    if (failing_locks) return done({NodeLockResult::Kind::kFailed, "", "forbidden"});
    std::string& lock = locks[write.node];
    const bool stale = write.stale_after && *write.stale_after <= lock_age;
    if (!lock.empty() && lock != write.value && !stale) {
      return done({NodeLockResult::Kind::kHeld, lock, ""});
    }
    lock = write.value;
    done({NodeLockResult::Kind::kDone, write.value, ""});
  }
  void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override {
    if (locks[write.node] == write.value) locks[write.node].clear();
    done({NodeLockResult::Kind::kDone, "", ""});
  }
  void RemoveGate(GateWrite, std::function<void(WriteResult)> done) override {
    done({WriteResult::Kind::kDone, 200, ""});
  }
  void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) override {
    annotated.push_back(std::move(write));
    done({WriteResult::Kind::kDone, 200, ""});
  }
  void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) override {
    created.push_back(std::move(creation));
    done(creations_fail ? WriteResult{WriteResult::Kind::kRejected, 403, "denied"}
                        : WriteResult{WriteResult::Kind::kDone, 201, ""});
  }
  void DeletePod(PodName pod, PodUid, std::function<void(WriteResult)> done) override {
    deleted.push_back(std::move(pod));
    done({WriteResult::Kind::kDone, 200, ""});
  }
  void LabelNode(NodeLabelWrite, std::function<void(WriteResult)> done) override {
    done({WriteResult::Kind::kDone, 200, ""});
  }
  void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) override {
    ++lookups;
    if (failing_lookups != 0) {
      if (failing_lookups > 0) --failing_lookups;
      done({PodLookup::Kind::kFailed, std::nullopt, "timeout"});
      return;
    }
    const auto found = pods.find(pod);
    if (found == pods.end() || (!uid.empty() && found->second.request.uid != uid)) {
      done({PodLookup::Kind::kMissing, std::nullopt, ""});
    } else {
      done({PodLookup::Kind::kFound, found->second, ""});
    }
  }

 private:
  // What an API server does with a Binding. False: precondition failed.
  bool Store(const BindingWrite& write) {
    const auto found = pods.find(write.pod);
    if (found == pods.end() || found->second.request.uid != write.uid ||
        !found->second.node.empty()) {
      return false;
    }
    found->second.node = write.node;
    const auto record = write.annotations.find(std::string(wire::kAllocationKey));
    if (record != write.annotations.end()) {
      absl::StatusOr<Allocation> allocation = wire::DecodeAllocation(record->second);
      EXPECT_TRUE(allocation.ok()) << record->second;
      found->second.allocation = *std::move(allocation);
    }
    return true;
  }
};

inline PodFacts PodFrom(const std::string& json) {
  wire::Parser parser;
  absl::StatusOr<wire::Element> document = parser.Parse(json);
  EXPECT_TRUE(document.ok()) << json;
  absl::StatusOr<PodFacts> pod = wire::DecodePod(*document);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return *std::move(pod);
}

// A pod with a limit of `gpus` cards; 0: none.
inline PodFacts GpuPod(const std::string& name, const std::string& uid, int gpus) {
  const std::string limits =
      gpus == 0 ? "{}" : R"({"nvidia.com/gpu":")" + std::to_string(gpus) + R"("})";
  return PodFrom(R"({"metadata":{"name":")" + name + R"(","namespace":"team-a","uid":")" + uid +
                 R"("},"spec":{"containers":[{"name":"main","resources":{"limits":)" + limits +
                 "}}]}}");
}

inline NodeFacts GpuNode(const std::string& name) {
  wire::Parser parser;
  const std::string json =
      R"({"metadata":{"name":")" + name +
      R"(","labels":{"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3",)"
      R"("nvidia.com/gpu.memory":"81559",)"
      R"("nvidia.com/gpu.count":"2"}},"status":{"allocatable":{"nvidia.com/gpu":"2"},)"
      R"("capacity":{"nvidia.com/gpu":"2"},"conditions":[{"type":"Ready","status":"True"}]}})";
  absl::StatusOr<wire::Element> document = parser.Parse(json);
  EXPECT_TRUE(document.ok());
  absl::StatusOr<NodeFacts> node = wire::DecodeNode(*document);
  EXPECT_TRUE(node.ok()) << node.status();
  return *std::move(node);
}

// Two nodes of two GPUs, and the pod team-a/train with uid u1 that wants one.
class BindBench : public testing::Test {
 protected:
  using Outcome = ScriptedApi::Outcome;

  BindBench() {
    host.engine.Connect({.agents = binder.AgentSink()});
    host.cluster.Receive(NodeChanged{GpuNode("gpu-1")});
    host.cluster.Receive(NodeChanged{GpuNode("gpu-2")});
    host.cluster.Receive(Synced());
    Create(GpuPod("train", "u1", 1));
  }

  // The pod is in the API server and the watch has told of it.
  void Create(const PodFacts& pod) {
    api.pods[pod.request.name] = pod;
    host.cluster.Receive(PodChanged{pod});
  }
  // Answers come into `answers` in the order they are given.
  void Bind(const std::string& node, const std::string& uid = "u1",
            const std::string& name = "train") {
    binder.Bind({"team-a", name}, PodUid(uid), NodeName(node),
                [this](BindAnswer answer) { answers.push_back(std::move(answer)); });
  }
  PodFacts& Stored(const std::string& name = "train") { return api.pods.at({"team-a", name}); }
  int64_t Reservations() {
    return host.engine.With([](Engine& engine, Instant) { return engine.Totals().reservations; });
  }
  int Alarms() const {
    const std::string page = metrics.Render({});
    const std::string name = "\ntranche_bind_alarms_total ";
    return std::stoi(page.substr(page.find(name) + name.size()));
  }
  int64_t BoundPods() {
    return host.engine.With([](Engine& engine, Instant) { return engine.Totals().pods_bound; });
  }
  std::vector<std::string> Faults() {
    return host.engine.With([](Engine& engine, Instant) { return engine.Audit(); });
  }
  // "ok" or the error of the only answer; "none" or "many" otherwise.
  std::string Answer() const {
    if (answers.empty()) return "none";
    if (answers.size() > 1) return "many";
    return answers[0].error.empty() ? "ok" : answers[0].error;
  }
  void TearDown() override { EXPECT_EQ(Faults(), std::vector<std::string>{}); }

  ManualClock clock{Instant(std::chrono::hours(24 * 365 * 56))};
  metrics::Metrics metrics;
  Host host{HostOptions{}, clock};
  ScriptedApi api;
  ManualTimers timers;
  Binder binder{host, api, api, timers, metrics};
  std::vector<BindAnswer> answers;
};

}  // namespace tranche
