#include "test/sim/world/user_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "test/sim/cluster/pod_writes.h"
#include "test/sim/world/pod_view.h"
#include "test/sim/world/strangers.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;

constexpr SimTime kPeriod = milliseconds(700);
constexpr SimTime kCopyPeriod = std::chrono::seconds(5);
constexpr SimTime kForgePeriod = std::chrono::seconds(3);
constexpr const char* kRecord = "tranche.dev/allocation";

// The same devices, a part of each.
std::string WithLess(const std::string& text, Draws& draws) {
  Json record = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.value("containers", Json()).is_array()) return text;
  const int64_t parts = draws.Between(2, 10);
  for (Json& container : record["containers"]) {
    for (Json& device : container["devices"]) {
      for (const char* const amount : {"milli", "mib"}) {
        if (!device.contains(amount) || !device[amount].is_number_integer()) continue;
        device[amount] = std::max<int64_t>(1, device[amount].get<int64_t>() / parts);
      }
    }
  }
  return record.dump();
}

// Empty: it has none.
std::string RecordOf(const Stored& pod) {
  const Json notes = pod.object().at("metadata").value("annotations", Json::object());
  return notes.value(kRecord, "");
}

}  // namespace

UserEdits::UserEdits(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                     ApiServer& api, const Tenants& tenants, const std::vector<Machine>& machines)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kUsers)),
      api_(api),
      tenants_(tenants),
      machines_(machines),
      self_(loop.NewActor("user/edits")) {}

void UserEdits::Start() {
  if (rate_ == 0) return;
  loop_.After(kPeriod, self_, [this] { Edit(); });
  loop_.After(kCopyPeriod, self_, [this] { Copy(); });
  loop_.After(kForgePeriod, self_, [this] { Forge(); });
  history_.Listen([this](const Happening& happening) {
    if (happening.kind == Happening::Kind::kAsked && happening.text == "filter") {
      EditSoon(happening.key, "edit-filtered");
    }
  });
  api_.store().Listen([this](std::string_view resource, const Change& change) {
    if (resource != "pods" || change.type != Change::Type::kModified) return;
    const bool bound_now =
        NodeOf(change.before->object()).empty() && !NodeOf(change.object->object()).empty();
    if (bound_now) EditSoon(change.object->key(), "edit-bound");
  });
  ListenForHabits();
}

