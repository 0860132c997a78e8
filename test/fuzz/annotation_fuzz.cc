// Annotations anyone may write on pods and nodes.
#include "scheduler/wire/agents/node_lock.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/node_links.h"
#include "scheduler/wire/records/allocation_json.h"
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
  (void)wire::ParseHamiScores(text);
  // Links of two cards that are there, and of others that are not.
  std::vector<AgentDevice> devices(2);
  devices[1].index = 1;
  devices[0].uuid = GpuUuid("GPU-a");
  devices[1].uuid = GpuUuid("GPU-b");
  if (const auto links = wire::ParseVgpuManagerLinks(text, devices); links.ok()) {
    for (const PairScore& score : *links) {
      TRANCHE_CHECK(score.points > 0 && score.points <= 1'860 && score.left != score.right);
    }
  }
  return 0;
}
