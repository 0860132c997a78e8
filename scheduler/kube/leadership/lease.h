// A Lease object (coordination.k8s.io/v1) as a value, and who may lead by it: a state machine
// without clock, socket or thread.
//
// Followers look at the lease every `retry`; one that has not changed for as long as it says, by
// their own clock, is over, and the first to write its name leads. The leader writes a new
// renewTime every `retry`; what it may do ends `renew` after it sent the last renewal that
// succeeded, for good. Times in the object are for people: nobody compares them with a clock.
//
// Thread rule: values, one thread at a time. Source: kube-client-protocol section 15.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/kube/leadership/grant.h"
#include "topology/base/ids.h"

namespace tranche::kube {

struct LeaseRecord {
  std::string holder;  // empty: nobody
  std::chrono::seconds duration{0};
  int64_t transitions = 0;
  std::string acquired;  // RFC 3339 with microseconds
  std::string renewed;
  std::string version;  // metadata.resourceVersion
  // The whole object, whose other fields a write carries along; null: there is none.
  std::shared_ptr<const nlohmann::json> object;

  // A sign of life between two looks. The version is left out: others may label the object.
  bool SaysTheSame(const LeaseRecord& other) const {
    return holder == other.holder && duration == other.duration &&
           transitions == other.transitions && acquired == other.acquired &&
           renewed == other.renewed;
  }
};

// Errors: InvalidArgument where it is no Lease with a resourceVersion. Missing fields are empty.
absl::StatusOr<LeaseRecord> DecodeLease(std::string_view json);
// The object with the record's fields in it; `ns` and `name` are of one that is made anew.
std::string EncodeLease(const LeaseRecord& record, const NamespacedName& lease);
// Exactly six decimals, as the API wants them.
std::string MicroTime(std::chrono::system_clock::time_point when);

// lease > renew > 1.2 x retry.
struct LeaseTimes {
  std::chrono::milliseconds lease{15'000};
  std::chrono::milliseconds renew{10'000};
  std::chrono::milliseconds retry{2'000};
};

class LeaseMachine {
 public:
  enum class Role : uint8_t {
    kFollower,
    kLeader,
    kLost,  // led, and does no longer: for good
  };
  enum class Do : uint8_t {
    kWait,    // until Step::at
    kRead,    // GET, then Found, Missing or Failed
    kCreate,  // POST of Claim, then Wrote, Refused or Failed
    kWrite,   // PUT of Claim, likewise
    kStop,    // role() is kLost: nothing more is to be done
  };
  struct Step {
    Do what = Do::kWait;
    BootTime at{};
  };

  // `seed`: of the random part of a follower's waits, so that two do not ask together for ever.
  LeaseMachine(std::string identity, LeaseTimes times, uint64_t seed)
      : identity_(std::move(identity)), times_(times), random_(seed) {}

  Role role() const { return role_; }
  // Of the leader: until when it may write. Counts from before its last renewal was sent.
  BootTime grant_end() const { return granted_ + times_.renew; }
  // What the lease said last; nullopt: nothing yet, or there is none.
  const std::optional<LeaseRecord>& seen() const { return seen_; }
  // One more than the changes of hands, so that the first leader's is 1.
  int64_t epoch() const { return seen_ ? seen_->transitions + 1 : 0; }

  // Of the next who is not the holder, as the lease alone says.
  int64_t NextEpoch() const { return seen_ ? seen_->transitions + 2 : 1; }

  Step Next(BootTime now);
  // What to write at kCreate and kWrite. `wall` is the time shown to people. The epoch will be at
  // least `least_epoch`: a lease that was deleted begins to count anew.
  LeaseRecord Claim(std::string wall, int64_t least_epoch) const;

  // Outcomes. Times are of when the answer had come, for Wrote of before the request was sent.
  void Found(LeaseRecord record, BootTime now);
  void Missing(BootTime now);
  void Wrote(LeaseRecord record, BootTime sent, BootTime now);
  // 409: somebody else wrote first.
  void Refused(BootTime now);
  // No answer, or one that says nothing. A write may have happened.
  void Failed(BootTime now);

 private:
  BootTime FollowersPause();
  BootTime DurationOf(const LeaseRecord& lease) const;

  const std::string identity_;
  const LeaseTimes times_;
  std::minstd_rand random_;
  Role role_ = Role::kFollower;
  std::optional<LeaseRecord> seen_;
  BootTime changed_{};              // when seen_ was first seen so
  std::optional<BootTime> silent_;  // there was a holder; its lease is gone since
  Do due_ = Do::kRead;
  BootTime due_at_{};
  BootTime granted_{};  // of the leader
};

}  // namespace tranche::kube
