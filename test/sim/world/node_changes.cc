#include "test/sim/world/node_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "test/sim/cluster/pod_writes.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kPeriod = seconds(3);
constexpr SimTime kScalePeriod = seconds(10);
constexpr SimTime kSpotPeriod = seconds(3);
constexpr int kIdleRounds = 3;
constexpr int kWaitRounds = 2;

}  // namespace

NodeChanges::NodeChanges(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                         ApiServer& api, Kubelets& kubelets, const Workload& workload,
                         NodeChangesOptions options)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kNodes)),
      api_(api),
      kubelets_(kubelets),
      workload_(workload),
      options_(options),
      self_(loop.NewActor("user/nodes")) {}

void NodeChanges::Start() {
  if (rate_ > 0) loop_.After(kPeriod, self_, [this] { Change(); });
  if (options_.is_spot) loop_.After(kSpotPeriod, self_, [this] { TakeBack(); });
  if (options_.autoscales) loop_.After(kScalePeriod, self_, [this] { Scale(); });
}

void NodeChanges::Quiet() {
  quiet_ = true;
  for (auto& [name, machine] : std::exchange(away_, {})) Return(std::move(machine));
  for (const std::string& name : std::exchange(noticed_, {})) Notice(name, false);
  const Store::Objects nodes = api_.store().All("nodes");
  for (const auto& [name, node] : nodes) {
    if (NodeView(node).cordoned) Cordon(name, false);
  }
}

