// Registers of node agents: annotations anyone with node rights may write, and Koordinator's
// object.
#include "scheduler/index/inventory.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "test/fuzz/input.h"

namespace {

using namespace tranche;

// Whatever a register says, its cards can be told apart and counted.
void Check(const AgentRegister& agent) {
  TRANCHE_CHECK(agent.kind != AgentKind::kNone);
  TRANCHE_CHECK(agent.memory_unit >= Mebibytes::Of(1));
  int last = -1;
  for (const AgentDevice& device : agent.devices) {
    TRANCHE_CHECK(device.index > last);
    last = device.index;
    TRANCHE_CHECK(device.memory >= Mebibytes::Zero());
    TRANCHE_CHECK(device.cores_percent >= 0 && device.slots >= 0);
  }
  NodeFacts node;
  node.name = NodeName("n");
  node.gpu = ResourceCount{1, 1};
  node.agent = agent;
  const Inventory inventory = BuildInventory(node, 0);
  TRANCHE_CHECK(inventory.cards.size() == agent.devices.size());
  TRANCHE_CHECK(inventory.agent == agent.kind);
}

template <typename Parsed>
void CheckParsed(const absl::StatusOr<Parsed>& parsed) {
  if (parsed.ok()) {
    Check(*parsed);
  } else {
    TRANCHE_CHECK(!parsed.status().message().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Padded(data, size);
  CheckParsed(wire::ParseHamiRegister(text));
  CheckParsed(wire::ParseFourPdRegister(text));
  CheckParsed(wire::ParseVolcanoRegister(text, std::nullopt));
  CheckParsed(wire::ParseVolcanoRegister(text, Mebibytes::Of(15109)));
  // vgpu-manager's devices and configuration on lines of their own.
  const std::size_t line = text.find('\n');
  const std::string devices = text.substr(0, line);
  const std::string config = line == std::string::npos ? "{}" : text.substr(line + 1);
  CheckParsed(wire::ParseVgpuManagerRegister(devices, config));
  // Unhealthy ids, for a node that advertises sixty-four cards.
  wire::CardHints hints;
  hints.unhealthy = text;
  const auto derived =
      wire::RegisterOfAmounts(AgentKind::kVolcanoOld, {{"volcano.sh/gpu-number", {64, 64}}}, hints);
  if (derived.ok()) Check(derived->agent);
  wire::Parser parser;
  const absl::StatusOr<wire::Element> document = parser.Parse(text);
  if (!document.ok()) return 0;
  const auto object = wire::DecodeKoordinatorDevice(*document);
  if (object.ok() && object->agent) Check(*object->agent);
  return 0;
}
