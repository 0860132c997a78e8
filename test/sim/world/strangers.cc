#include "test/sim/world/strangers.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kPeriod = seconds(2);
constexpr int64_t kWhole = 1'000;  // of a card

// As a scheduler sees it whose informers are not behind; what it decides takes effect later.
SchedulerCache Seen(const Store& store) {
  SchedulerCache cache;
  for (const auto& [name, node] : store.All("nodes")) cache.SetNode(node);
  for (const auto& [key, pod] : store.All("pods")) {
    auto view = std::make_shared<const PodView>(pod);
    if (!view->terminal()) cache.SetPod(std::move(view));
  }
  return cache;
}

Json DeviceOf(const Machine& machine, std::size_t card, int64_t milli) {
  return {{"index", card},
          {"uuid", machine.cards[card]},
          {"milli", milli},
          {"mib", machine.mib * milli / kWhole}};
}

// It runs, and has been placed; in metadata and spec there is the shape alone.
void MakeRunning(Json& pod, const std::string& node) {
  const std::string when = TimeText(SimTime{0});
  const auto condition = [&when](const char* type) {
    return Json{{"type", type}, {"status", "True"}, {"lastTransitionTime", when}};
  };
  Json& resources = pod["spec"]["containers"][0]["resources"];
  resources["requests"] = Json(resources["limits"]);
  pod["spec"]["nodeName"] = node;
  pod["status"] = {
      {"phase", "Running"},
      {"startTime", when},
      {"conditions", Json::array({condition("PodScheduled"), condition("Ready")})},
      {"containerStatuses", Json::array({{{"name", "main"},
                                          {"ready", true},
                                          {"state", {{"running", {{"startedAt", when}}}}}}})}};
}

}  // namespace

void PutRemains(ApiServer& api, const std::vector<Machine>& machines, const Tenants& tenants,
                const Adopt& adopt, Draws draws) {
  const int64_t epoch = draws.Between(2, 20);
  for (const Machine& machine : machines) {
    if (machine.kind != NodeKind::kHami) continue;
    for (std::size_t card = 0; card < machine.cards.size(); ++card) {
      if (draws.Below(2) == 0) continue;
      const std::string& ns = draws.Pick(tenants.namespaces);
      const bool has_quota = std::ranges::find(tenants.quotas, ns) != tenants.quotas.end();
      const int64_t milli = draws.Below(2) == 0 ? kWhole / 2 : kWhole;
      const Json device = DeviceOf(machine, card, milli);
      const Json container = {{"name", "main"}, {"devices", Json::array({device})}};
      const Json record = {{"v", 1},
                           {"epoch", epoch},
                           {"leaf", has_quota ? ns : ""},
                           {"knowledge", "exact"},
                           {"containers", Json::array({container})}};
      PodShape shape;
      shape.limits["nvidia.com/gpu"] = "1";
      if (milli < kWhole) shape.annotations["tranche.dev/gpu-fraction"] = "0.5";
      shape.annotations["tranche.dev/allocation"] = record.dump();
      shape.grace_seconds = 2;
      shape.runtime_ms = draws.Between(20'000, 200'000);
      Json pod =
          PodObject(ns, fmt::format("earlier-{}-{}", machine.name, card), "gpu-scheduler", shape);
      MakeRunning(pod, machine.name);
      const bool later = draws.Below(2) == 0;
      if (later) pod["spec"][kLaterField] = "example";
      // That it was ours cannot be told of what we cannot read.
      const Answer put = api.Put(later ? "earlier" : "tranche-earlier/1", "pods", std::move(pod));
      adopt(machine, *put.object, Json::array({device}));
    }
  }
}

Strangers::Strangers(Loop& loop, Script& script, const FaultPlan& faults, ApiServer& api,
                     std::string ns, ShapeRules rules)
    : loop_(loop),
      script_(script),
      rate_(faults.rate(Fault::kStrangers)),
      api_(api),
      ns_(std::move(ns)),
      rules_(std::move(rules)),
      self_(loop.NewActor("stranger")) {}

void Strangers::Start() {
  if (rate_ > 0) loop_.After(kPeriod, self_, [this] { Come(); });
}

void Strangers::Come() {
  if (quiet_) return;
  loop_.After(kPeriod, self_, [this] { Come(); });
  std::optional<Draws> act = script_.ActByChance("stranger", rate_ * 10);
  if (!act) return;
  const std::string name = fmt::format("stranger-{}", ++names_);
  PodShape shape = DrawWholeCards(*act, rules_, act->Between(1, 2));
  shape.priority_class.clear();
  Json pod = PodObject(ns_, name, kAnotherScheduler, shape);
  const Store::Objects& nodes = api_.store().All("nodes");
  // Some are born on a node, full or not.
  if (act->Below(3) == 0 && !nodes.empty()) {
    auto at = nodes.begin();
    std::advance(at, act->Below(static_cast<int64_t>(nodes.size())));
    pod["spec"]["nodeName"] = at->first;
  }
  const bool placed = pod["spec"].contains("nodeName");
  Write write{loop_.NameOf(self_), "POST", {FindResource("pods")}};
  write.path.ns = ns_;
  write.body = std::move(pod);
  api_.Do(self_, std::move(write));
  if (placed) return;
  loop_.After(milliseconds(act->Between(20, 500)), self_,
              [this, name, draws = *act] { Place(name, draws); });
}

void Strangers::Place(const std::string& name, Draws draws) {
  const StoredPtr stored = api_.store().Find("pods", ns_ + "/" + name);
  if (stored == nullptr) return;
  const PodView pod(stored);
  const SchedulerCache cache = Seen(api_.store());
  std::vector<std::string> fit;
  for (const auto& [node, state] : cache.nodes()) {
    if (state.view != nullptr && cache.WhyNot(pod, state).empty()) fit.push_back(node);
  }
  Write write{loop_.NameOf(self_), fit.empty() ? "DELETE" : "POST", {FindResource("pods")}};
  write.path.ns = ns_;
  write.path.name = name;
  if (!fit.empty()) {
    write.path.subresource = "binding";
    write.body = {{"kind", "Binding"},
                  {"metadata", {{"name", name}, {"uid", pod.uid}}},
                  {"target", {{"kind", "Node"}, {"name", draws.Pick(fit)}}}};
  }
  // Until it takes effect somebody else may have taken the room.
  loop_.After(milliseconds(draws.Between(1, 300)), self_,
              [this, write = std::move(write)]() mutable {
                Write give_up{write.who, "DELETE", write.path};
                give_up.path.subresource.clear();
                api_.Do(self_, std::move(write), [this, give_up](const Answer& answer) {
                  if (!answer.done() && answer.code != 404) api_.Do(self_, give_up);
                });
              });
}

}  // namespace tranche::sim
