#include "test/sim/world/controllers.h"

#include <algorithm>
#include <utility>

#include "test/sim/cluster/pod_writes.h"
#include "test/sim/world/pod_view.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kGarbagePeriod = seconds(20);
constexpr SimTime kQuarantine = seconds(40);
constexpr SimTime kTolerated = seconds(30);
constexpr SimTime kMostLag = milliseconds(500);
constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";

bool IsHealthy(const Json& pod) {
  return PhaseOf(pod) == "Running" && !pod.at("metadata").contains("deletionTimestamp");
}

}  // namespace

Controllers::Controllers(Loop& loop, ApiServer& api, uint64_t seed)
    : loop_(loop),
      api_(api),
      draws_(seed),
      disruption_(loop.NewActor("disruption-controller")),
      garbage_(loop.NewActor("pod-garbage-collector")),
      lifecycle_(loop.NewActor("node-controller")),
      nodes_(loop, api.store(), "nodes", kMostLag, draws_.Next(),
             [this](const Change& change) { HearNode(change); }) {
  api.store().Listen([this](std::string_view resource, const Change&) {
    changed_ = changed_ || resource == "pods" || resource == "poddisruptionbudgets";
  });
}

void Controllers::Start() {
  nodes_.Start(lifecycle_);
  CountBudgets();
  loop_.After(kGarbagePeriod, garbage_, [this] { CollectGarbage(); });
}

void Controllers::CountBudgets() {
  // Its informers and its work queue make it late.
  loop_.After(milliseconds(draws_.Between(50, 3'000)), disruption_, [this] { CountBudgets(); });
  if (!std::exchange(changed_, false)) return;
  const Store::Objects budgets = api_.store().All("poddisruptionbudgets");
  for (const auto& [key, budget] : budgets) CountBudget(budget);
}

void Controllers::CountBudget(const StoredPtr& budget) {
  const Json& object = budget->object();
  int64_t expected = 0;
  int64_t healthy = 0;
  for (const auto& [key, pod] : api_.store().All("pods")) {
    if (pod->ns() != budget->ns() || IsTerminal(pod->object())) continue;
    if (!Selects(object.at("spec").at("selector"), pod->object())) continue;
    ++expected;
    if (IsHealthy(pod->object())) ++healthy;
  }
  const int64_t desired = object.at("spec").value("minAvailable", int64_t{0});
  // Evictions it has not seen the end of count as disruptions still.
  Json disrupted = Json::object();
  const auto old = object.find("status");
  if (old != object.end() && old->contains("disruptedPods")) {
    for (const auto& [name, when] : old->at("disruptedPods").items()) {
      const StoredPtr pod = api_.store().Find("pods", std::string(budget->ns()) + "/" + name);
      if (pod == nullptr || !IsHealthy(pod->object())) continue;
      disrupted[name] = when;
      --healthy;
    }
  }
  Json status = {{"observedGeneration", object.at("metadata").at("generation")},
                 {"expectedPods", expected},
                 {"currentHealthy", healthy},
                 {"desiredHealthy", desired},
                 {"disruptionsAllowed", std::max<int64_t>(0, healthy - desired)}};
  if (!disrupted.empty()) status["disruptedPods"] = std::move(disrupted);
  if (old != object.end() && *old == status) return;
  Write write{loop_.NameOf(disruption_), "PUT", {FindResource("poddisruptionbudgets")}};
  write.path.ns = budget->ns();
  write.path.name = budget->name();
  write.path.subresource = "status";
  write.body = object;
  write.body["status"] = std::move(status);
  // Refused where somebody was faster: counted again soon.
  api_.Do(disruption_, std::move(write),
          [this](const Answer& answer) { changed_ = changed_ || !answer.done(); });
}

void Controllers::CollectGarbage() {
  loop_.After(kGarbagePeriod, garbage_, [this] { CollectGarbage(); });
  std::map<std::string, SimTime> nodeless;
  const Store::Objects pods = api_.store().All("pods");
  for (const auto& [key, pod] : pods) {
    const std::string node = NodeOf(pod->object());
    if (node.empty() || api_.store().Find("nodes", node) != nullptr) continue;
    const std::string uid(pod->uid());
    const auto since = nodeless_.find(uid);
    nodeless[uid] = since == nodeless_.end() ? loop_.now() : since->second;
    if (nodeless[uid] + kQuarantine <= loop_.now()) {
      DeletePod(*pod, "pod-garbage-collector", /*force=*/true);
    }
  }
  nodeless_ = std::move(nodeless);
}

void Controllers::HearNode(const Change& change) {
  const NodeView node(change.object);
  if (change.type == Change::Type::kDeleted || node.ready) {
    if (unready_.erase(node.name) > 0 && change.type != Change::Type::kDeleted) Taint(node.name);
    return;
  }
  if (unready_.contains(node.name)) return;
  const uint64_t since = change.object->version();
  unready_[node.name] = since;
  Taint(node.name);
  loop_.After(kTolerated, lifecycle_, [this, name = node.name, since] { EvictFrom(name, since); });
}

void Controllers::Taint(const std::string& name) {
  const StoredPtr node = api_.store().Find("nodes", name);
  if (node == nullptr) return;
  Json taints = Json::array();
  const auto spec = node->object().find("spec");
  if (spec != node->object().end() && spec->contains("taints")) taints = spec->at("taints");
  std::erase_if(taints.get_ref<Json::array_t&>(),
                [](const Json& taint) { return taint.at("key") == kUnreachable; });
  if (unready_.contains(name)) {
    taints.push_back({{"key", kUnreachable}, {"effect", "NoSchedule"}});
    taints.push_back({{"key", kUnreachable}, {"effect", "NoExecute"}});
  }
  Write write{
      loop_.NameOf(lifecycle_), "PATCH", {FindResource("nodes")}, "application/merge-patch+json"};
  write.path.name = name;
  write.body = {{"spec", {{"taints", std::move(taints)}}}};
  api_.Do(lifecycle_, std::move(write));
}

void Controllers::EvictFrom(const std::string& node, uint64_t since) {
  const auto found = unready_.find(node);
  if (found == unready_.end() || found->second != since) return;
  const Store::Objects pods = api_.store().All("pods");
  for (const auto& [key, pod] : pods) {
    if (NodeOf(pod->object()) == node) DeletePod(*pod, "taint-eviction", /*force=*/false);
  }
}

void Controllers::DeletePod(const Stored& pod, const char* who, bool force) {
  Write write{who, "DELETE", {FindResource("pods")}};
  write.path.ns = pod.ns();
  write.path.name = pod.name();
  write.body = {{"preconditions", {{"uid", pod.uid()}}}};
  if (force) write.body["gracePeriodSeconds"] = 0;
  api_.Do(garbage_, std::move(write));
}

}  // namespace tranche::sim
