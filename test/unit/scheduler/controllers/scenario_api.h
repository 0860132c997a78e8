// The cluster a scenario plays in, as Tranche writes to it and hears of it: a network that delays
// and loses, pods and nodes of the fake cluster as JSON.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "scheduler/ports/node_writes.h"
#include "scheduler/ports/pod_writes.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "test/fakes/agents/fake_cluster.h"

namespace tranche {

inline Instant ScenarioStart() { return Instant(std::chrono::hours(24 * 365 * 56)); }

// Requests and events on their way, in virtual milliseconds.
class Network {
 public:
  explicit Network(uint64_t seed) : random_(seed) {}
  int64_t now() const { return now_; }
  void Send(int64_t delay, std::function<void()> what) {
    calls_.emplace(now_ + delay, std::move(what));
  }
  // Events of a watch overtake each other as little as lines of one stream do.
  void SendEvent(std::function<void()> what) {
    constexpr int64_t kMostDelay = 20;
    last_event_ = std::max(last_event_, now_ + Random(kMostDelay));
    calls_.emplace(last_event_, std::move(what));
  }
  void AdvanceTo(int64_t now) {
    while (!calls_.empty() && calls_.begin()->first <= now) {
      now_ = calls_.begin()->first;
      const std::function<void()> call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      call();
    }
    now_ = now;
  }
  int64_t Random(int64_t most) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1));
  }

 private:
  std::mt19937_64 random_;
  int64_t now_ = 0;
  int64_t last_event_ = 0;
  std::multimap<int64_t, std::function<void()>> calls_;
};

// ---- objects ------------------------------------------------------------------------------------

