// Turns: which container the kubelet is asking devices for, and which it shall have.
//
// The kubelet names device ids alone, never the pod. It admits one pod at a time, though, and knows
// a pod before it asks for its devices. So the container being served is the first without devices
// of the one pod that the kubelet knows, that asks for the resource and that has no start time yet.
// Where two pods could be meant nothing is given. Before each start of a container the kubelet's
// own word on who holds the ids is compared with the record once more (docs/adr/0032).
//
// One Turns serves one resource: GPUs, or the MIG instances of one profile. Ids (device_id.h)
// are what the record names too, so the kubelet's book and the record say the same of a pod. (Of a
// GPU that containers share the kubelet counts slots, and the record says how much.) Of
// its containers they may differ where init containers ask for GPUs: the kubelet gives those on to
// later containers in an order of its own. Each container gets what its record says all the same.
//
// Thread rule: one thread. Errors: Unavailable where another look may tell more, FailedPrecondition
// where none will; both are sentences for the pod's owner. Cost: linear in what was looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/turns/device_id.h"
#include "scheduler/turns/look.h"
#include "scheduler/turns/sharing.h"

namespace tranche::agent {

struct Grant {
  PodName pod;
  PodUid uid;
  std::string container;
  std::vector<DeviceId> devices;  // in the record's order
  bool again = false;             // the pod has started before: what is there may be its own
  std::vector<Part> parts = {};   // of GPUs that are shared
  friend bool operator==(const Grant&, const Grant&) = default;
};

// What a card gives of one resource, with what is closed of it. `profile` as in Turns.
struct TellableDevice {
  DeviceId id;
  bool healthy = false;
};
std::vector<TellableDevice> DevicesOf(const std::vector<Card>& cards, const std::string& profile);

class Turns {
 public:
  // `profile`: the MIG profile whose instances it hands out; empty: whole GPUs.
  explicit Turns(std::string profile = "") : profile_(std::move(profile)) {}

  // The kubelet asks what it should choose: opens the turn of the container that it asks for.
  absl::StatusOr<std::vector<std::string>> Open(const Look& look, const Offer& offer);
  // What the open turn gives for the ids that the kubelet has chosen, and closes it. nullopt: no
  // turn is open. Error: the kubelet has chosen others.
  std::optional<absl::StatusOr<Grant>> Close(std::vector<std::string> ids);
  // Ids chosen without a turn: those of an init container, which the kubelet gives on to a later
  // container of the same pod without asking.
  absl::StatusOr<Grant> Serve(const Look& look, std::vector<std::string> ids);
  // May a container start that holds these ids? Without the API server's word only where it was
  // said before of the same holder.
  absl::Status MayStart(const Look& look, std::vector<std::string> ids);
  // What was granted cannot be given after all; the kubelet ends the pod.
  void GiveUp(const PodUid& uid) { refused_.insert(uid); }
  // A new kubelet admits every pod again, also those that were served or refused.
  void Forget();

 private:
  struct Candidate {
    const BoundPod* pod = nullptr;
    const Asking* container = nullptr;
  };
  struct Turn {
    Grant grant;
    std::vector<std::string> ids;  // that the kubelet is to choose, ascending
  };
  // The container that holds ids by the kubelet's book; none of it for an init container.
  struct Holder {
    const KubeletPod* pod = nullptr;
    std::string container;
  };
  using Served = std::pair<PodUid, std::string>;

  static absl::StatusOr<Holder> HolderOf(const Look& look, const std::vector<std::string>& ids);

  bool IsOurs(const Device& device) const {
    return (device.mig ? device.mig->profile : "") == profile_;
  }
  std::vector<DeviceId> RecordOf(const BoundPod& pod, const std::string& container) const;
  std::string WhyNoRecord(const Look& look, const BoundPod& pod, const Asking& container,
                          int64_t size) const;
  bool Agrees(const BoundPod& pod, const Holder& holder, const std::vector<std::string>& ids) const;
  bool WasServedTo(const PodUid& uid, const std::vector<std::string>& ids) const;
  absl::StatusOr<Candidate> WhoseTurn(const Look& look, int64_t size);
  absl::StatusOr<Turn> Judge(const Look& look, const Offer& offer);
  std::string WhyNotNow(const Look& look, const BoundPod& pod, const Turn& turn,
                        const Offer& offer) const;
  // What the pod's init containers got and its later containers are given on.
  std::set<std::string> PoolOf(const BoundPod& pod) const;
  void Note(const Turn& turn);
  // Refused for good: the kubelet ends the pod.
  absl::Status Refuse(const BoundPod& pod, const std::string& why);
  bool IsServed(const Look& look, const BoundPod& pod, const Asking& container) const;
  std::optional<Candidate> NextOf(const Look& look, const BoundPod& pod, int64_t size) const;
  void ForgetGone(const std::vector<BoundPod>& pods);

  std::string profile_;
  std::optional<Turn> open_;
  // Ids by the kubelet's book; of init containers nobody else says them.
  std::map<Served, std::vector<std::string>> served_;
  GivenParts given_;          // until their pods are gone from the API server
  std::set<PodUid> refused_;  // until they are gone from the API server
  std::map<std::vector<std::string>, PodName> started_;  // who was found right to hold these
};

}  // namespace tranche::agent
