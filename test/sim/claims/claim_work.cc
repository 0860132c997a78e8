#include "test/sim/claims/claim_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "test/sim/claims/claim_controller.h"
#include "test/sim/claims/device_slices.h"
#include "test/sim/world/pod_shapes.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kMeddlePeriod = seconds(4);
constexpr const char* kWhole = "gpu.nvidia.com";
constexpr const char* kMig = "mig.nvidia.com";
constexpr const char* kTemplates = "resourceclaimtemplates";
constexpr const char* kClaims = "resourceclaims";

Json Exactly(const char* device_class, int64_t count) {
  return {{"deviceClassName", device_class}, {"allocationMode", "ExactCount"}, {"count", count}};
}

Json OfProfile(const std::string& profile, int64_t count) {
  Json choice = Exactly(kMig, count);
  choice["selectors"] =
      Json::array({{{"cel",
                     {{"expression", fmt::format("device.attributes['{}'].profile == '{}'",
                                                 kDraDriver, profile)}}}}});
  return choice;
}

Json SpecOf(Json request) {
  request["name"] = "gpu";
  return {{"devices", {{"requests", Json::array({std::move(request)})}}}};
}

Json ClaimObject(const char* kind, const std::string& ns, const std::string& name, Json spec) {
  return {{"apiVersion", kDraVersion},
          {"kind", kind},
          {"metadata", {{"name", name}, {"namespace", ns}}},
          {"spec", std::move(spec)}};
}

// What users ask for, by the name of their template.
std::vector<std::pair<std::string, Json>> Wishes(const ClaimWorkOptions& options) {
  std::vector<std::pair<std::string, Json>> wishes;
  wishes.emplace_back("one", SpecOf({{"exactly", Exactly(kWhole, 1)}}));
  if (options.most_cards > 1) {
    Json pair = SpecOf({{"exactly", Exactly(kWhole, 2)}});
    pair["devices"]["constraints"] =
        Json::array({{{"requests", Json::array({"gpu"})},
                      {"matchAttribute", "resource.kubernetes.io/numaNode"}}});
    wishes.emplace_back("pair", std::move(pair));
    wishes.emplace_back("all", SpecOf({{"exactly", Exactly(kWhole, options.most_cards)}}));
  }
  for (const std::string& profile : options.profiles) {
    std::string name = "mig-" + profile;
    std::replace(name.begin(), name.end(), '.', '-');
    wishes.emplace_back(std::move(name), SpecOf({{"exactly", OfProfile(profile, 1)}}));
    Json small = OfProfile(profile, 1);
    Json whole = Exactly(kWhole, 1);
    small["name"] = "small";
    whole["name"] = "whole";
    wishes.emplace_back(
        "either", SpecOf({{"firstAvailable", Json::array({std::move(small), std::move(whole)})}}));
  }
  return wishes;
}

}  // namespace

ClaimWork::ClaimWork(Loop& loop, Script& script, const FaultPlan& faults, ApiServer& api,
                     ClaimWorkOptions options, std::function<Mood()> mood)
    : loop_(loop),
      script_(script),
      rate_(faults.rate(Fault::kUsers)),
      api_(api),
      options_(std::move(options)),
      mood_(std::move(mood)),
      self_(loop.NewActor("user/claims")) {
  for (const auto& [name, spec] : Wishes(options_)) {
    if (std::ranges::find(templates_, name) == templates_.end()) templates_.push_back(name);
  }
}

void ClaimWork::Start() {
  for (const std::string& ns : options_.namespaces) MakeTemplates(ns);
  loop_.After(seconds(3), self_, [this] { Arrive(); });
  if (rate_ > 0) loop_.After(kMeddlePeriod, self_, [this] { Meddle(); });
}

void ClaimWork::MakeTemplates(const std::string& ns) {
  for (const auto& [name, spec] : Wishes(options_)) {
    if (api_.store().Find(kTemplates, ns + "/" + name) != nullptr) continue;
    Post(kTemplates, ClaimObject("ResourceClaimTemplate", ns, name, {{"spec", spec}}));
  }
}

