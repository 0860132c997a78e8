// The workshop: makes MIG instances where records say, and removes those that nobody has.
//
// All instances on the node's cards are ours to remove: nobody else makes any there. What an
// instance is for is told by the records and the kubelet's book alone, so that nothing has to be
// remembered over a crash. One that is found at the very place of a record is taken up where it may
// be the pod's own, and made anew where it is not. A place is closed while something is there that
// cannot be removed, and for a while after the driver failed to make an instance.
//
// Thread rule: one thread. Cost: calls of the driver.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/turns/device_id.h"
#include "scheduler/turns/look.h"
#include "scheduler/turns/mig_driver.h"
#include "scheduler/turns/turns.h"

namespace tranche::agent {

class Workshop {
 public:
  // Rounds of Clear after which a place where the driver failed is tried again.
  static constexpr int kRests = 30;

  explicit Workshop(MigDriver& driver) : driver_(driver) {}

  // The MIG device for one device of a grant. Requires: of a turn, which has made sure that nobody
  // else has a right to anything that overlaps it. Error: there is none, and the place is closed.
  absl::StatusOr<std::string> Provide(const Grant& grant, const DeviceId& id);
  // Is there, at the place, what its container was given? The reason where not.
  absl::Status Check(const DeviceId& id);

  // A moment before a look. What was provided after it is left alone by Clear.
  uint64_t moment() const { return provided_; }
  // Removes what neither a record nor the kubelet's book names. Does nothing where the API server
  // did not answer.
  void Clear(const Look& look, uint64_t moment);

  // Closed places, disjoint on each card.
  const std::map<GpuUuid, std::vector<ClosedPlace>>& closed() const { return closed_; }

 private:
  struct Given {
    PodUid uid;
    std::string uuid;
    uint64_t moment = 0;
  };
  struct Failure {
    std::string why;
    int rests = kRests;
  };

  bool MayBeItsOwn(const Grant& grant, const Instance& instance, const DeviceId& id) const;
  absl::StatusOr<std::string> MakeAt(const DeviceId& id, const std::vector<Instance>& before);
  absl::Status RemoveOthers(const DeviceId& id, const std::vector<Instance>& others);
  void ClearCard(const Look& look, const GpuUuid& gpu, uint64_t moment);
  absl::Status Fail(const DeviceId& id, const std::string& why);
  void Publish();

  MigDriver& driver_;
  std::map<std::string, Given> given_;        // by id: what containers were given
  std::map<std::string, Failure> failures_;   // by id
  std::map<std::string, std::string> stuck_;  // by id: instances that cannot be removed, and why
  std::map<GpuUuid, std::vector<ClosedPlace>> closed_;
  uint64_t provided_ = 0;
};

}  // namespace tranche::agent
