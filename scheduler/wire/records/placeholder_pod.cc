#include "scheduler/wire/records/placeholder_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/records/allocation_json.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kLabel = "tranche.dev/keeper";
constexpr std::string_view kServiceAccount = "tranche-reserve";
constexpr std::string_view kFieldPath = "metadata.annotations['tranche.dev/visible-devices']";
constexpr std::size_t kLongestDevice = 128;

Json ContainerJson(std::string_view name, std::string_view image, const Json& arguments) {
  return {{"name", name},
          {"image", image},
          {"command", {"/tranche"}},
          {"args", arguments},
          {"resources",
           {{"limits", {{"nvidia.com/gpu", "1"}, {"cpu", "20m"}, {"memory", "64Mi"}}},
            {"requests", {{"nvidia.com/gpu", "1"}, {"cpu", "1m"}, {"memory", "16Mi"}}}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false},
            {"readOnlyRootFilesystem", true},
            {"capabilities", {{"drop", {"ALL"}}}}}}};
}

// What the init container said when it ended well; empty: nothing yet.
std::string_view Told(Object pod) {
  const std::optional<Object> status = FindObject(pod, "status");
  const auto containers = status ? FindArray(*status, "initContainerStatuses") : std::nullopt;
  if (!containers) return {};
  for (const Element element : *containers) {
    Object container;
    if (element.get(container) != simdjson::SUCCESS) continue;
    if (FindText(container, "name").value_or("") != kPlaceholderTeller) continue;
    const std::optional<Object> state = FindObject(container, "state");
    const std::optional<Object> ended = state ? FindObject(*state, "terminated") : std::nullopt;
    if (!ended || FindInteger(*ended, "exitCode").value_or(-1) != 0) return {};
    return OneDevice(FindText(*ended, "message").value_or(""));
  }
  return {};
}

}  // namespace

std::string EncodePlaceholder(const PlaceholderOrder& order, std::string_view image) {
  const Json metadata = {
      {"name", order.pod.name},
      {"namespace", order.pod.ns},
      {"labels", {{"app.kubernetes.io/name", "tranche-reserve"}, {kLabel, "true"}}},
      {"annotations", {{kAllocationKey, EncodeAllocation(order.record)}}}};
  const Json spec = {
      {"nodeName", order.node.str()},
      {"serviceAccountName", kServiceAccount},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"restartPolicy", "Always"},
      {"terminationGracePeriodSeconds", 1},
      {"priorityClassName", "system-node-critical"},
      {"tolerations", Json::array({{{"operator", "Exists"}}})},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", 65532},
        {"runAsGroup", 65532},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"initContainers", Json::array({ContainerJson(kPlaceholderTeller, image, {"reserve"})})},
      {"containers",
       Json::array({ContainerJson(kPlaceholderHolder, image, {"reserve", "--hold"})})}};
  return Dump({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}});
}

std::string_view OneDevice(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [&](char c) {
    return is_digit(c) || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const bool uuid = text.starts_with("GPU-") && text.size() > 4 && text.size() <= kLongestDevice &&
                    std::all_of(text.begin(), text.end(), is_word);
  const bool index =
      !text.empty() && text.size() <= 2 && std::all_of(text.begin(), text.end(), is_digit);
  return uuid || index ? text : std::string_view();
}

std::optional<PlaceholderFacts> ReadPlaceholder(Object pod) {
  const std::optional<Object> metadata = FindObject(pod, "metadata");
  if (!metadata || FindText(*metadata, "namespace").value_or("") != kPlaceholderNamespace) {
    return std::nullopt;
  }
  const std::optional<Object> labels = FindObject(*metadata, "labels");
  const std::optional<Object> spec = FindObject(pod, "spec");
  const bool ours = labels && FindText(*labels, kLabel).value_or("") == "true" && spec &&
                    FindText(*spec, "serviceAccountName").value_or("") == kServiceAccount;
  if (!ours) return std::nullopt;
  return PlaceholderFacts{GpuUuid(Told(pod))};
}

Json VisibleDevicesEnv() {
  return {{"name", kVisibleDevicesEnv}, {"valueFrom", {{"fieldRef", {{"fieldPath", kFieldPath}}}}}};
}

bool NamesVisibleDevices(Array env) {
  return std::any_of(env.begin(), env.end(), [](Element element) {
    Object entry;
    return element.get(entry) == simdjson::SUCCESS &&
           FindText(entry, "name").value_or("") == kVisibleDevicesEnv;
  });
}

bool SeesWrittenDevices(Object container) {
  const std::optional<Array> env = FindArray(container, "env");
  if (!env) return false;
  bool sees = false;
  for (const Element element : *env) {
    Object entry;
    if (element.get(entry) != simdjson::SUCCESS) continue;
    if (FindText(entry, "name").value_or("") != kVisibleDevicesEnv) continue;
    // Of several the last one counts, as for the kubelet.
    const std::optional<Object> from = FindObject(entry, "valueFrom");
    const std::optional<Object> field = from ? FindObject(*from, "fieldRef") : std::nullopt;
    sees = field && FindText(*field, "fieldPath").value_or("") == kFieldPath;
  }
  return sees;
}

}  // namespace tranche::wire
