// Resource claims as the API server has them: when each had devices, which, and for whom.
//
// What a device is was told by the slice that was published of it last: it stays what it was while
// no slice tells of it.
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "test/sim/base/history.h"

namespace tranche::sim::check {

struct ClaimDevice {
  std::string name;     // "pool/device"
  std::string product;  // as NVML names it; empty: no slice told of it
  std::string profile;  // of a MIG instance; empty: a whole card
};
// A time in which a claim had devices.
struct Allocation {
  SimTime from{0};
  std::optional<SimTime> to;
  std::vector<ClaimDevice> devices;
  std::string user;  // uid of who it was reserved for first; empty: nobody
};
struct ClaimLife {
  std::string key;                      // "ns/name"
  std::vector<Allocation> allocations;  // in order

  std::string ns() const { return key.substr(0, key.find('/')); }
  const Allocation* current() const {
    return allocations.empty() || allocations.back().to ? nullptr : &allocations.back();
  }
};

class ClaimLives {
 public:
  void Hear(const Happening& happening);
  // By uid.
  const std::map<std::string, ClaimLife>& all() const { return claims_; }

 private:
  void HearSlice(const Json& slice);
  void HearClaim(const Happening& happening);

  std::map<std::string, ClaimLife> claims_;
  std::map<std::string, ClaimDevice> devices_;  // by name
};

}  // namespace tranche::sim::check
