#include "test/sim/world/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kMostLag = milliseconds(50);
constexpr const char* kUser = "user";
constexpr uint64_t kOfSets = 0x736574;  // draws of their own
constexpr uint64_t kOfSizing = 0x73697a65;
constexpr uint64_t kOfNames = 0x6e616d65;
constexpr SimTime kRestartPeriod = seconds(4);

std::string OwnerOf(const Stored& pod) {
  const Json& metadata = pod.object().at("metadata");
  const auto labels = metadata.find("labels");
  return labels == metadata.end() ? std::string() : labels->value(kOwnerLabel, std::string());
}

}  // namespace

Workload::Workload(Loop& loop, Script& script, ApiServer& api, WorkloadOptions options,
                   uint64_t seed)
    : loop_(loop),
      script_(script),
      api_(api),
      options_(std::move(options)),
      draws_(seed),
      self_(loop.NewActor(kUser)),
      pods_(loop, api.store(), "pods", kMostLag, draws_.Next(),
            [this](const Change& change) { Hear(change); }) {}

void Workload::Start() {
  pods_.Start(self_);
  loop_.After(seconds(1), self_, [this] { Arrive(); });
  if (options_.keeps_names) loop_.After(kRestartPeriod, self_, [this] { RestartSet(); });
}

void Workload::Quiet() {
  quiet_ = true;
  owners_.clear();
}

