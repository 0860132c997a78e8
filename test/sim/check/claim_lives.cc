#include "test/sim/check/claim_lives.h"

#include <algorithm>
#include <utility>

#include "test/sim/check/truth.h"

namespace tranche::sim::check {
namespace {

// "pool/device" of an allocation.
std::vector<std::string> NamesOf(const Json& claim) {
  std::vector<std::string> names;
  const Json& results = At(claim, {"status", "allocation", "devices", "results"});
  if (!results.is_array()) return names;
  for (const Json& result : results) {
    names.push_back(TextAt(result, {"pool"}) + "/" + TextAt(result, {"device"}));
  }
  return names;
}

}  // namespace

void ClaimLives::Hear(const Happening& happening) {
  if (happening.kind != Happening::Kind::kWritten) return;
  if (happening.resource == "resourceslices" && !happening.after.is_null()) {
    HearSlice(happening.after);
  }
  if (happening.resource == "resourceclaims") HearClaim(happening);
}

void ClaimLives::HearSlice(const Json& slice) {
  const Json& devices = At(slice, {"spec", "devices"});
  if (!devices.is_array()) return;
  for (const Json& device : devices) {
    const std::string name =
        TextAt(slice, {"spec", "pool", "name"}) + "/" + TextAt(device, {"name"});
    devices_[name] = {name, TextAt(device, {"attributes", "productName", "string"}),
                      TextAt(device, {"attributes", "profile", "string"})};
  }
}

void ClaimLives::HearClaim(const Happening& happening) {
  const bool there = !happening.after.is_null();
  const Json& object = there ? happening.after : happening.before;
  ClaimLife& claim = claims_[TextAt(object, {"metadata", "uid"})];
  claim.key = happening.key;
  const std::vector<std::string> names =
      there ? NamesOf(happening.after) : std::vector<std::string>();
  const Allocation* const current = claim.current();
  const bool same = current == nullptr
                        ? names.empty()
                        : std::ranges::equal(names, current->devices, {}, {}, &ClaimDevice::name);
  if (same) return;
  if (current != nullptr) claim.allocations.back().to = happening.at;
  if (names.empty()) return;
  Allocation& allocation = claim.allocations.emplace_back();
  allocation.from = happening.at;
  for (const std::string& name : names) {
    const auto known = devices_.find(name);
    allocation.devices.push_back(known == devices_.end() ? ClaimDevice{name, "", ""}
                                                         : known->second);
  }
  const Json& users = At(happening.after, {"status", "reservedFor"});
  if (users.is_array() && !users.empty()) allocation.user = TextAt(users[0], {"uid"});
}

}  // namespace tranche::sim::check
