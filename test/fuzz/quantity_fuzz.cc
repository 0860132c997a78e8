// Quantities and the names of MIG resources.
#include "test/fuzz/input.h"
#include "topology/base/quantity.h"
#include "topology/mig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const std::string text = fuzz::Padded(data, size);
  if (const auto value = ParseWholeQuantity(text); value.ok()) {
    // The plain number is the same quantity.
    TRANCHE_CHECK(ParseWholeQuantity(std::to_string(*value)).value() == *value);
  }
  if (const auto name = ParseMigResourceTail(text)) {
    const std::string key = FormatMigResource(*name);
    const auto again = ParseMigResourceTail(std::string_view(key).substr(15));
    TRANCHE_CHECK(again.has_value() && *again == *name);
  }
  return 0;
}
