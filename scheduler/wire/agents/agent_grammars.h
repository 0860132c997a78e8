// The grammars behind agents.h, one file each, and what they share. For wire alone.
//
// A grammar writes the keys of one agent, or the results of a request style that has no agent, and
// reads them back. Plain functions and constants; any thread.
// Source: request-dialects sections 4.3, 5-10, 12, 13.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/wire/agents/agents.h"

namespace tranche::wire {

using AgentValues = std::map<std::string_view, std::string_view>;  // key -> text
using Annotations = std::map<std::string, std::string>;

struct AgentGrammar {
  AgentKind agent = AgentKind::kNone;  // kNone: results of the style `style`, on any node
  RequestStyle style = RequestStyle::kNone;
  std::string_view node_key;               // names the node it was written for; empty: none does
  std::span<const std::string_view> keys;  // all it writes or its owners do
  std::string_view key_prefix;             // and those that start so; empty: none
  void (*write)(const AgentCall& call, const PodRequest& request, const Allocation& allocation,
                Annotations& out) = nullptr;
  // The containers with devices; empty: no such keys. Errors: InvalidArgument, see ErrorAt.
  absl::StatusOr<std::vector<ContainerDevices>> (*read)(const AgentValues& values,
                                                        const PodRequest& request) = nullptr;
  AgentProgress (*progress)(const AgentValues& values) = nullptr;
};
extern const AgentGrammar kHamiGrammar;
extern const AgentGrammar kFourPdGrammar;
extern const AgentGrammar kVolcanoGrammar;
extern const AgentGrammar kVolcanoOldGrammar;
extern const AgentGrammar kGpushareGrammar;
extern const AgentGrammar kTkestackGrammar;
extern const AgentGrammar kElasticGrammar;
extern const AgentGrammar kVgpuManagerGrammar;
extern const AgentGrammar kKoordinatorGrammar;
extern const AgentGrammar kOpenGpuShareGrammar;
extern const AgentGrammar kHivedGrammar;

inline constexpr std::size_t kMaxAgentDevices = 64;  // of a container, and of a pod's one list
inline constexpr int64_t kMaxAgentCard = 63;
inline constexpr std::size_t kMaxUuidBytes = 128;
inline constexpr int64_t kMilliPerPercent = 10;

// Where a text stands, for errors: "hami.io/x" or "device 0 of container \"a\" in hami.io/x".
std::string ContainerAt(std::string_view key, std::string_view container);
std::string DeviceAt(std::string_view key, std::string_view container, std::size_t device);
// InvalidArgument "expected X, found \"Y\", in Z".
absl::Status ErrorAt(std::string_view expected, std::string_view found, std::string_view where);

std::optional<std::string_view> ValueOf(const AgentValues& values, std::string_view key);
// The devices of a container; empty: it has none.
std::span<const Device> DevicesOf(const Allocation& allocation, std::string_view container);
// Names in spec.containers, in order.
std::vector<std::string_view> AppContainers(const PodRequest& request);

// Percent of the cores: rounded down, so that shares of a card never add up to more than it, but at
// least 1 of a share that has any.
int64_t CoresPercent(MilliGpu milli);
std::string UnixSeconds(Instant now);

// Card numbers, 0..63, at most 64: "0,1".
struct CardList {
  char separator = ',';
  bool repeats = false;  // a card may stand there several times
};
std::string WriteCards(std::span<const Device> devices, char separator);
absl::StatusOr<std::vector<Device>> ReadCards(std::string_view text, CardList form,
                                              std::string_view where);
// The cards of the whole pod, ascending, each once.
std::vector<Device> CardsOfPod(const Allocation& allocation);

// Checks of one field each.
absl::StatusOr<GpuUuid> ReadUuid(std::string_view text, std::string_view where);
absl::StatusOr<int> ReadCard(std::string_view text, std::string_view where);
absl::StatusOr<Mebibytes> ReadMebibytes(std::string_view text, std::string_view where);
absl::StatusOr<MilliGpu> ReadCoresPercent(std::string_view text, std::string_view where);

// Gives one list for the whole pod back to the containers that asked: one after another where there
// is one device for each; all to everyone where every container asked for as many as there are (the
// amounts are then unknown: zero). Without asks the first app container has them.
absl::StatusOr<std::vector<ContainerDevices>> DealOut(std::vector<Device> devices,
                                                      const PodRequest& request,
                                                      std::string_view key);

// HAMi's device text, which 4pd and Volcano share: "uuid,NVIDIA,MiB,percent:" for each device.
// `unit`: what the memory is counted in.
void AppendHamiDevices(std::string& out, std::span<const Device> devices, Mebibytes unit);
absl::StatusOr<std::vector<Device>> ReadHamiDevices(std::string_view text, std::string_view key,
                                                    std::string_view container);
// The containers' texts joined by ";" with none behind the last: a slot for every app container,
// or for those that asked (as Volcano's own scheduler writes it).
absl::StatusOr<std::vector<ContainerDevices>> ReadJoinedList(std::string_view text,
                                                             const PodRequest& request,
                                                             std::string_view key);
// What a bind phase says: "allocating", "success", "failed".
AgentProgress PhaseProgress(std::optional<std::string_view> phase);

}  // namespace tranche::wire