void ClaimWork::Arrive() {
  const Mood mood = mood_();
  if (quiet_ || mood == Mood::kIsDone) return;
  std::optional<Draws> act;
  if (mood == Mood::kGoesOn) act = script_.Act("claim-arrival");
  const SimTime gap(act ? act->Between(1'000, options_.mean_gap.count() * 2)
                        : options_.mean_gap.count());
  loop_.After(gap, self_, [this] { Arrive(); });
  if (!act) return;
  const std::string ns = act->Pick(options_.namespaces);
  if (act->Below(5) == 0) return MakeShared(ns, *act);
  MakePod(ns, {{"name", "gpu"}, {"resourceClaimTemplateName", act->Pick(templates_)}}, *act);
}

void ClaimWork::MakePod(const std::string& ns, Json claim, Draws& draws) {
  PodShape shape;
  constexpr const char* kClasses[] = {"", "batch", "dev", "important"};
  shape.priority_class = kClasses[draws.Below(std::ssize(kClasses))];
  shape.grace_seconds = draws.Between(0, 10);
  shape.runtime_ms = draws.Between(300, options_.mean_runtime_ms * 2);
  shape.fails = draws.Below(20) == 0;
  const std::string name = fmt::format("claimer-{}", ++names_);
  Json pod = PodObject(ns, name, options_.scheduler, shape);
  Json& spec = pod["spec"];
  spec["containers"][0]["resources"]["claims"] = Json::array({{{"name", claim.at("name")}}});
  spec["resourceClaims"] = Json::array({std::move(claim)});
  Post("pods", std::move(pod));
  // One whose devices never come back would hang for ever.
  DeleteLater("pods", ns, name, milliseconds(shape.runtime_ms) + std::chrono::minutes(5));
}

void ClaimWork::MakeShared(const std::string& ns, Draws& draws) {
  const std::string name = fmt::format("shared-{}", ++names_);
  const auto wishes = Wishes(options_);
  Json claim = ClaimObject("ResourceClaim", ns, name, draws.Pick(wishes).second);
  claim["metadata"]["finalizers"] = Json::array({kClaimFinalizer});
  Post(kClaims, std::move(claim));
  const int64_t pods = draws.Between(1, 3);
  for (int64_t i = 0; i < pods; ++i) {
    loop_.After(milliseconds(draws.Between(1, 3'000)), self_,
                [this, ns, name, own = draws.Fork(static_cast<uint64_t>(i))]() mutable {
                  if (!quiet_) MakePod(ns, {{"name", "gpu"}, {"resourceClaimName", name}}, own);
                });
  }
  // While its pods run, or long after.
  DeleteLater(kClaims, ns, name, milliseconds(draws.Between(5'000, 300'000)));
}

void ClaimWork::Meddle() {
  if (quiet_) return;
  loop_.After(kMeddlePeriod, self_, [this] { Meddle(); });
  std::optional<Draws> act = script_.ActByChance("claim-edit", rate_ * 8);
  if (!act) return;
  const char* const resource = act->Below(2) == 0 ? kClaims : kTemplates;
  const Store::Objects& all = api_.store().All(resource);
  if (all.empty()) return;
  auto at = all.begin();
  std::advance(at, act->Below(static_cast<int64_t>(all.size())));
  const std::string ns(at->second->ns());
  Delete(resource, ns, std::string(at->second->name()));
  loop_.After(milliseconds(act->Between(100, 20'000)), self_, [this, ns] { MakeTemplates(ns); });
}

void ClaimWork::DeleteLater(const char* resource, const std::string& ns, const std::string& name,
                            SimTime after) {
  loop_.After(after, self_, [this, resource, ns, name] {
    if (api_.store().Find(resource, ns + "/" + name) != nullptr) Delete(resource, ns, name);
  });
}

void ClaimWork::Post(const char* resource, Json object) {
  Write write{loop_.NameOf(self_), "POST", {FindResource(resource)}};
  write.path.ns = object.at("metadata").at("namespace");
  write.body = std::move(object);
  api_.Do(self_, std::move(write));
}

void ClaimWork::Delete(const char* resource, const std::string& ns, const std::string& name) {
  Write write{loop_.NameOf(self_), "DELETE", {FindResource(resource)}};
  write.path.ns = ns;
  write.path.name = name;
  write.body = Json::object();
  api_.Do(self_, std::move(write));
}

}  // namespace tranche::sim
