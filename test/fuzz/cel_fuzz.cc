// Selectors of DRA, and objects of resource.k8s.io with the selectors in them.
#include <vector>

#include "scheduler/dra/allocate.h"
#include "scheduler/dra/cel.h"
#include "scheduler/dra/charge.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/json/json.h"
#include "test/fuzz/input.h"

namespace {

using namespace tranche;
using namespace tranche::dra;

Device SomeDevice() {
  const std::string domain(kGpuDriver);
  Device device;
  device.name = "gpu-0";
  device.attributes = {{{domain, "index"}, int64_t{3}},
                       {{domain, "list"}, OtherValue{}},
                       {{domain, "profile"}, std::string("1g.5gb")},
                       {{domain, "shared"}, true},
                       {{domain, "version"}, VersionText{"1.2.3-rc.1"}}};
  device.capacities = {{{domain, "memory"}, Quantity::Whole(4864), {}}};
  return device;
}

void CheckSelector(const std::string& text) {
  static const Device kDevice = SomeDevice();
  const auto match = [](const std::string& selector) {
    return Expression::Compile(selector).Matches(kDevice, kGpuDriver).match;
  };
  const Match alone = match(text);
  TRANCHE_CHECK(alone == match(text));
  if (!ParseCel(text).ok()) {
    TRANCHE_CHECK(alone == Match::kUnknown);
    return;
  }
  // What can be read stands for one operand, whatever it is: true || absorbs all of it. One more
  // level of nesting may be one too many, which is unknown.
  const Match absorbed = match("(" + text + "\n) || true");
  TRANCHE_CHECK(absorbed == Match::kYes || absorbed == Match::kUnknown);
  const Match inverse = match("!(" + text + "\n)");
  TRANCHE_CHECK(alone != Match::kYes || inverse == Match::kNo || inverse == Match::kUnknown);
  TRANCHE_CHECK(alone != Match::kNo || inverse == Match::kYes || inverse == Match::kUnknown);
}

// Whatever a slice and a claim say, the books add up and a prediction ends.
void CheckObject(const std::string& text) {
  wire::Parser parser;
  const auto element = parser.Parse(text, wire::Padding::kThere);
  if (!element.ok()) return;
  std::vector<DeviceClass> classes;
  if (auto read = wire::DecodeDeviceClass(*element); read.ok()) classes.push_back(*read);
  classes.push_back({});
  classes.back().name = "any";
  std::vector<const Slice*> slices;
  const auto slice = wire::DecodeSlice(*element);
  if (slice.ok()) slices.push_back(&*slice);
  const auto claim = wire::DecodeClaim(*element);
  std::vector<const Claim*> claims;
  if (claim.ok()) claims.push_back(&*claim);
  const NodeBooks books = BooksOf(PoolsOf(slices, {"n1"}), Occupancy(claims));
  Selectors selectors(classes);
  (void)Predict(books, claims, selectors, 100);
  if (claim.ok()) {
    (void)ChargeAtMost(*claim, books, selectors);
    if (claim->allocation) (void)ChargeOfAllocation(*claim, DeviceTable(slices));
  }
  (void)wire::DecodeClaimTemplate(*element);
  (void)wire::DecodePodClaims(*element);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Padded(data, size);
  if (text.starts_with('{')) {
    CheckObject(text);
  } else {
    CheckSelector(text);
  }
  return 0;
}