inline nlohmann::json ContainerJson(const fakes::FakeContainer& container) {
  nlohmann::json object = {{"name", container.name}, {"resources", {{"limits", container.limits}}}};
  for (const auto& [variable, annotation] : container.env_from) {
    const std::string path = "metadata.annotations['" + annotation + "']";
    object["env"].push_back(
        {{"name", variable}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  }
  return object;
}

// A pod as it is posted to an API server.
inline fakes::FakePod PodOf(const nlohmann::json& object) {
  fakes::FakePod pod;
  pod.name = object.at("metadata").at("name");
  pod.ns = object.at("metadata").at("namespace");
  pod.uid = "uid-" + pod.name;
  pod.annotations = object.at("metadata").at("annotations").get<fakes::Text>();
  pod.labels = object.at("metadata").at("labels").get<fakes::Text>();
  const nlohmann::json& spec = object.at("spec");
  pod.node = spec.at("nodeName");
  pod.service_account = spec.at("serviceAccountName");
  pod.lasts = true;
  for (const char* list : {"initContainers", "containers"}) {
    for (const nlohmann::json& container : spec.at(list)) {
      pod.containers.push_back({container.at("name"), list == std::string("initContainers"),
                                container.at("resources").at("limits").get<fakes::Text>()});
    }
  }
  return pod;
}

inline std::string TimeText(int64_t ms) { return wire::FormatTime(ScenarioStart() + Millis(ms)); }

inline std::string PodJson(const fakes::FakePod& pod) {
  nlohmann::json object = {
      {"metadata",
       {{"name", pod.name},
        {"namespace", pod.ns},
        {"uid", pod.uid},
        {"annotations", pod.annotations},
        {"labels", pod.labels},
        {"creationTimestamp", TimeText(pod.created_ms)}}},
      {"spec", {{"containers", nlohmann::json::array()}}},
      {"status", {{"phase", fakes::PhaseName(pod.phase)}, {"reason", pod.reason}}}};
  if (!pod.node.empty()) {
    object["spec"]["nodeName"] = pod.node;
    object["status"]["conditions"] = nlohmann::json::array();
    object["status"]["conditions"].push_back({{"type", "PodScheduled"},
                                              {"status", "True"},
                                              {"lastTransitionTime", TimeText(pod.bound_ms)}});
  }
  if (pod.deleting) object["metadata"]["deletionTimestamp"] = TimeText(pod.bound_ms);
  for (const fakes::FakeContainer& container : pod.containers) {
    object["spec"][container.init ? "initContainers" : "containers"].push_back(
        ContainerJson(container));
  }
  if (!pod.service_account.empty()) object["spec"]["serviceAccountName"] = pod.service_account;
  if (!pod.told.empty()) {
    object["status"]["initContainerStatuses"].push_back(
        {{"name", pod.containers.front().name},
         {"state", {{"terminated", {{"exitCode", 0}, {"message", pod.told}}}}}});
  }
  return object.dump();
}

inline std::string NodeJson(const fakes::FakeNode& node) {
  std::map<std::string, std::string> amounts;
  for (const auto& [resource, amount] : node.capacity) amounts[resource] = std::to_string(amount);
  nlohmann::json object = {
      {"metadata",
       {{"name", node.name},
        {"uid", "node-" + node.name},
        {"annotations", node.annotations},
        {"labels", node.labels}}},
      {"status",
       {{"allocatable", amounts}, {"capacity", amounts}, {"conditions", nlohmann::json::array()}}}};
  object["status"]["conditions"].push_back({{"type", "Ready"}, {"status", "True"}});
  return object.dump();
}

inline PodFacts FactsOf(const fakes::FakePod& pod) {
  wire::Parser parser;
  const std::string text = PodJson(pod);
  const absl::StatusOr<wire::Element> document = parser.Parse(text);
  EXPECT_TRUE(document.ok()) << text;
  absl::StatusOr<PodFacts> facts = wire::DecodePod(*document);
  EXPECT_TRUE(facts.ok()) << facts.status() << text;
  EXPECT_FALSE(facts->request.refusal) << facts->request.refusal->detail;
  EXPECT_EQ(facts->allocation_problem, "");
  return *std::move(facts);
}

inline NodeFacts FactsOf(const fakes::FakeNode& node) {
  wire::Parser parser;
  const std::string text = NodeJson(node);
  const absl::StatusOr<wire::Element> document = parser.Parse(text);
  EXPECT_TRUE(document.ok()) << text;
  absl::StatusOr<NodeFacts> facts = wire::DecodeNode(*document);
  EXPECT_TRUE(facts.ok()) << facts.status() << text;
  EXPECT_EQ(facts->problems, std::vector<std::string>{}) << text;
  return *std::move(facts);
}

// ---- writes -------------------------------------------------------------------------------------

// What Tranche writes, as the fake cluster takes it. Answers that come after the end of the process
// that asked are dropped.
class ScenarioApi : public PodWrites, public NodeWrites {
 public:
  ScenarioApi(fakes::FakePods& pods, Network& network, bool losses)
      : pods_(pods), network_(network), losses_(losses) {}
  void Kill() { *alive_ = false; }

  void Bind(BindingWrite write, std::function<void(WriteResult)> done) override {
    Ask<WriteResult>(
        [this, write = std::move(write)] {
          const int code = pods_.Bind(write.pod.ns, write.pod.name, write.uid.str(),
                                      write.node.str(), write.annotations);
          return code == 201 ? WriteResult{WriteResult::Kind::kDone, code, ""}
                             : WriteResult{WriteResult::Kind::kRejected, code, "refused"};
        },
        std::move(done), {WriteResult::Kind::kUnknown, 0, "timeout"});
  }
  void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) override {
    Ask<PodLookup>(
        [this, pod = std::move(pod), uid = std::move(uid)] {
          const std::optional<fakes::FakePod> found = pods_.PodNamed(pod.ns, pod.name);
          if (!found || (!uid.empty() && found->uid != uid.str())) {
            return PodLookup{PodLookup::Kind::kMissing, std::nullopt, ""};
          }
          return PodLookup{PodLookup::Kind::kFound, FactsOf(*found), ""};
        },
        std::move(done), {PodLookup::Kind::kFailed, std::nullopt, "timeout"});
  }
  void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override {
    Ask<NodeLockResult>([this, write = std::move(write)] { return TryLock(write); },
                        std::move(done), {NodeLockResult::Kind::kFailed, "", "timeout"});
  }
  void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override {
    Ask<NodeLockResult>(
        [this, write = std::move(write)] {
          const std::optional<fakes::FakeNode> node = pods_.Node(write.node.str());
          if (node && node->Note(write.key) == write.value) {
            pods_.PatchNode(node->name, {{write.key, std::nullopt}}, node->version);
          }
          return NodeLockResult{NodeLockResult::Kind::kDone, "", ""};
        },
        std::move(done), {NodeLockResult::Kind::kFailed, "", "timeout"});
  }
  void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) override {
    Ask<WriteResult>(
        [this, write = std::move(write)] {
          fakes::TextPatch patch;
          for (const auto& [key, value] : write.annotations) patch[key] = value;
          const int code = pods_.PatchAnnotations(write.uid.str(), patch);
          return code == 200 ? WriteResult{WriteResult::Kind::kDone, code, ""}
                             : WriteResult{WriteResult::Kind::kRejected, code, "no such pod"};
        },
        std::move(done), {WriteResult::Kind::kUnknown, 0, "timeout"});
  }

  void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) override {
    Ask<WriteResult>(
        [this, creation = std::move(creation)] {
          pods_.AddPod(PodOf(nlohmann::json::parse(creation.json)));
          return WriteResult{WriteResult::Kind::kDone, 201, ""};
        },
        std::move(done), {WriteResult::Kind::kUnknown, 0, "timeout"});
  }
  void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) override {
    Ask<WriteResult>(
        [this, pod = std::move(pod), uid = std::move(uid)] {
          const std::optional<fakes::FakePod> found = pods_.PodNamed(pod.ns, pod.name);
          if (found && (uid.empty() || found->uid == uid.str())) {
            // What has ended is nobody's on the node any more.
            found->ended() ? pods_.Delete(found->uid) : pods_.MarkDeleting(found->uid);
          }
          return WriteResult{WriteResult::Kind::kDone, 200, ""};
        },
        std::move(done), {WriteResult::Kind::kUnknown, 0, "timeout"});
  }

  // Nothing here rests on these.
  void Requeue(PodName, PodUid, Instant, std::function<void(WriteResult)> done) override {
    Fine(done);
  }
  void RemoveGate(GateWrite, std::function<void(WriteResult)> done) override { Fine(done); }
  void LabelNode(NodeLabelWrite, std::function<void(WriteResult)> done) override { Fine(done); }

 private:
  static void Fine(const std::function<void(WriteResult)>& done) {
    done({WriteResult::Kind::kDone, 200, ""});
  }

  // The server is asked after a moment and its answer comes a moment later; of a lost request or
  // answer nothing is heard until the caller's own timeout.
  template <typename Result>
  void Ask(std::function<Result()> server, std::function<void(Result)> done, Result lost) {
    constexpr int64_t kMostDelay = 5;
    constexpr int64_t kTimeout = 1000;
    constexpr int64_t kOneIn = 40;
    const auto tell = [alive = alive_, done = std::move(done)](Result result) {
      if (*alive) done(std::move(result));
    };
    if (losses_ && network_.Random(kOneIn - 1) == 0) {
      network_.Send(kTimeout, [tell, lost = std::move(lost)] { tell(lost); });
      return;
    }
    const bool answer_lost = losses_ && network_.Random(kOneIn - 1) == 0;
    const int64_t back = answer_lost ? kTimeout : network_.Random(kMostDelay);
    network_.Send(network_.Random(kMostDelay), [this, server = std::move(server), tell,
                                                lost = std::move(lost), answer_lost, back] {
      Result result = server();
      network_.Send(back,
                    [tell, result = answer_lost ? lost : std::move(result)] { tell(result); });
    });
  }

  NodeLockResult TryLock(const NodeLockWrite& write) {
    using Kind = NodeLockResult::Kind;
    const std::optional<fakes::FakeNode> node = pods_.Node(write.node.str());
    if (!node) return {Kind::kFailed, "", "no such node"};
    const std::string theirs = node->Note(write.key);
    if (theirs == write.value) return {Kind::kDone, theirs, ""};
    if (!theirs.empty()) {
      const auto since = wire::ParseTime(theirs.substr(0, theirs.find(',')));
      const bool stale = write.stale_after && (!since || write.now - *since >= *write.stale_after);
      if (!stale) return {Kind::kHeld, theirs, ""};
    }
    const int code = pods_.PatchNode(node->name, {{write.key, write.value}}, node->version);
    return code == 200 ? NodeLockResult{Kind::kDone, write.value, ""}
                       : NodeLockResult{Kind::kHeld, theirs, ""};
  }

  fakes::FakePods& pods_;
  Network& network_;
  const bool losses_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tranche
