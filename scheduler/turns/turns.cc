#include "scheduler/turns/turns.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/base/status.h"

namespace tranche::agent {
namespace {

std::vector<std::string> Sorted(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::string> IdsOf(const std::vector<DeviceId>& devices) {
  std::vector<std::string> ids;
  for (const DeviceId& device : devices) ids.push_back(device.str());
  return Sorted(std::move(ids));
}

// Does any container's record name it, or something that it would share?
bool Names(const BoundPod& pod, const DeviceId& id) {
  if (!pod.record) return false;
  return std::ranges::any_of(pod.record->containers, [&](const ContainerDevices& container) {
    return std::ranges::any_of(container.devices,
                               [&](const Device& device) { return Overlap(IdOf(device), id); });
  });
}

bool Knows(const std::vector<KubeletPod>& kubelet, const PodName& name) {
  return std::ranges::any_of(kubelet, [&](const KubeletPod& pod) { return pod.name == name; });
}

const Holding* HoldingOf(const KubeletPod& pod, const std::string& container) {
  const auto at = std::ranges::find(pod.holdings, container, &Holding::container);
  return at == pod.holdings.end() ? nullptr : &*at;
}

std::string Join(const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ", ") + id;
  return text.empty() ? "none" : text;
}

// How often the record names it for containers that run at the same time as this one; of a GPU that
// is shared, for this one alone.
int64_t TimesNamed(const BoundPod& pod, const Asking& container, const DeviceId& id, bool shared) {
  int64_t times = 0;
  for (const Asking& one : pod.asking) {
    const ContainerDevices* const record = EntryOf(pod, one.name);
    const bool together = one.name == container.name || (!shared && !one.init && !container.init);
    if (record == nullptr || !together) continue;
    times += std::ranges::count_if(record->devices,
                                   [&](const Device& device) { return Overlap(IdOf(device), id); });
  }
  return times;
}

// Is this a device of the record that a container can be given? The reason where not.
std::string WhyNotGivable(const Device& device, bool shared) {
  if (device.uuid.empty()) return "names a GPU without its UUID";
  if (!device.mig && !shared && device.milli != kWholeGpu) {
    return "names a part of a GPU, which this agent does not hand out";
  }
  return "";
}

}  // namespace

std::vector<DeviceId> Turns::RecordOf(const BoundPod& pod, const std::string& container) const {
  std::vector<DeviceId> ids;
  const ContainerDevices* const record = EntryOf(pod, container);
  if (record == nullptr) return ids;
  for (const Device& device : record->devices) {
    if (IsOurs(device)) ids.push_back(IdOf(device));
  }
  return ids;
}

// Why the record does not say what a container that asks for `size` is to have; empty: it does.
std::string Turns::WhyNoRecord(const Look& look, const BoundPod& pod, const Asking& container,
                               int64_t size) const {
  if (!pod.record) {
    return pod.record_problem.empty()
               ? "expected a record of its devices (annotation tranche.dev/allocation), found "
                 "none: the pod was not placed by Tranche"
               : "the record of its devices cannot be read: " + pod.record_problem;
  }
  if (pod.record->knowledge != Knowledge::kExact) {
    return fmt::format("expected a record that is exact, found one that says {}",
                       KnowledgeName(pod.record->knowledge));
  }
  const auto found = static_cast<int64_t>(RecordOf(pod, container.name).size());
  if (found != size) {
    return fmt::format("expected {} {} for container {} in the record, found {}", size,
                       profile_.empty() ? "GPUs" : "instances of " + profile_, container.name,
                       found);
  }
  for (const Device& device : EntryOf(pod, container.name)->devices) {
    if (!IsOurs(device)) continue;
    const bool shared = !device.mig && SharedCard(look, device.uuid) != nullptr;
    const std::string why = WhyNotGivable(device, shared);
    if (!why.empty()) return "the record " + why;
    if (TimesNamed(pod, container, IdOf(device), shared) > 1) {
      return fmt::format("the record names GPU {} twice", IdOf(device).str());
    }
  }
  return "";
}

namespace {

// The other one with a right to the GPU or that holds it; empty: none. Of its own pool the pod may
// hold something already, since the kubelet gives that on in another order than the record.
std::string OtherHolder(const Look& look, const BoundPod& pod, const std::set<std::string>& pool,
                        const DeviceId& id) {
  for (const BoundPod& other : *look.pods) {
    if (other.uid != pod.uid && Names(other, id)) {
      return fmt::format("the record of pod {} names it too", other.name.str());
    }
  }
  for (const KubeletPod& known : look.kubelet) {
    const bool given_on = known.name == pod.name && pool.contains(id.str());
    for (const std::vector<Holding>* const list : {&known.holdings, &known.others}) {
      for (const Holding& holding : *list) {
        const bool holds = std::ranges::any_of(
            holding.ids, [&](const std::string& held) { return Overlap(ParseDeviceId(held), id); });
        if (!holds || given_on) continue;
        return fmt::format("container {} of pod {} holds it", holding.container, known.name.str());
      }
    }
  }
  return "";
}

// Why no instance can be had at the place; empty: it can.
std::string WhyNotCut(const Card& card, const MigDevice& place) {
  if (!card.mig) return "this agent makes no MIG instances on it";
  const auto offer = std::ranges::find(card.offers, place.profile, &MigOffer::profile);
  const bool known = offer != card.offers.end() && offer->size == place.size &&
                     std::ranges::count(offer->starts, place.start) > 0;
  if (!known) return "the driver knows no such place";
  for (const ClosedPlace& closed : card.closed) {
    if (Overlap({card.uuid, closed.place}, {card.uuid, place})) return closed.why;
  }
  return "";
}

std::string WhyClosed(const Look& look, const DeviceId& id) {
  const auto card = std::ranges::find(look.cards, id.gpu, &Card::uuid);
  if (card == look.cards.end()) return "this node has no such GPU";
  if (!card->problem.empty()) return card->problem;
  if (id.place) return WhyNotCut(*card, *id.place);
  return card->mig ? "its MIG mode is on" : "";
}

// Why a container that holds the id may not start with it.
std::string WhyNotAsBefore(const Look& look, const DeviceId& id) {
  std::string why = WhyClosed(look, id);
  const bool shared = !id.place && SharedCard(look, id.gpu) != nullptr;
  if (!why.empty() || shared == id.slot.has_value()) return why;
  return shared ? "containers share it by now: the pod must be made anew"
                : "it is given whole by now: the pod must be made anew";
}

bool Contains(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

std::vector<TellableDevice> DevicesOf(const std::vector<Card>& cards, const std::string& profile) {
  std::vector<TellableDevice> devices;
  for (const Card& card : cards) {
    if (profile.empty()) {
      const bool healthy = card.problem.empty();
      if (!card.mig && card.slots == 0) devices.push_back({{card.uuid, std::nullopt}, healthy});
      for (int slot = 0; slot < card.slots; ++slot) {
        devices.push_back({{card.uuid, std::nullopt, slot}, healthy});
      }
      continue;
    }
    for (const MigOffer& offer : card.offers) {
      if (offer.profile != profile) continue;
      for (const int start : offer.starts) {
        const MigDevice place{profile, start, offer.size};
        const bool healthy = card.problem.empty() && WhyNotCut(card, place).empty();
        devices.push_back({{card.uuid, place}, healthy});
      }
    }
  }
  return devices;
}

absl::StatusOr<Turns::Holder> Turns::HolderOf(const Look& look,
                                              const std::vector<std::string>& ids) {
  Holder found;
  for (const KubeletPod& pod : look.kubelet) {
    for (const Holding& holding : pod.holdings) {
      const bool any = std::ranges::any_of(
          ids, [&](const std::string& id) { return std::ranges::binary_search(holding.ids, id); });
      if (!any) continue;
      if (found.pod != nullptr && found.pod != &pod) {
        return absl::FailedPreconditionError(
            fmt::format("the kubelet says that pods {} and {} hold the same GPU of {}",
                        found.pod->name.str(), pod.name.str(), Join(ids)));
      }
      // A sidecar may have got them first and given them on.
      if (found.pod == nullptr || holding.ids == ids) found = {&pod, holding.container};
    }
  }
  return found;
}

// Does the record of the holder name these ids? Where init containers ask, those of the whole pod
// are meant, since the kubelet gives them on among its containers.
bool Turns::Agrees(const BoundPod& pod, const Holder& holder,
                   const std::vector<std::string>& ids) const {
  if (holder.pod != nullptr && holder.pod->name != pod.name) return false;
  const std::vector<std::string> named = WithoutSlots(ids);
  const bool given_on = std::ranges::any_of(pod.asking, &Asking::init);
  if (given_on) {
    return std::ranges::all_of(named, [&](const std::string& id) {
      return std::ranges::any_of(pod.asking, [&](const Asking& one) {
        return Contains(IdsOf(RecordOf(pod, one.name)), id);
      });
    });
  }
  return std::ranges::any_of(pod.asking, [&](const Asking& one) {
    if (holder.pod == nullptr || one.name != holder.container) return false;
    return IdsOf(RecordOf(pod, one.name)) == named;
  });
}

bool Turns::WasServedTo(const PodUid& uid, const std::vector<std::string>& ids) const {
  return std::ranges::any_of(
      served_, [&](const auto& one) { return one.first.first == uid && one.second == ids; });
}

bool Turns::IsServed(const Look& look, const BoundPod& pod, const Asking& container) const {
  if (served_.contains({pod.uid, container.name})) return true;
  bool known = false;
  for (const KubeletPod& one : look.kubelet) {
    if (one.name != pod.name) continue;
    known = true;
    // A predecessor of the same name may still hold something.
    if (HoldingOf(one, container.name) == nullptr) return false;
  }
  return known;
}

// The kubelet asks for containers in order. Its book has no init containers, so a new agent may
// take one for unserved that is; MayStart then finds that holder and record differ.
std::optional<Turns::Candidate> Turns::NextOf(const Look& look, const BoundPod& pod,
                                              int64_t size) const {
  for (const Asking& container : pod.asking) {
    if (IsServed(look, pod, container)) continue;
    if (container.count == size) return Candidate{&pod, &container};
    if (!container.init) return std::nullopt;
  }
  return std::nullopt;
}

absl::StatusOr<Turns::Candidate> Turns::WhoseTurn(const Look& look, int64_t size) {
  if (!look.pods) {
    return absl::UnavailableError(
        "the API server does not answer, so it cannot be told whose record counts");
  }
  ForgetGone(*look.pods);
  std::vector<Candidate> found;
  // A pod with a start time is admitted again only where the kubelet has lost what it gave.
  for (const bool acknowledged : {false, true}) {
    for (const BoundPod& pod : *look.pods) {
      if (pod.acknowledged != acknowledged || refused_.contains(pod.uid)) continue;
      if (!Knows(look.kubelet, pod.name)) continue;
      if (const auto next = NextOf(look, pod, size)) found.push_back(*next);
    }
    if (!found.empty()) break;
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return absl::UnavailableError(fmt::format(
        "expected one pod that the kubelet knows and that waits for {} GPUs, found none", size));
  }
  return absl::UnavailableError(
      fmt::format("expected one pod that waits for {} GPUs, found {} and {}, and the kubelet does "
                  "not say which it asks for",
                  size, found[0].pod->name.str(), found[1].pod->name.str()));
}

absl::Status Turns::Refuse(const BoundPod& pod, const std::string& why) {
  refused_.insert(pod.uid);
  return absl::FailedPreconditionError(fmt::format("pod {}: {}", pod.name.str(), why));
}

std::set<std::string> Turns::PoolOf(const BoundPod& pod) const {
  std::set<std::string> pool;
  for (const Asking& container : pod.asking) {
    const auto served = served_.find({pod.uid, container.name});
    if (!container.init || served == served_.end()) continue;
    pool.insert(served->second.begin(), served->second.end());
  }
  return pool;
}

std::string Turns::WhyNotNow(const Look& look, const BoundPod& pod, const Turn& turn,
                             const Offer& offer) const {
  const std::set<std::string> pool = PoolOf(pod);
  for (const DeviceId& device : turn.grant.devices) {
    const std::string id = device.str();
    std::string why = WhyClosed(look, device);
    const Card* const shared = device.place ? nullptr : SharedCard(look, device.gpu);
    if (why.empty()) {
      why = shared != nullptr ? WhyNoPart(look, given_, pod, *shared)
                              : OtherHolder(look, pod, pool, device);
    }
    const bool offered = shared != nullptr || Contains(offer.available, id) || pool.contains(id);
    if (why.empty() && !offered) {
      why = "the kubelet does not offer it: it is in use or closed there";
    }
    if (!why.empty()) return fmt::format("GPU {} of its record: {}", id, why);
  }
  for (const std::string& id : offer.keep) {
    const std::vector<std::string> named = WithoutSlots({id});
    if (Contains(IdsOf(turn.grant.devices), named[0]) || pool.contains(id)) continue;
    return fmt::format("expected the kubelet to choose the GPUs of the record ({}), found {}",
                       Join(IdsOf(turn.grant.devices)), id);
  }
  return "";
}

absl::StatusOr<Turns::Turn> Turns::Judge(const Look& look, const Offer& offer) {
  TRANCHE_ASSIGN_OR_RETURN(const Candidate candidate, WhoseTurn(look, offer.size));
  const BoundPod& pod = *candidate.pod;
  const Asking& container = *candidate.container;
  if (const auto why = WhyNoRecord(look, pod, container, offer.size); !why.empty()) {
    return Refuse(pod, why);
  }
  Turn turn{{pod.name, pod.uid, container.name, RecordOf(pod, container.name), pod.acknowledged,
             profile_.empty() ? PartsOf(look, pod, container.name) : std::vector<Part>()},
            {}};
  for (const std::string& variable : container.own_variables) {
    if (variable != kVisibleVariable && turn.grant.parts.empty()) continue;
    return Refuse(pod, fmt::format("container {} sets {} itself, which would replace what its "
                                   "record gives it",
                                   container.name, variable));
  }
  if (const auto why = WhyNotNow(look, pod, turn, offer); !why.empty()) return Refuse(pod, why);
  turn.ids = ChoiceFor(look, turn.grant.devices, offer);
  if (static_cast<int64_t>(turn.ids.size()) == offer.size) return turn;
  return Refuse(pod, fmt::format("expected {} of {} from the kubelet, found {}: they are in use or "
                                 "closed there",
                                 offer.size, Join(IdsOf(turn.grant.devices)), Join(turn.ids)));
}

absl::StatusOr<std::vector<std::string>> Turns::Open(const Look& look, const Offer& offer) {
  open_.reset();
  TRANCHE_ASSIGN_OR_RETURN(open_, Judge(look, offer));
  return open_->ids;
}

std::optional<absl::StatusOr<Grant>> Turns::Close(std::vector<std::string> ids) {
  if (!open_) return std::nullopt;
  const Turn turn = *std::exchange(open_, std::nullopt);
  ids = Sorted(std::move(ids));
  if (ids == turn.ids) {
    Note(turn);
    return turn.grant;
  }
  refused_.insert(turn.grant.uid);
  return absl::FailedPreconditionError(
      fmt::format("pod {}: expected the kubelet to choose {}, found {}", turn.grant.pod.str(),
                  Join(turn.ids), Join(ids)));
}

absl::StatusOr<Grant> Turns::Serve(const Look& look, std::vector<std::string> ids) {
  ids = Sorted(std::move(ids));
  const Offer offer{ids, ids, static_cast<int64_t>(ids.size())};
  TRANCHE_ASSIGN_OR_RETURN(const Turn turn, Judge(look, offer));
  Note(turn);
  return turn.grant;
}

void Turns::Note(const Turn& turn) {
  const Served container{turn.grant.uid, turn.grant.container};
  served_[container] = turn.ids;
  // Served again, its programs may still have what it got the first time.
  for (const Part& part : turn.grant.parts) {
    std::vector<Part>& given = given_[container];
    if (std::ranges::count(given, part) == 0) given.push_back(part);
  }
}

absl::Status Turns::MayStart(const Look& look, std::vector<std::string> ids) {
  ids = Sorted(std::move(ids));
  TRANCHE_ASSIGN_OR_RETURN(const Holder holder, HolderOf(look, ids));
  if (!look.pods) {
    const auto known = started_.find(ids);
    if (known != started_.end() && holder.pod != nullptr && known->second == holder.pod->name) {
      return absl::OkStatus();
    }
    return absl::UnavailableError(
        "the API server does not answer, so it cannot be told whether the record agrees");
  }
  ForgetGone(*look.pods);
  const BoundPod* owner = nullptr;
  // Of an init container the kubelet's book says nothing, and several records may name a GPU that
  // containers share.
  const bool by_service = holder.pod == nullptr && WithoutSlots(ids) != ids &&
                          std::ranges::any_of(*look.pods, [&](const BoundPod& pod) {
                            return WasServedTo(pod.uid, ids);
                          });
  for (const BoundPod& pod : *look.pods) {
    if (!Agrees(pod, holder, ids) || (by_service && !WasServedTo(pod.uid, ids))) continue;
    if (owner != nullptr) {
      return absl::FailedPreconditionError(fmt::format(
          "the records of pods {} and {} name {}", owner->name.str(), pod.name.str(), Join(ids)));
    }
    owner = &pod;
  }
  if (owner == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "expected the record of {} to name {}, found that it does not",
        holder.pod == nullptr
            ? "an init container"
            : fmt::format("container {} of pod {}", holder.container, holder.pod->name.str()),
        Join(ids)));
  }
  for (const std::string& id : ids) {
    if (const std::string why = WhyNotAsBefore(look, ParseDeviceId(id)); !why.empty()) {
      return absl::FailedPreconditionError(fmt::format("GPU {}: {}", id, why));
    }
  }
  started_[ids] = owner->name;
  return absl::OkStatus();
}

void Turns::Forget() {
  open_.reset();
  served_.clear();
  refused_.clear();
}

void Turns::ForgetGone(const std::vector<BoundPod>& pods) {
  std::set<PodUid> there;
  std::set<PodName> names;
  for (const BoundPod& pod : pods) {
    there.insert(pod.uid);
    names.insert(pod.name);
  }
  std::erase_if(served_, [&](const auto& one) { return !there.contains(one.first.first); });
  std::erase_if(given_, [&](const auto& one) { return !there.contains(one.first.first); });
  std::erase_if(refused_, [&](const PodUid& uid) { return !there.contains(uid); });
  std::erase_if(started_, [&](const auto& one) { return !names.contains(one.second); });
}

}  // namespace tranche::agent