void NodeChanges::Change() {
  if (quiet_) return;
  loop_.After(kPeriod, self_, [this] { Change(); });
  std::optional<Draws> act = script_.ActByChance("node-change", rate_ * 6);
  if (!act || kubelets_.all().empty()) return;
  auto at = kubelets_.all().begin();
  std::advance(at, act->Below(static_cast<int64_t>(kubelets_.all().size())));
  const std::string node = at->first;
  Happening happening{Happening::Kind::kFault};
  happening.who = "user/nodes";
  happening.key = node;
  switch (act->Below(4)) {
    case 0:
    case 1: {
      happening.text = "nodes: cordoned";
      history_.Add(std::move(happening));
      Cordon(node, true);
      loop_.After(milliseconds(act->Between(500, 60'000)), self_,
                  [this, node] { Cordon(node, false); });
      return;
    }
    case 2:
      happening.text = "nodes: replaced by another machine";
      history_.Add(std::move(happening));
      return Replace(node, *act);
    default:
      happening.text = "nodes: labelled";
      history_.Add(std::move(happening));
      return Relabel(node);
  }
}

void NodeChanges::Cordon(const std::string& node, bool on) {
  Write write{
      loop_.NameOf(self_), "PATCH", {FindResource("nodes")}, "application/merge-patch+json"};
  write.path.name = node;
  write.body = {{"spec", {{"unschedulable", on ? Json(true) : Json(nullptr)}}}};
  api_.Do(self_, std::move(write));
}

void NodeChanges::Replace(const std::string& node, Draws& draws) {
  const Machine& old = kubelets_.all().at(node)->machine();
  const int life = kubelets_.lives(node) + 1;
  // Others of the same kind, or the same cards under a new Node.
  Machine next = draws.Below(2) == 0 ? old : DrawMachine(draws, node, old.kind, life);
  next.pool = old.pool;
  kubelets_.Leave(node, loop_.NameOf(self_));
  away_[node] = std::move(next);
  loop_.After(milliseconds(draws.Between(200, 30'000)), self_, [this, node] {
    const auto found = away_.find(node);
    if (found == away_.end()) return;
    Machine machine = std::move(found->second);
    away_.erase(found);
    Return(std::move(machine));
  });
}

void NodeChanges::Return(Machine machine) {
  kubelets_.Join(std::move(machine), loop_.NameOf(self_));
}

void NodeChanges::Relabel(const std::string& node) {
  Write write{
      loop_.NameOf(self_), "PATCH", {FindResource("nodes")}, "application/merge-patch+json"};
  write.path.name = node;
  write.body = {
      {"metadata", {{"labels", {{"example.com/changed", TimeText(loop_.now()).substr(11, 2)}}}}}};
  api_.Do(self_, std::move(write));
}

void NodeChanges::Notice(const std::string& node, bool on) {
  Write write{
      loop_.NameOf(self_), "PATCH", {FindResource("nodes")}, "application/merge-patch+json"};
  write.path.name = node;
  const Json taints =
      Json::array({{{"key", "aws-node-termination-handler/spot-itn"}, {"effect", "NoSchedule"}}});
  write.body = {{"spec", {{"taints", on ? taints : Json(nullptr)}}}};
  api_.Do(self_, std::move(write));
}

void NodeChanges::TakeBack() {
  if (quiet_) return;
  loop_.After(kSpotPeriod, self_, [this] { TakeBack(); });
  std::optional<Draws> act = script_.ActByChance("notice", 1'200);
  if (!act || kubelets_.all().empty()) return;
  auto at = kubelets_.all().begin();
  std::advance(at, act->Below(static_cast<int64_t>(kubelets_.all().size())));
  const std::string node = at->first;
  if (!noticed_.insert(node).second) return;
  Happening happening{Happening::Kind::kFault};
  happening.who = "user/nodes";
  happening.key = node;
  happening.text = "nodes: a notice that it is taken away";
  history_.Add(std::move(happening));
  Notice(node, true);
  const bool stays = act->Below(4) == 0;
  loop_.After(milliseconds(act->Between(5'000, 120'000)), self_,
              [this, node, stays, draws = *act]() mutable {
                if (noticed_.erase(node) == 0 || !kubelets_.all().contains(node)) return;
                if (stays) return Notice(node, false);
                Replace(node, draws);
              });
}

bool NodeChanges::IsIdle(const std::string& node) const {
  const Store::Objects& pods = api_.store().All("pods");
  return std::none_of(pods.begin(), pods.end(),
                      [&](const auto& entry) { return NodeOf(entry.second->object()) == node; });
}

void NodeChanges::SayWhoIsHelped(Draws& draws) {
  static constexpr const char* kWords[] = {
      "pod triggered scale-up: [{auto 1->2 (max: 3)}]",
      "Pod should schedule on: nodeclaim/auto-1",
  };
  for (const std::string& key : workload_.waiting()) {
    const StoredPtr pod = api_.store().Find("pods", key);
    const int64_t word = draws.Below(3);
    if (pod == nullptr || word == 2) continue;
    Write write{loop_.NameOf(self_), "POST", {FindResource("scaleups")}};
    write.path.ns = pod->ns();
    write.body = {
        {"apiVersion", "v1"},
        {"kind", "Event"},
        {"metadata",
         {{"namespace", pod->ns()}, {"name", fmt::format("{}.{}", pod->name(), ++said_)}}},
        {"involvedObject", {{"kind", "Pod"}, {"uid", pod->uid()}}},
        {"reason", word == 0 ? "TriggeredScaleUp" : "Nominated"},
        {"message", kWords[word]},
        {"firstTimestamp", TimeText(loop_.now())}};
    api_.Do(self_, std::move(write));
  }
}

void NodeChanges::Scale() {
  loop_.After(kScalePeriod, self_, [this] { Scale(); });
  waited_ = workload_.waiting().empty() ? 0 : waited_ + 1;
  if (!quiet_ && waited_ >= kWaitRounds && added_ < options_.most_added) {
    waited_ = 0;
    if (std::optional<Draws> act = script_.Act("node-added")) {
      const std::string name = fmt::format("auto-{}", ++added_);
      const NodeKind kind = act->Below(2) == 0 ? NodeKind::kStock : NodeKind::kHami;
      Machine machine = DrawMachine(*act, name, kind, 1);
      SayWhoIsHelped(*act);
      const bool comes = act->Below(5) > 0;
      const seconds after(act->Between(5, 30));
      if (comes) {
        loop_.After(after, self_, [this, machine = std::move(machine)] { Return(machine); });
      }
    }
  }
  if (quiet_) return;  // who waits may still need what is there
  std::string leaves;
  for (const auto& [name, kubelet] : kubelets_.all()) {
    if (!name.starts_with("auto-")) continue;
    int& rounds = idle_rounds_[name];
    rounds = IsIdle(name) ? rounds + 1 : 0;
    if (rounds == kIdleRounds) Cordon(name, true);
    if (rounds > kIdleRounds) leaves = name;
  }
  if (!leaves.empty() && script_.Act("node-removed")) kubelets_.Leave(leaves, "autoscaler");
}

}  // namespace tranche::sim
