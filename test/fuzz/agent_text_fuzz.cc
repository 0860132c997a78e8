// The keys node agents and their schedulers write on pods, in every grammar.
//
// Input: a letter for the request style ("a" is the first), a digit for how the containers ask, the
// rest of the line is skipped; then a line KEY=TEXT for each annotation.
#include <algorithm>
#include <map>

#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/json/text_fields.h"
#include "test/fuzz/input.h"

namespace {

using namespace tranche;

PodRequest RequestOf(std::string_view line) {
  PodRequest request;
  const int style = line.empty() ? 0 : line[0] - 'a';
  if (style >= 0 && style < kRequestStyles) request.style = static_cast<RequestStyle>(style);
  const int counts = line.size() < 2 ? 0 : std::clamp(line[1] - '0', 0, 9);
  request.containers = {{"warm", ContainerRole::kInit, 1, {}},
                        {"main", ContainerRole::kApp, 1, {}},
                        {"side", ContainerRole::kApp, 1, {}}};
  const int64_t asked[] = {counts / 9, counts % 3, counts / 3 % 3};
  for (int container = 0; container < 3; ++container) {
    if (asked[container] == 0) continue;
    Ask ask;
    ask.container = container;
    ask.resource = Resource::kShare;
    ask.count = asked[container];
    request.asks.push_back(ask);
  }
  return request;
}

// The agent whose keys keep every device and its order, of styles that only such agents serve;
// kNone: there is none.
AgentKind PlaceholderOf(RequestStyle style) {
  switch (style) {
    case RequestStyle::kHami:
      return AgentKind::kHami;
    case RequestStyle::kVolcano:
      return AgentKind::kVolcano;
    case RequestStyle::kTkestack:
      return AgentKind::kTkestack;
    case RequestStyle::kElastic:
      return AgentKind::kElastic;
    case RequestStyle::kVgpuManager:
      return AgentKind::kVgpuManager;
    default:
      return AgentKind::kNone;
  }
}

void CheckBounds(const Allocation& allocation, const PodRequest& request) {
  TRANCHE_CHECK(!allocation.containers.empty());
  std::size_t position = 0;  // containers come in the pod's order, each once
  for (const ContainerDevices& container : allocation.containers) {
    while (position < request.containers.size() &&
           request.containers[position].name != container.container) {
      ++position;
    }
    TRANCHE_CHECK(position < request.containers.size());
    ++position;
    TRANCHE_CHECK(!container.devices.empty() && container.devices.size() <= 64);
    for (const Device& device : container.devices) {
      TRANCHE_CHECK(device.card >= 0 && device.card < 64);
      TRANCHE_CHECK(device.milli >= MilliGpu::Zero() && device.milli <= kWholeGpu);
      TRANCHE_CHECK(device.memory >= Mebibytes::Zero());
    }
  }
}

std::map<std::string, std::string> Written(AgentKind agent, const PodRequest& request,
                                           const Allocation& allocation) {
  wire::AgentCall call;
  call.agent = agent;
  call.minor = 10;
  call.node = "n1";
  call.card_memory.assign(4, Mebibytes::Of(16'384));
  return wire::AgentAnnotations(call, request, allocation);
}

// What was read is written and read again as the same.
void CheckRoundTrip(const PodRequest& request, const Allocation& allocation) {
  const AgentKind agent = PlaceholderOf(request.style);
  if (agent == AgentKind::kNone) return;
  const std::map<std::string, std::string> texts = Written(agent, request, allocation);
  wire::AgentText text;
  for (const auto& [key, value] : texts) text.Set(key, value);
  const auto again = text.Devices(request, NodeName("n1"));
  TRANCHE_CHECK(again.ok() && *again == allocation);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string input = fuzz::Padded(data, size);
  std::string_view rest = input;
  const PodRequest request = RequestOf(wire::TakeUntil(rest, '\n').value_or(rest));
  wire::AgentText text;
  while (!rest.empty()) {
    std::string_view line = wire::TakeUntil(rest, '\n').value_or(rest);
    if (rest.data() == line.data()) rest = {};
    const std::optional<std::string_view> key = wire::TakeUntil(line, '=');
    if (key) text.Set(*key, line);
  }
  (void)text.Progress(request);
  const auto read = text.Devices(request, NodeName("n1"));
  if (!read.ok() || !read->has_value()) return 0;
  CheckBounds(**read, request);
  for (int agent = 0; agent < kAgentKinds; ++agent) {
    (void)Written(static_cast<AgentKind>(agent), request, **read);
  }
  CheckRoundTrip(request, **read);
  return 0;
}
