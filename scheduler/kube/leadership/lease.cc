#include "scheduler/kube/leadership/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/kube/transport/api_status.h"
#include "topology/base/plant.h"

namespace tranche::kube {
namespace {

std::string TextAt(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t NumberAt(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// The API's own bounds: 32 bits.
constexpr int64_t kMostTransitions = INT32_MAX;
constexpr int64_t kLongestSeconds = 24 * 3600;

}  // namespace

absl::StatusOr<LeaseRecord> DecodeLease(std::string_view json) {
  nlohmann::json object = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const bool is_lease = object.is_object() && TextAt(object, "kind") == "Lease" &&
                        object.contains("metadata") && object["metadata"].is_object();
  LeaseRecord record;
  if (is_lease) record.version = TextAt(object["metadata"], "resourceVersion");
  if (record.version.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("expected a Lease with metadata.resourceVersion, found {}",
                    CutMessage(json.substr(0, 64))));
  }
  if (const auto spec = object.find("spec"); spec != object.end() && spec->is_object()) {
    record.holder = TextAt(*spec, "holderIdentity");
    record.duration = std::chrono::seconds(
        std::clamp<int64_t>(NumberAt(*spec, "leaseDurationSeconds"), 0, kLongestSeconds));
    record.transitions =
        std::clamp<int64_t>(NumberAt(*spec, "leaseTransitions"), 0, kMostTransitions);
    record.acquired = TextAt(*spec, "acquireTime");
    record.renewed = TextAt(*spec, "renewTime");
  }
  object["metadata"].erase("managedFields");  // the server keeps them itself
  record.object = std::make_shared<const nlohmann::json>(std::move(object));
  return record;
}

std::string EncodeLease(const LeaseRecord& record, const NamespacedName& lease) {
  nlohmann::json object;
  if (record.object != nullptr) {
    object = *record.object;
  } else {
    object = {{"apiVersion", "coordination.k8s.io/v1"},
              {"kind", "Lease"},
              {"metadata", {{"name", lease.name}, {"namespace", lease.ns}}}};
  }
  if (!record.version.empty()) object["metadata"]["resourceVersion"] = record.version;
  nlohmann::json& spec = object["spec"];
  if (!spec.is_object()) spec = nlohmann::json::object();
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration.count();
  spec["leaseTransitions"] = record.transitions;
  spec["acquireTime"] = record.acquired;
  spec["renewTime"] = record.renewed;
  return object.dump();
}

std::string MicroTime(std::chrono::system_clock::time_point when) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(when);
  const auto day = std::chrono::floor<std::chrono::days>(micros);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(micros - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

BootTime LeaseMachine::FollowersPause() {
  const int64_t fifth = std::max<int64_t>(times_.retry.count() / 5, 1);
  std::uniform_int_distribution<int64_t> extra(0, fifth);
  return times_.retry + std::chrono::milliseconds(extra(random_));
}

// As the holder promised it; ours where it promised nothing.
BootTime LeaseMachine::DurationOf(const LeaseRecord& lease) const {
  return lease.duration.count() > 0 ? BootTime(lease.duration) : BootTime(times_.lease);
}

LeaseMachine::Step LeaseMachine::Next(BootTime now) {
  if (role_ == Role::kLeader && now >= grant_end()) role_ = Role::kLost;
  if (role_ == Role::kLost) return {Do::kStop, now};
  BootTime at = due_at_;
  if (role_ == Role::kLeader) at = std::min(at, grant_end());
  if (now < at) return {Do::kWait, at};
  return {due_, now};
}

LeaseRecord LeaseMachine::Claim(std::string wall, int64_t least_epoch) const {
  LeaseRecord claim;
  if (seen_) claim = *seen_;
  if (!seen_ || claim.holder != identity_) {
    claim.transitions = std::min(std::max(least_epoch, NextEpoch()) - 1, kMostTransitions);
    claim.acquired = wall;
  }
  claim.holder = identity_;
  claim.duration = std::chrono::duration_cast<std::chrono::seconds>(times_.lease);
  claim.renewed = std::move(wall);
  return claim;
}

void LeaseMachine::Found(LeaseRecord record, BootTime now) {
  const bool changed = !seen_ || !seen_->SaysTheSame(record);
  seen_ = std::move(record);
  if (changed) changed_ = now;
  silent_.reset();
  if (role_ == Role::kLeader) {
    // Our own write whose answer was lost, or somebody labelled the object.
    if (seen_->holder == identity_) {
      due_ = Do::kWrite;
      due_at_ = now;
    } else {
      role_ = Role::kLost;
    }
    return;
  }
  const bool free = seen_->holder.empty() || seen_->holder == identity_;
  const BootTime over = changed_ + (TRANCHE_PLANTED(lease_taken_too_early) ? BootTime(times_.retry)
                                                                           : DurationOf(*seen_));
  if (free || now >= over) {
    due_ = Do::kWrite;
    due_at_ = now;
  } else {
    due_ = Do::kRead;
    due_at_ = std::min(now + FollowersPause(), over);
  }
}

void LeaseMachine::Missing(BootTime now) {
  // Somebody deleted it. Its holder has not heard of that yet and goes on for a while.
  if (seen_ && !seen_->holder.empty() && !silent_) silent_ = changed_ + DurationOf(*seen_);
  const bool ours = role_ == Role::kLeader;
  if (!ours && silent_ && now < *silent_) {
    due_ = Do::kRead;
    due_at_ = std::min(now + FollowersPause(), *silent_);
    return;
  }
  if (seen_) {
    seen_->version.clear();
    seen_->object.reset();
  }
  due_ = Do::kCreate;
  due_at_ = now;
}

void LeaseMachine::Wrote(LeaseRecord record, BootTime sent, BootTime now) {
  seen_ = std::move(record);
  changed_ = now;
  silent_.reset();
  if (role_ == Role::kFollower) role_ = Role::kLeader;
  granted_ = TRANCHE_PLANTED(grant_counts_from_the_answer) ? now : sent;
  due_ = Do::kWrite;
  due_at_ = sent + times_.retry;
}

void LeaseMachine::Refused(BootTime now) {
  due_ = Do::kRead;
  due_at_ = now;
}

void LeaseMachine::Failed(BootTime now) {
  // A follower that tried to write looks before it tries again; a leader tries again, and a write
  // that happened after all is refused then.
  if (role_ == Role::kFollower) due_ = Do::kRead;
  due_at_ = now + (role_ == Role::kFollower ? FollowersPause() : BootTime(times_.retry));
}

}  // namespace tranche::kube
