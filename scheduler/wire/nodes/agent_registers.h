// What node agents register of a node's cards: one grammar each.
//
// Some write an annotation, some only advertise amounts, Koordinator's koordlet keeps an object of
// its own. Amounts come back in MiB: what the agent counts in is AgentRegister::memory_unit.
// Pure; any thread. Source: request-dialects sections 4.2, 5-9, 10, 12.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/agent.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche::wire {

inline constexpr std::string_view kHamiRegisterKey = "hami.io/node-nvidia-register";
inline constexpr std::string_view kFourPdRegisterKey = "4pd.io/node-nvidia-register";
inline constexpr std::string_view kVolcanoRegisterKey = "volcano.sh/node-vgpu-register";
inline constexpr std::string_view kVgpuManagerRegisterKey = "nvidia.com/node-device-register";
inline constexpr std::string_view kVgpuManagerConfigKey = "nvidia.com/node-config-info";
inline constexpr std::string_view kTrancheRegisterKey = "tranche.dev/agent-register";
// The label by which a node chooses tranche-node: "true".
inline constexpr std::string_view kTrancheAgentLabel = "tranche.dev/agent";
inline constexpr std::string_view kVolcanoUnhealthyKey = "volcano.sh/gpu-unhealthy-ids";

// Registers in annotations.
// Errors: InvalidArgument naming the device, the field and the value found.

// HAMi, in either wire form: text (<= 2.7.1; 7 or 9 fields a device) or JSON (>= 2.8, with
// migProfiles from 2.10; zero values omitted).
absl::StatusOr<AgentRegister> ParseHamiRegister(std::string_view text);
// The same text form, of HAMi's ancestor.
absl::StatusOr<AgentRegister> ParseFourPdRegister(std::string_view text);
// "<uuid>,<slots>,<memory>,<type>,<health>,<mode>:" for each device. The memory is divided by a
// factor that the node does not tell; `card_memory` (the node's label, if there) or the catalogue's
// size of the type tell it.
absl::StatusOr<AgentRegister> ParseVolcanoRegister(std::string_view text,
                                                   std::optional<Mebibytes> card_memory);
// vgpu-manager's devices, and the configuration that tells its memory factor.
absl::StatusOr<AgentRegister> ParseVgpuManagerRegister(std::string_view devices,
                                                       std::string_view config);

// True for the extended resources that agents' plugins advertise and we read.
bool IsAgentResource(std::string_view key);

// What a node says beside the amounts its agent advertises.
struct CardHints {
  std::optional<Mebibytes> memory;  // label nvidia.com/gpu.memory
  std::optional<int64_t> count;     // label nvidia.com/gpu.count
  std::string_view unhealthy;       // annotation volcano.sh/gpu-unhealthy-ids: "0,2"
};

// The first agent, of those that only advertise amounts, whose resource is there.
AgentKind AgentOfAmounts(const std::vector<AgentAmount>& amounts);

struct DerivedRegister {
  AgentRegister agent;
  std::string problem;  // what is wrong with the node or its devices; empty: nothing
};

// tranche-node's devices: {"v":1,"devices":[{"uuid","index","mib","healthy","type","problem"}]}.
// Each is one card that is given whole, unless it is in MIG mode: then it has
// "mig":{"profiles":[{"name","mib","size","starts"}],"closed":[{"profile","start","size"}]}. With
// "mps":{"slots"} so many containers may share it, each held to its part.
// "problem": why the card, or a place of it, is closed.
absl::StatusOr<DerivedRegister> ParseTrancheRegister(std::string_view text);

// A register for an agent that only advertises amounts (AgentOfAmounts): cards are equal and go by
// index, as these agents have it. Cards of 1024 units and more are counted in MiB, smaller ones in
// GiB; tkestack's units are 256 MiB, elastic-gpu's 1 MiB.
// Errors: InvalidArgument when the number of cards cannot be told or is no node's.
absl::StatusOr<DerivedRegister> RegisterOfAmounts(AgentKind kind,
                                                  const std::vector<AgentAmount>& amounts,
                                                  const CardHints& hints);

// Koordinator's Device object, named as its node. nullopt: no GPU among its devices.
// Errors: InvalidArgument when this is no such object, or a GPU's fields are not the API's.
struct KoordinatorDevices {
  NodeName node;
  std::optional<AgentRegister> agent;
};
absl::StatusOr<KoordinatorDevices> DecodeKoordinatorDevice(Element device);

}  // namespace tranche::wire
