#include "test/sim/world/kubelets.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kDisturbancePeriod = seconds(5);
constexpr SimTime kMostLag = milliseconds(100);
// The node controller calls a node unknown that it has not heard of for so long.
constexpr SimTime kNotReadyAfter = seconds(40);

}  // namespace

Kubelets::Kubelets(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                   ApiServer& api, KubeletOptions options, uint64_t seed)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kAgent)),
      api_(api),
      options_(options),
      draws_(seed),
      self_(loop.NewActor("kubelets")),
      pods_(loop, api.store(), "pods", kMostLag, draws_.Next(),
            [this](const Change& change) { Hear(change); }) {}

void Kubelets::Start() {
  pods_.Start(self_);
  if (rate_ > 0) loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
}

void Kubelets::Quiet() {
  quiet_ = true;
  for (const auto& [name, until] : std::exchange(disturbed_until_, {})) Mend(name);
}

int Kubelets::lives(const std::string& name) const {
  const auto found = lives_.find(name);
  return found == lives_.end() ? 0 : found->second;
}

void Kubelets::Join(Machine machine, const std::string& who) {
  const std::string name = machine.name;
  ++lives_[name];
  Json node = NodeObject(machine);
  auto kubelet =
      std::make_unique<Kubelet>(loop_, history_, api_, std::move(machine), options_, draws_.Next());
  Kubelet& placed = *(kubelets_[name] = std::move(kubelet));
  api_.Put(who, "nodes", std::move(node));
  if (hear_machine_) hear_machine_(name, &placed.machine());
  for (const auto& [key, pod] : api_.store().All("pods")) {
    if (NodeOf(pod->object()) == name) {
      placed.Hear({Change::Type::kAdded, loop_.now(), pod, nullptr});
    }
  }
}

void Kubelets::Leave(const std::string& name, const std::string& who) {
  const auto found = kubelets_.find(name);
  if (found == kubelets_.end()) return;
  found->second->Vanish();
  gone_.push_back(std::move(found->second));
  kubelets_.erase(found);
  disturbed_until_.erase(name);
  api_.store().Remove("nodes", name, who);
  if (hear_machine_) hear_machine_(name, nullptr);
}

void Kubelets::Hear(const Change& change) {
  const auto found = kubelets_.find(NodeOf(change.object->object()));
  if (found != kubelets_.end()) found->second->Hear(change);
}

void Kubelets::Disturb() {
  if (quiet_) return;
  loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
  std::optional<Draws> act = script_.ActByChance("agent", rate_ * 8);
  if (!act || kubelets_.empty()) return;
  auto at = kubelets_.begin();
  std::advance(at, act->Below(static_cast<int64_t>(kubelets_.size())));
  if (disturbed_until_.contains(at->first)) return;
  Happening happening{Happening::Kind::kFault};
  happening.who = "kubelet/" + at->first;
  switch (act->Below(3)) {
    case 0:
      happening.text = "agent: stands still";
      history_.Add(std::move(happening));
      return StandStill(*at->second, *act);
    case 1:
      happening.text = "agent: its agent says something wrong";
      history_.Add(std::move(happening));
      return Lie(*at->second, *act);
    default:
      happening.text = "agent: GPUs vanish";
      history_.Add(std::move(happening));
      return LoseGpus(*at->second, *act);
  }
}