void UserEdits::ListenForHabits() {
  if (habits_.delete_read) {
    api_.OnRead([this](std::string_view resource, const std::string& key) {
      std::optional<Draws> act;
      if (!quiet_ && resource == "pods") act = script_.ActByChance("delete-read", 2'000);
      if (!act) return;
      loop_.After(milliseconds(act->Between(1, 1'000)), self_, [this, key, draws = *act]() mutable {
        if (const StoredPtr pod = api_.store().Find("pods", key)) DeletePod(*pod, draws);
      });
    });
  }
  if (!habits_.shrink_records && !habits_.guard_pods) return;
  api_.store().Listen([this](std::string_view resource, const Change& change) {
    if (quiet_ || change.type == Change::Type::kDeleted) return;
    if (resource == "gpureclaims" && habits_.guard_pods) return GuardVictims(*change.object);
    if (resource != "pods" || !habits_.shrink_records) return;
    const bool bound_now = change.before != nullptr && NodeOf(change.before->object()).empty() &&
                           !NodeOf(change.object->object()).empty();
    std::optional<Draws> act;
    if (bound_now) act = script_.ActByChance("shrink", 5'000);
    if (!act) return;
    loop_.After(milliseconds(act->Between(1, 3'000)), self_,
                [this, key = change.object->key(), draws = *act]() mutable {
                  const StoredPtr pod = api_.store().Find("pods", key);
                  if (pod == nullptr) return;
                  const std::string other = RecordBeside(*pod, draws);
                  if (other.empty()) return Shrink(pod, draws);
                  Annotate(*pod, kRecord, other);
                });
  });
}

// Of whose spec is new no disruption is allowed until its controller has counted again.
void UserEdits::GuardVictims(const Stored& reclaim) {
  const Json status = reclaim.object().value("status", Json::object());
  if (!status.contains("victims")) return;
  for (const Json& victim : status.at("victims")) {
    const std::string pod = victim.value("pod", "");
    const std::string key = pod.substr(0, pod.find('/') + 1) + kGuard;
    const StoredPtr guard = api_.store().Find("poddisruptionbudgets", key);
    std::optional<Draws> act;
    if (guard != nullptr) act = script_.ActByChance("guard", 3'000);
    if (!act) continue;
    const SimTime soon(act->Between(1, 3'000));
    loop_.After(soon, self_, [this, key, least = act->Below(3)] {
      Send("PATCH", "poddisruptionbudgets", key, {{"spec", {{"minAvailable", least}}}});
    });
  }
}

void UserEdits::EditSoon(const std::string& key, const char* moment) {
  if (quiet_) return;
  std::optional<Draws> act = script_.ActByChance(moment, rate_);
  if (!act) return;
  loop_.After(SimTime(act->Between(1, 20'000)), self_, [this, key, draws = *act]() mutable {
    if (const StoredPtr pod = api_.store().Find("pods", key)) EditPod(pod, draws);
  });
}

void UserEdits::Edit() {
  if (quiet_) return;
  loop_.After(kPeriod, self_, [this] { Edit(); });
  std::optional<Draws> act = script_.ActByChance("edit", rate_ * 8);
  if (!act) return;
  switch (act->Below(10)) {
    case 0:
    case 1:
      return EditQuota(*act);
    case 2:
      return EditBudget(*act);
    case 3:
      return EditClass(*act);
    case 4:
      return EditNamespace(*act);
    case 5:
      return EditDisruptionBudget(*act);
    default:
      if (const StoredPtr pod = AnyOf("pods", *act)) EditPod(pod, *act);
  }
}

void UserEdits::Copy() {
  if (quiet_) return;
  loop_.After(kCopyPeriod, self_, [this] { Copy(); });
  std::optional<Draws> act = script_.ActByChance("copy", rate_ * 6);
  const StoredPtr pod = act ? AnyOf("pods", *act) : nullptr;
  // Nobody places copies of what another scheduler placed.
  if (pod == nullptr || PodView(pod).scheduler == kAnotherScheduler) return;
  const Json& object = pod->object();
  const Json annotations = object.at("metadata").value("annotations", Json::object());
  Json spec = object.at("spec");
  for (const char* const given : {"nodeName", "schedulingGates"}) spec.erase(given);
  Write write{loop_.NameOf(self_), "POST", {FindResource("pods")}};
  write.path.ns = pod->ns();
  write.body = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata",
                 {{"name", fmt::format("copy-{}", ++copies_)},
                  {"namespace", pod->ns()},
                  {"annotations", annotations}}},
                {"spec", std::move(spec)}};
  api_.Do(self_, std::move(write));
}

void UserEdits::Forge() {
  if (quiet_) return;
  loop_.After(kForgePeriod, self_, [this] { Forge(); });
  std::optional<Draws> act = script_.ActByChance("forge", rate_ * 8);
  const StoredPtr pod = act ? AnyOf("pods", *act) : nullptr;
  if (pod != nullptr && !NodeOf(pod->object()).empty()) Shrink(pod, *act);
}

void UserEdits::Shrink(const StoredPtr& pod, Draws& draws) {
  const std::string record = RecordOf(*pod);
  if (!record.empty()) Annotate(*pod, kRecord, WithLess(record, draws));
}

void UserEdits::Annotate(const Stored& pod, const char* key, const std::string& text) {
  Send("PATCH", "pods", pod.key(), {{"metadata", {{"annotations", {{key, text}}}}}});
}

std::string UserEdits::RecordBeside(const Stored& pod, Draws& draws) const {
  const std::string node = NodeOf(pod.object());
  const std::string own = RecordOf(pod);
  std::vector<std::string> others;
  for (const auto& [key, other] : api_.store().All("pods")) {
    const std::string record = key == pod.key() ? "" : RecordOf(*other);
    // One that asked for the same: its record differs in nothing but the devices.
    const bool alike = record.size() == own.size() && NodeOf(other->object()) == node;
    if (alike && record != own) others.push_back(record);
  }
  return others.empty() || draws.Below(3) == 0 ? "" : draws.Pick(others);
}

StoredPtr UserEdits::AnyOf(const char* resource, Draws& draws) const {
  const Store::Objects& all = api_.store().All(resource);
  if (all.empty()) return nullptr;
  auto at = all.begin();
  std::advance(at, draws.Below(static_cast<int64_t>(all.size())));
  return at->second;
}

void UserEdits::EditPod(const StoredPtr& pod, Draws& draws) {
  if (draws.Below(3) == 0) return DeletePod(*pod, draws);
  EditAnnotations(*pod, draws);
}

void UserEdits::EditAnnotations(const Stored& pod, Draws& draws) {
  Json metadata;
  switch (draws.Below(7)) {
    case 0:
      metadata["annotations"]["tranche.dev/gpu-fraction"] =
          fmt::format("0.{}", draws.Between(1, 9));
      break;
    case 1:
      metadata["annotations"]["tranche.dev/gpu-fraction"] = nullptr;
      break;
    case 2:
      metadata["annotations"][kRecord] = nullptr;
      break;
    case 3: {  // another pod's record, as whoever copies a running pod writes it
      const StoredPtr other = AnyOf("pods", draws);
      const Json& object = other->object();
      const Json notes = object.at("metadata").value("annotations", Json::object());
      metadata["annotations"][kRecord] = notes.value(kRecord, "{}");
      break;
    }
    case 4:
      metadata["labels"]["team"] = draws.Pick(tenants_.namespaces);
      break;
    case 5:
      metadata["annotations"]["hami.io/bind-phase"] = "failed";
      break;
    default:
      metadata["annotations"]["example.com/note"] = std::to_string(draws.Below(1'000));
  }
  Send("PATCH", "pods", pod.key(), {{"metadata", std::move(metadata)}});
}

void UserEdits::DeletePod(const Stored& pod, Draws& draws) {
  Json options = {{"preconditions", {{"uid", pod.uid()}}}};
  if (draws.Below(4) == 0) options["gracePeriodSeconds"] = 0;
  Send("DELETE", "pods", pod.key(), std::move(options));
}

void UserEdits::EditQuota(Draws& draws) {
  const StoredPtr quota = AnyOf("gpuquotas", draws);
  const int teams = static_cast<int>(tenants_.namespaces.size());
  if (quota == nullptr || quota->name() == kPoolKeeper) return;
  if (quota->name() == "org") {
    return Send(
        "PATCH", "gpuquotas", quota->key(),
        {{"spec",
          {{"lines", draws.Below(2) == 0 ? Json::array() : QuotaLines(draws, machines_, teams)}}}});
  }
  switch (draws.Below(6)) {
    case 0:
      return RenameQuota(quota, draws);
    case 1:
      return Send("DELETE", "gpuquotas", quota->key(), Json::object());
    case 2:  // moved below another, perhaps below itself
      return Send("PATCH", "gpuquotas", quota->key(),
                  {{"spec", {{"parent", AnyOf("gpuquotas", draws)->name()}}}});
    case 3:
      return Send("PATCH", "gpuquotas", quota->key(),
                  {{"spec", {{"mode", draws.Below(2) == 0 ? "Observe" : "Enforce"}}}});
    default:
      Send("PATCH", "gpuquotas", quota->key(),
           {{"spec", {{"lines", QuotaLines(draws, machines_, draws.Below(2) == 0 ? teams : 20)}}}});
  }
}

// The team's pods come under a quota of another name; the old one goes before or after.
void UserEdits::RenameQuota(const StoredPtr& quota, Draws& draws) {
  const std::string name = fmt::format("{}-{}", quota->name().substr(0, 6), draws.Below(1'000));
  Json other = {{"apiVersion", "tranche.dev/v1alpha1"},
                {"kind", "GPUQuota"},
                {"metadata", {{"name", name}}},
                {"spec", quota->object().at("spec")}};
  const bool first = draws.Below(2) == 0;
  if (first) Send("DELETE", "gpuquotas", quota->key(), Json::object());
  Send("POST", "gpuquotas", "", std::move(other));
  if (!first) Send("DELETE", "gpuquotas", quota->key(), Json::object());
}

void UserEdits::EditBudget(Draws& draws) {
  const StoredPtr budget = AnyOf("gpubudgets", draws);
  if (budget == nullptr) return;
  if (draws.Below(5) == 0) return Send("DELETE", "gpubudgets", budget->key(), Json::object());
  const int64_t thousandths = draws.Below(2) == 0 ? draws.Between(1, 500) : 50'000;
  Send("PATCH", "gpubudgets", budget->key(),
       {{"spec",
         {{"gpuHours", fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000)},
          {"onExhaustion", draws.Below(2) == 0 ? "Block" : "Demote"}}}});
}

void UserEdits::EditClass(Draws& draws) {
  const StoredPtr one = AnyOf("gpuclasses", draws);
  if (one == nullptr) return;
  if (draws.Below(6) == 0) return Send("DELETE", "gpuclasses", one->key(), Json::object());
  Json spec;
  switch (draws.Below(4)) {
    case 0:
      spec["rank"] = draws.Between(0, 4);
      break;
    case 1:
      spec["preemptible"] = draws.Below(2) == 0 ? "Always" : "Never";
      break;
    case 2:
      spec["chargeFactor"] = fmt::format("{}.5", draws.Below(2));
      break;
    default:
      spec["minRuntime"] = fmt::format("{}s", draws.Between(0, 120));
  }
  Send("PATCH", "gpuclasses", one->key(), {{"spec", std::move(spec)}});
}

void UserEdits::EditNamespace(Draws& draws) {
  const std::string& ns = draws.Pick(tenants_.namespaces);
  Json labels;
  if (draws.Below(2) == 0) {
    labels["team"] = draws.Pick(tenants_.namespaces);
  } else {
    labels["tranche.dev/schedule"] = draws.Below(2) == 0 ? Json("true") : Json(nullptr);
  }
  Send("PATCH", "namespaces", ns, {{"metadata", {{"labels", std::move(labels)}}}});
}

void UserEdits::EditDisruptionBudget(Draws& draws) {
  const StoredPtr budget = AnyOf("poddisruptionbudgets", draws);
  if (budget == nullptr) return;
  if (draws.Below(3) == 0) {
    return Send("DELETE", "poddisruptionbudgets", budget->key(), Json::object());
  }
  Send("PATCH", "poddisruptionbudgets", budget->key(),
       {{"spec", {{"minAvailable", draws.Below(2) == 0 ? 100 : draws.Below(3)}}}});
}

void UserEdits::Send(const char* method, const char* resource, const std::string& key, Json body) {
  Write write{
      loop_.NameOf(self_), method, {FindResource(resource)}, "application/merge-patch+json"};
  const std::size_t slash = key.find('/');
  if (slash != std::string::npos) write.path.ns = key.substr(0, slash);
  write.path.name = slash == std::string::npos ? key : key.substr(slash + 1);
  write.body = std::move(body);
  api_.Do(self_, std::move(write));
}

}  // namespace tranche::sim
