// Annotations anyone may write on pods and nodes.
#include "scheduler/wire/agent_registers.h"
#include "scheduler/wire/allocation_json.h"
#include "scheduler/wire/node_lock.h"
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
  (void)wire::ParseFourPdRegister(text);
  (void)wire::ParseVolcanoRegister(text, Mebibytes::Of(32'768));
  (void)wire::ParseVgpuManagerRegister(text, R"({"memoryFactor":4})");
  (void)wire::ParseVgpuManagerRegister("[]", text);
  (void)wire::ParseNodeLock(text);
  return 0;
}
