// Annotations anyone may write on pods and nodes.
#include "scheduler/wire/allocation_json.h"
#include "scheduler/wire/hami.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const std::string text = fuzz::Padded(data, size);
  if (const auto allocation = wire::DecodeAllocation(text); allocation.ok()) {
    // What was read is written and read again as the same.
    const auto again = wire::DecodeAllocation(wire::EncodeAllocation(*allocation));
    TRANCHE_CHECK(again.ok() && *again == *allocation);
  }
  (void)wire::ParseHamiRegister(text);
  const std::vector<ContainerInfo> containers = {{"init", ContainerRole::kInit, 1},
                                                 {"main", ContainerRole::kApp, 1}};
  (void)wire::ParseHamiDevices(text, containers);
  return 0;
}