void Kubelets::StandStill(Kubelet& kubelet, Draws& draws) {
  const SimTime time = milliseconds(draws.Between(500, 90'000));
  const std::string name = kubelet.name();
  kubelet.Hold(loop_.now() + time);
  disturbed_until_[name] = loop_.now() + time;
  if (time > kNotReadyAfter) {
    loop_.After(kNotReadyAfter, self_, [this, name] {
      if (disturbed_until_.contains(name)) SetReady(name, "Unknown");
    });
  }
  loop_.After(time, self_, [this, name] {
    if (disturbed_until_.erase(name) > 0) Mend(name);
  });
}

void Kubelets::Lie(Kubelet& kubelet, Draws& draws) {
  const Machine& machine = kubelet.machine();
  if (kubelet.agent() != nullptr) return DisturbAgent(kubelet, draws);
  if (machine.kind != NodeKind::kHami) return;
  const int64_t lie = draws.Below(2) == 0 ? 0 : draws.Between(-machine.mib / 2, machine.mib / 2);
  const int dead = lie != 0 ? 0 : static_cast<int>(draws.Between(1, 2));
  const SimTime time = milliseconds(draws.Between(1'000, 60'000));
  Machine told = machine;
  if (draws.Chance(3'000)) told.cards = OthersCards(machine, draws);
  disturbed_until_[machine.name] = loop_.now();
  PatchNode(
      machine.name, "agent/" + machine.name, "",
      {{"metadata",
        {{"annotations", {{"hami.io/node-nvidia-register", HamiRegister(told, lie, dead)}}}}}});
  loop_.After(time, self_, [this, name = machine.name] {
    if (disturbed_until_.erase(name) > 0) Mend(name);
  });
}

// tranche-node begins anew, and some of its cards fall off the bus for a while.
void Kubelets::DisturbAgent(Kubelet& kubelet, Draws& draws) {
  kubelet.agent()->Restart();
  const auto cards = static_cast<int64_t>(kubelet.machine().cards.size());
  const auto dead = static_cast<int>(draws.Between(0, std::min<int64_t>(cards, 2)));
  const std::string name = kubelet.name();
  disturbed_until_[name] = loop_.now();
  kubelet.agent()->Close(dead);
  TellRegister(kubelet.machine(), dead);
  loop_.After(milliseconds(draws.Between(1'000, 60'000)), self_, [this, name] {
    if (disturbed_until_.erase(name) > 0) Mend(name);
  });
}

void Kubelets::TellRegister(const Machine& machine, int dead) {
  PatchNode(
      machine.name, "agent/" + machine.name, "",
      {{"metadata",
        {{"annotations", {{"tranche.dev/agent-register", TrancheRegister(machine, dead)}}}}}});
}

std::vector<std::string> Kubelets::OthersCards(const Machine& machine, Draws& draws) const {
  std::vector<std::string> cards = machine.cards;
  // Those of another node, of the next one by name, or none that anybody has.
  auto other = kubelets_.upper_bound(machine.name);
  if (other == kubelets_.end()) other = kubelets_.begin();
  const std::vector<std::string>& theirs = other->second->machine().cards;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (draws.Chance(5'000)) continue;
    cards[i] = i < theirs.size() && draws.Chance(5'000) ? theirs[i] : cards[i] + "-none";
  }
  return cards;
}

void Kubelets::LoseGpus(const Kubelet& kubelet, Draws& draws) {
  const Machine& machine = kubelet.machine();
  Json amounts = ExtendedResources(machine);
  if (amounts.empty()) return;
  const bool all = draws.Below(2) == 0;
  for (auto& [resource, text] : amounts.items()) {
    const int64_t count = AmountOf(text.get<std::string>(), false);
    text = std::to_string(all ? 0 : draws.Between(0, count));
  }
  disturbed_until_[machine.name] = loop_.now();
  PatchNode(machine.name, "kubelet/" + machine.name, "status",
            {{"status", {{"allocatable", amounts}}}});
  loop_.After(milliseconds(draws.Between(500, 60'000)), self_, [this, name = machine.name] {
    if (disturbed_until_.erase(name) > 0) Mend(name);
  });
}

void Kubelets::SetReady(const std::string& node, const char* status) {
  PatchNode(
      node, "node-controller", "status",
      {{"status",
        {{"conditions",
          Json::array({{{"type", "Ready"}, {"status", status}, {"reason", "NodeStatus"}}})}}}});
}

void Kubelets::Mend(const std::string& node) {
  const auto found = kubelets_.find(node);
  if (found == kubelets_.end()) return;
  const Machine& machine = found->second->machine();
  SetReady(node, "True");
  const Json amounts = ExtendedResources(machine);
  if (!amounts.empty()) {
    PatchNode(node, "kubelet/" + node, "status", {{"status", {{"allocatable", amounts}}}});
  }
  if (AgentNode* const agent = found->second->agent(); agent != nullptr) {
    agent->Close(0);
    TellRegister(machine, 0);
  }
  if (machine.kind == NodeKind::kHami) {
    PatchNode(
        node, "agent/" + node, "",
        {{"metadata",
          {{"annotations", {{"hami.io/node-nvidia-register", HamiRegister(machine, 0, 0)}}}}}});
  }
}

void Kubelets::PatchNode(const std::string& node, const std::string& who, const char* subresource,
                         Json body) {
  Write write{who, "PATCH", {FindResource("nodes")}, "application/strategic-merge-patch+json"};
  write.path.name = node;
  write.path.subresource = subresource;
  write.body = std::move(body);
  api_.Do(self_, std::move(write));
}

}  // namespace tranche::sim
