#include "test/sim/claims/claim_plugin.h"

#include <algorithm>
#include <utility>

#include "test/sim/claims/device_allocator.h"

namespace tranche::sim {
namespace {

constexpr int kTries = 5;  // retry.RetryOnConflict

void Note(std::map<std::string, StoredPtr>& known, const Change& change) {
  if (change.type == Change::Type::kDeleted) {
    known.erase(change.object->key());
  } else {
    known[change.object->key()] = change.object;
  }
}

// The pod's entry goes from status.reservedFor.
bool DropConsumer(Json& claim, const std::string& uid) {
  if (!IsReservedFor(claim, uid)) return false;
  std::erase_if(claim["status"]["reservedFor"].get_ref<Json::array_t&>(),
                [&](const Json& consumer) { return consumer.at("uid") == uid; });
  return true;
}

}  // namespace

ClaimPlugin::ClaimPlugin(Loop& loop, ApiServer& api, SimTime most_lag, uint64_t seed,
                         std::function<void()> changed)
    : loop_(loop),
      api_(api),
      changed_(std::move(changed)),
      claim_informer_(loop, api.store(), "resourceclaims", most_lag, seed,
                      [this](const Change& change) { Hear(change); }),
      slice_informer_(loop, api.store(), "resourceslices", most_lag, seed + 1,
                      [this](const Change& change) {
                        Note(slices_, change);
                        changed_();
                      }),
      class_informer_(loop, api.store(), "deviceclasses", most_lag, seed + 2,
                      [this](const Change& change) {
                        Note(classes_, change);
                        changed_();
                      }) {}

void ClaimPlugin::Start(Actor actor) {
  actor_ = actor;
  claims_.clear();
  slices_.clear();
  classes_.clear();
  reserved_.clear();
  in_flight_.clear();
  claim_informer_.Start(actor);
  slice_informer_.Start(actor);
  class_informer_.Start(actor);
}

void ClaimPlugin::Stop() {
  claim_informer_.Stop();
  slice_informer_.Stop();
  class_informer_.Stop();
}

void ClaimPlugin::Hear(const Change& change) {
  const std::string& key = change.object->key();
  // Its own writes were known before the informer shows them.
  const StoredPtr known = Known(key);
  const bool is_older = known != nullptr && change.object->version() < known->version();
  if (is_older && change.type != Change::Type::kDeleted) return;
  Note(claims_, change);
  changed_();
}

StoredPtr ClaimPlugin::Known(const std::string& key) const {
  const auto found = claims_.find(key);
  return found == claims_.end() ? nullptr : found->second;
}

std::set<std::string> ClaimPlugin::Taken() const {
  std::set<std::string> taken;
  const auto add = [&taken](const Json& allocation) {
    for (std::string& device : DevicesIn(allocation)) taken.insert(std::move(device));
  };
  for (const auto& [key, claim] : claims_) {
    if (const Json* const allocation = AllocationOf(claim->object())) add(*allocation);
  }
  for (const auto& [key, allocation] : in_flight_) add(allocation);
  return taken;
}

std::string ClaimPlugin::NotReady(const PodView& pod) const {
  for (const ClaimUse& use : ClaimsOf(*pod.stored)) {
    if (use.key.empty()) return "waiting for resource claim to be created";
    const StoredPtr claim = Known(use.key);
    if (claim == nullptr) return "resourceclaim \"" + use.key + "\" not found";
    if (IsLeaving(claim->object())) return "resourceclaim \"" + use.key + "\" is being deleted";
    const std::string owner = OwnerOf(claim->object());
    if (!use.template_name.empty() && owner != pod.uid) return "resourceclaim of another pod";
    // Another pod shares it, and PreBind is under way.
    if (in_flight_.contains(use.key)) return "resource claim is in the process of being allocated";
  }
  return "";
}

std::optional<std::map<std::string, Json>> ClaimPlugin::Try(const PodView& pod,
                                                            const std::string& node) const {
  std::vector<std::string> keys;
  std::vector<const Json*> specs;
  for (const ClaimUse& use : ClaimsOf(*pod.stored)) {
    const StoredPtr claim = Known(use.key);
    if (claim == nullptr) return std::nullopt;
    if (AllocationOf(claim->object()) != nullptr) continue;
    keys.push_back(use.key);
    specs.push_back(&claim->object().at("spec"));
  }
  std::map<std::string, Json> out;
  if (keys.empty()) return out;
  AllocatorView view;
  for (const auto& [name, slice] : slices_) {
    if (slice->object().at("spec").value("nodeName", "") == node) {
      view.slices.push_back(&slice->object());
    }
  }
  DraObjects classes;
  for (const auto& [name, one] : classes_) classes[name] = &one->object();
  const std::set<std::string> taken = Taken();
  view.classes = &classes;
  view.taken = &taken;
  std::optional<std::vector<Json>> allocations = AllocateOn(node, specs, view);
  if (!allocations) return std::nullopt;
  for (std::size_t i = 0; i < keys.size(); ++i) out[keys[i]] = std::move((*allocations)[i]);
  return out;
}

std::string ClaimPlugin::WhyNot(const PodView& pod, const std::string& node) const {
  for (const ClaimUse& use : ClaimsOf(*pod.stored)) {
    const StoredPtr claim = Known(use.key);
    const Json* const allocation = claim == nullptr ? nullptr : AllocationOf(claim->object());
    if (allocation != nullptr && NodeOfAllocation(*allocation) != node) {
      return "resourceclaim not available on the node";
    }
  }
  return Try(pod, node) ? "" : "cannot allocate all claims";
}

bool ClaimPlugin::Reserve(const PodView& pod, const std::string& node) {
  std::optional<std::map<std::string, Json>> allocations = Try(pod, node);
  if (!NotReady(pod).empty() || !allocations) return false;
  if (ClaimsOf(*pod.stored).empty()) return true;
  Reservation& mine = reserved_[pod.uid];
  mine = {};
  for (const ClaimUse& use : ClaimsOf(*pod.stored)) mine.claims.push_back(use.key);
  mine.allocations = std::move(*allocations);
  for (const auto& [key, allocation] : mine.allocations) in_flight_[key] = allocation;
  return true;
}

void ClaimPlugin::PreBind(const PodView& pod, const Done& done) {
  if (ClaimsOf(*pod.stored).empty()) return done(true);
  WriteNext(pod.uid, std::string(pod.stored->name()), 0, 0, done);
}

void ClaimPlugin::WriteNext(const std::string& uid, const std::string& pod_name, std::size_t at,
                            int tries, const Done& done) {
  const auto mine = reserved_.find(uid);
  if (mine == reserved_.end()) return done(false);
  if (at == mine->second.claims.size()) return done(true);
  const std::string key = mine->second.claims[at];
  const auto own = mine->second.allocations.find(key);
  const bool allocates = own != mine->second.allocations.end();
  const Json allocation = allocates ? own->second : Json();
  const auto change = [this, uid, pod_name, allocation](Json& claim) {
    const bool has = AllocationOf(claim) != nullptr;
    // Deleted, deallocated or allocated elsewhere in the meantime.
    if (IsLeaving(claim) || has != allocation.is_null()) return false;
    if (!allocation.is_null()) {
      claim["status"]["allocation"] = allocation;
      claim["status"]["allocation"]["allocationTimestamp"] = TimeText(loop_.now());
    }
    if (!IsReservedFor(claim, uid)) {
      claim["status"]["reservedFor"].push_back(
          {{"resource", "pods"}, {"name", pod_name}, {"uid", uid}});
    }
    return true;
  };
  EditStatus(key, change, tries, [this, uid, pod_name, at, key, done](bool stored) {
    in_flight_.erase(key);
    if (!stored) return done(false);
    WriteNext(uid, pod_name, at + 1, 0, done);
  });
}

void ClaimPlugin::EditStatus(const std::string& key, const std::function<bool(Json&)>& change,
                             int tries, const Done& done) {
  const StoredPtr now = api_.store().Find("resourceclaims", key);
  Json object = now == nullptr ? Json() : now->object();
  if (now == nullptr || tries == kTries || !change(object)) return done(false);
  Write write{loop_.NameOf(actor_), "PUT", {FindResource("resourceclaims")}};
  write.path.ns = now->ns();
  write.path.name = now->name();
  write.path.subresource = "status";
  write.body = std::move(object);
  api_.Do(actor_, std::move(write), [this, key, change, tries, done](const Answer& answer) {
    if (answer.code == 409) return EditStatus(key, change, tries + 1, done);
    if (answer.done() && answer.object != nullptr) {
      const StoredPtr known = Known(key);
      if (known == nullptr || known->version() < answer.object->version()) {
        claims_[key] = answer.object;
      }
    }
    done(answer.done());
  });
}

void ClaimPlugin::Unreserve(const PodView& pod) {
  const auto mine = reserved_.find(pod.uid);
  if (mine == reserved_.end()) return;
  for (const std::string& key : mine->second.claims) {
    if (mine->second.allocations.contains(key)) in_flight_.erase(key);
    EditStatus(
        key, [uid = pod.uid](Json& claim) { return DropConsumer(claim, uid); }, 0, [](bool) {});
  }
  reserved_.erase(mine);
  changed_();
}

void ClaimPlugin::PostFilter(const PodView& pod) {
  for (const ClaimUse& use : ClaimsOf(*pod.stored)) {
    const StoredPtr claim = Known(use.key);
    if (claim == nullptr || AllocationOf(claim->object()) == nullptr) continue;
    const std::vector<std::string> users = ReservedFor(claim->object());
    if (users.size() > 1 || (users.size() == 1 && users.front() != pod.uid)) continue;
    const auto change = [uid = pod.uid, version = claim->version()](Json& object) {
      // Of the very version that it saw.
      if (object.at("metadata").at("resourceVersion") != std::to_string(version)) return false;
      object["status"].erase("allocation");
      object["status"].erase("reservedFor");
      return true;
    };
    return EditStatus(use.key, change, 0, [this](bool stored) {
      if (stored) changed_();
    });
  }
}

}  // namespace tranche::sim
