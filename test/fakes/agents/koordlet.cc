#include "test/fakes/agents/koordlet.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

using Json = nlohmann::json;

// A quantity of bytes in MiB, rounded down; nullopt: none.
std::optional<int64_t> ReadMib(const Json& resources) {
  static constexpr std::pair<const char*, int64_t> kSuffixes[] = {
      {"Ti", int64_t{1} << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}};
  const std::string text = resources.value("koordinator.sh/gpu-memory", "");
  for (const auto& [suffix, factor] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    const auto number = ReadNumber(text.substr(0, text.size() - std::string(suffix).size()));
    if (!number) return std::nullopt;
    return static_cast<int64_t>(*number) * factor / (1 << 20);
  }
  return std::nullopt;
}

std::optional<int64_t> ReadPercent(const Json& resources, const char* key) {
  const std::optional<uint64_t> number = ReadNumber(resources.value(key, ""));
  return number ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

bool AsksGpu(const FakeContainer& container) {
  return std::any_of(container.limits.begin(), container.limits.end(), [](const auto& limit) {
    return limit.first.starts_with("koordinator.sh/gpu") || limit.first == "nvidia.com/gpu";
  });
}

}  // namespace

Service Koordlet::Allocate(const DeviceCall& call) {
  return ServiceError("koordlet has no plugin for " + call.resource);
}

Service Koordlet::Hook(const std::string& node, const ContainerId& owner) {
  const std::optional<FakeNode> here = pods_.Node(node);
  const std::optional<FakePod> pod = pods_.Pod(owner.uid);
  if (!here || !pod) return ServiceError("no pod " + owner.uid);
  const auto first = std::find_if(pod->containers.begin(), pod->containers.end(), AsksGpu);
  if (first == pod->containers.end()) return {};
  const Json decision =
      Json::parse(pod->Note("scheduling.koordinator.sh/device-allocated"), nullptr, false);
  if (!decision.is_object() || !decision.contains("gpu")) {
    return ServiceError(pod->name + ": no devices were decided");
  }
  Service service;
  service.believed = owner;
  std::string visible;
  for (const Json& device : decision.at("gpu")) {
    const int card = device.value("minor", -1);
    const Json& resources = device.at("resources");
    const std::optional<int64_t> memory = ReadMib(resources);
    const std::optional<int64_t> cores = ReadPercent(resources, "koordinator.sh/gpu-core");
    const auto ratio = ReadPercent(resources, "koordinator.sh/gpu-memory-ratio");
    if (card < 0 || static_cast<std::size_t>(card) >= here->cards.size() || !memory || !cores ||
        !ratio) {
      return ServiceError(pod->name + ": cannot read its devices");
    }
    if (owner.container == first->name) service.grants.push_back({card, *memory, *cores});
    visible += (visible.empty() ? "" : ",") + std::to_string(card);
  }
  service.env["NVIDIA_VISIBLE_DEVICES"] = visible;
  return service;
}

}  // namespace tranche::fakes