void Workload::Arrive() {
  if (arrived()) return;
  const SimTime gap(draws_.Between(1'000, options_.mean_gap.count() * 2));
  loop_.After(gap, self_, [this] { Arrive(); });
  if (waiting_.size() >= options_.most_waiting) return;
  std::optional<Draws> act = script_.Act("arrival");
  if (!act) {
    ++lives_;  // so that a run without it still ends
    return;
  }
  const int64_t kind = act->Below(20);
  if (kind == 0) return MakeGang(*act);
  if (kind == 1) return MakeOwner(*act);
  MakeOne(*act);
}

void Workload::MakeOne(Draws& draws) {
  Draws of_sizing = draws.Fork(kOfSizing);
  if (options_.sizes_late && of_sizing.Chance(2'500)) return MakeSizedLate(of_sizing);
  Draws of_names = draws.Fork(kOfNames);
  if (options_.keeps_names && of_names.Chance(5'000)) return MakeSet(of_names);
  const PodShape shape = DrawShape(draws, options_.rules);
  Create(PodObject(draws.Pick(options_.namespaces), fmt::format("pod-{}", ++names_),
                   draws.Pick(options_.schedulers), shape));
}

void Workload::MakeSizedLate(Draws& draws) {
  PodShape shape = DrawShape(draws, options_.rules);
  shape.limits.clear();
  shape.annotations.clear();
  const std::string& ns = draws.Pick(options_.namespaces);
  const std::string name = fmt::format("sized-{}", ++names_);
  Json pod = PodObject(ns, name, draws.Pick(options_.schedulers), shape);
  pod["spec"]["schedulingGates"] = Json::array({{{"name", "example.com/sized"}}});
  Create(std::move(pod));
  const Json note = {{"tranche.dev/gpu-fraction", fmt::format("0.{}", draws.Between(1, 9))}};
  const SimTime noted = milliseconds(draws.Between(50, 2'000));
  Size(ns, name, noted, {{"metadata", {{"annotations", note}}}});
  Size(ns, name, noted + milliseconds(draws.Between(5, 500)),
       {{"spec", {{"schedulingGates", nullptr}}}});
}

Workload::Owner Workload::DrawOwner(Draws& draws, int64_t least_seconds, int64_t most_seconds) {
  Owner owner;
  owner.ns = draws.Pick(options_.namespaces);
  owner.scheduler = draws.Pick(options_.schedulers);
  owner.name = fmt::format("set-{}", ++names_);
  owner.shape = DrawShape(draws, options_.rules);
  owner.until = loop_.now() + seconds(draws.Between(least_seconds, most_seconds));
  owner.again = draws.Fork(kOfSets);
  return owner;
}

void Workload::MakeSet(Draws& draws) {
  Owner owner = DrawOwner(draws, 60, 240);
  owner.keeps_names = true;
  Replace(owners_[owner.name] = owner);
}

void Workload::RestartSet() {
  if (arrived()) return;
  loop_.After(kRestartPeriod, self_, [this] { RestartSet(); });
  std::optional<Draws> act = script_.ActByChance("restart", 5'000);
  std::vector<StoredPtr> pods;
  for (const auto& [key, pod] : api_.store().All("pods")) {
    const auto owner = owners_.find(OwnerOf(*pod));
    if (owner != owners_.end() && owner->second.keeps_names) pods.push_back(pod);
  }
  if (!act || pods.empty()) return;
  const StoredPtr& pod = act->Pick(pods);
  DeletePod(std::string(pod->key()), std::string(pod->uid()), kUser,
            act->Below(2) == 0 ? Removal::kByForce : Removal::kInOrder);
}

void Workload::Size(const std::string& ns, const std::string& name, SimTime after, Json patch) {
  Write write{
      "sizer", "PATCH", {FindResource("pods")}, "application/merge-patch+json", std::move(patch)};
  write.path.ns = ns;
  write.path.name = name;
  loop_.After(after, self_, [this, write = std::move(write)] { api_.Do(self_, write); });
}

void Workload::MakeGang(Draws& draws) {
  const int64_t size = draws.Between(2, 4);
  PodShape shape = DrawWholeCards(
      draws, options_.rules, std::min<int64_t>(draws.Between(1, 2), options_.rules.most_cards));
  const std::string gang = fmt::format("gang-{}", ++names_);
  shape.annotations["tranche.dev/gang"] = gang;
  shape.annotations["tranche.dev/gang-size"] = std::to_string(size);
  const std::string& ns = draws.Pick(options_.namespaces);
  const std::string& scheduler = draws.Pick(options_.schedulers);
  for (int64_t i = 0; i < size; ++i) {
    Create(PodObject(ns, fmt::format("{}-{}", gang, i), scheduler, shape));
  }
}

void Workload::MakeOwner(Draws& draws) {
  Owner owner = DrawOwner(draws, 20, 120);
  owner.shape.runtime_ms = std::max<int64_t>(owner.shape.runtime_ms, 5'000);
  owner.keeps_names = owner.again.Chance(4'000);
  const int64_t replicas = draws.Between(1, 3);
  Owner& placed = owners_[owner.name] = owner;
  if (draws.Below(2) == 0) MakeBudgetOf(placed, draws);
  for (int64_t i = 0; i < replicas; ++i) Replace(placed);
}

void Workload::MakeBudgetOf(const Owner& owner, Draws& draws) {
  Write write{kUser, "POST", {FindResource("poddisruptionbudgets")}};
  write.path.ns = owner.ns;
  write.body = {{"apiVersion", "policy/v1"},
                {"kind", "PodDisruptionBudget"},
                {"metadata", {{"name", owner.name}, {"namespace", owner.ns}}},
                {"spec",
                 {{"minAvailable", draws.Between(0, 2)},
                  {"selector", {{"matchLabels", {{kOwnerLabel, owner.name}}}}}}}};
  api_.Do(self_, std::move(write));
}

void Workload::Replace(Owner& owner) {
  MakeOf(owner, fmt::format("{}-{}", owner.name, ++owner.made));
}

void Workload::MakeOf(const Owner& owner, const std::string& name) {
  Json pod = PodObject(owner.ns, name, owner.scheduler, owner.shape);
  pod["metadata"]["labels"] = {{kOwnerLabel, owner.name}};
  Create(std::move(pod));
}

void Workload::MakeNamesake(const Stored& gone) {
  const auto owner = owners_.find(OwnerOf(gone));
  if (owner == owners_.end() || !owner->second.keeps_names) return;
  if (owner->second.until <= loop_.now() || arrived()) return;
  loop_.After(milliseconds(owner->second.again.Between(1, 200)), self_,
              [this, of = owner->first, name = std::string(gone.name())] {
                const auto still = owners_.find(of);
                if (still != owners_.end()) MakeOf(still->second, name);
              });
}

void Workload::Create(Json pod) {
  ++lives_;
  Write write{kUser, "POST", {FindResource("pods")}};
  write.path.ns = pod.at("metadata").at("namespace");
  write.body = std::move(pod);
  api_.Do(self_, std::move(write));
}

void Workload::Hear(const Change& change) {
  const Stored& pod = *change.object;
  const Json& object = pod.object();
  const bool gone = change.type == Change::Type::kDeleted;
  const bool over = gone || IsTerminal(object);
  const bool on_node = !NodeOf(object).empty();
  if (over || on_node) waiting_.erase(pod.key());
  if (over) bound_.erase(pod.key());
  const std::string uid(pod.uid());
  if (over && seen_ended_.insert(uid).second) Ended(change.object);
  if (gone) seen_ended_.erase(uid);
  if (gone) MakeNamesake(pod);
  if (over) return;
  if (on_node) {
    bound_.insert(pod.key());
  } else if (waiting_.insert(pod.key()).second) {
    const SimTime patience = seconds(draws_.Between(30, 240));
    loop_.After(patience, self_, [this, key = pod.key(), uid] { GiveUp(key, uid); });
  }
}

void Workload::Ended(const StoredPtr& pod) {
  const auto owner = owners_.find(OwnerOf(*pod));
  const bool keeps_name = owner != owners_.end() && owner->second.keeps_names;
  if (owner != owners_.end() && !keeps_name) {
    if (owner->second.until > loop_.now() && !arrived()) {
      loop_.After(milliseconds(draws_.Between(10, 1'000)), self_, [this, name = owner->first] {
        const auto still = owners_.find(name);
        if (still != owners_.end()) Replace(still->second);
      });
    }
  }
  if (!IsTerminal(pod->object())) return;
  const milliseconds left(draws_.Between(200, 20'000));
  // The set removes it itself.
  loop_.After(keeps_name ? left / 100 : left, self_,
              [this, key = pod->key(), uid = std::string(pod->uid())] {
                DeletePod(key, uid, "ttl-controller");
              });
}

void Workload::GiveUp(const std::string& key, const std::string& uid) {
  const StoredPtr pod = api_.store().Find("pods", key);
  if (quiet_ || pod == nullptr || pod->uid() != uid || !NodeOf(pod->object()).empty()) return;
  if (script_.Act("gives-up")) DeletePod(key, uid, kUser);
}

void Workload::DeletePod(const std::string& key, const std::string& uid, const std::string& who,
                         Removal how) {
  Write write{who, "DELETE", {FindResource("pods")}};
  const std::size_t slash = key.find('/');
  write.path.ns = key.substr(0, slash);
  write.path.name = key.substr(slash + 1);
  write.body = {{"preconditions", {{"uid", uid}}}};
  if (how == Removal::kByForce) write.body["gracePeriodSeconds"] = 0;
  api_.Do(self_, std::move(write));
}

}  // namespace tranche::sim
