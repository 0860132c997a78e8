#include "scheduler/agent/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/kube/transport/single_call.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/lenient_parser.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/records/allocation_json.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

using wire::Array;
using wire::Element;
using wire::Object;

constexpr std::array kOurs = {kVisibleVariable, kMpsPipeVariable, kMpsMemoryVariable,
                              kMpsThreadsVariable};
constexpr int kOk = 200;

std::string Text(Object object, std::string_view key) {
  return std::string(wire::FindText(object, key).value_or(""));
}

std::vector<std::string> OwnVariables(Object container) {
  std::vector<std::string> own;
  const auto env = wire::FindArray(container, "env");
  if (!env) return own;
  for (const Element variable : *env) {
    Object object;
    if (variable.get(object) != simdjson::SUCCESS) continue;
    std::string name = Text(object, "name");
    if (std::ranges::find(kOurs, name) != kOurs.end()) own.push_back(std::move(name));
  }
  return own;
}

// Limits decide: of extended resources requests are equal.
void AddAsking(Object spec, std::string_view list, std::string_view resource, BoundPod& pod) {
  const auto containers = wire::FindArray(spec, list);
  if (!containers) return;
  for (const Element element : *containers) {
    Object container;
    if (element.get(container) != simdjson::SUCCESS) continue;
    const auto resources = wire::FindObject(container, "resources");
    const auto limits = resources ? wire::FindObject(*resources, "limits") : std::nullopt;
    const auto amount = limits ? wire::Find(*limits, resource) : std::nullopt;
    if (!amount) continue;
    Asking asking;
    asking.name = Text(container, "name");
    asking.init = list == "initContainers" && Text(container, "restartPolicy") != "Always";
    asking.own_variables = OwnVariables(container);
    const auto count = wire::WholeAmount(*amount);
    if (!count) {
      pod.record_problem = fmt::format("expected a whole number of {} for container {}, found {}",
                                       resource, asking.name, wire::AmountText(*amount));
    }
    asking.count = count.value_or(0);
    if (!count || asking.count > 0) pod.asking.push_back(std::move(asking));
  }
}

void AddRecord(Object metadata, BoundPod& pod) {
  const auto annotations = wire::FindObject(metadata, "annotations");
  const auto text = annotations ? wire::FindText(*annotations, wire::kAllocationKey) : std::nullopt;
  if (!text || !pod.record_problem.empty()) return;
  auto record = wire::DecodeAllocation(*text);
  if (record.ok()) {
    pod.record = *std::move(record);
  } else {
    pod.record_problem = std::string(record.status().message());
  }
}

// nullopt: not of this node, or ended.
std::optional<BoundPod> DecodePod(Object object, const NodeName& node, std::string_view resource) {
  const auto metadata = wire::FindObject(object, "metadata");
  const auto spec = wire::FindObject(object, "spec");
  const auto status = wire::FindObject(object, "status");
  if (!metadata || !spec || Text(*spec, "nodeName") != node.str()) return std::nullopt;
  const std::string phase = status ? Text(*status, "phase") : "";
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  BoundPod pod;
  pod.name = {Text(*metadata, "namespace"), Text(*metadata, "name")};
  pod.uid = PodUid(Text(*metadata, "uid"));
  pod.acknowledged = status && wire::FindText(*status, "startTime").has_value();
  AddAsking(*spec, "initContainers", resource, pod);
  AddAsking(*spec, "containers", resource, pod);
  AddRecord(*metadata, pod);
  return pod;
}

}  // namespace

absl::StatusOr<std::vector<BoundPod>> DecodePods(std::string_view text, const NodeName& node,
                                                 std::string_view resource) {
  wire::LenientParser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  Object list;
  const bool is_list = document.get(list) == simdjson::SUCCESS && Text(list, "kind") == "PodList";
  const auto items = is_list ? wire::FindArray(list, "items") : std::nullopt;
  // A list without pods may say null.
  const bool empty = is_list && !items && !wire::Find(list, "items");
  if (!items && !empty) {
    return absl::InvalidArgumentError("expected a PodList from the API server, found another text");
  }
  std::vector<BoundPod> pods;
  if (empty) return pods;
  for (const Element item : *items) {
    Object object;
    if (item.get(object) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("expected pods in a PodList, found something else");
    }
    if (auto pod = DecodePod(object, node, resource)) pods.push_back(*std::move(pod));
  }
  return pods;
}

absl::StatusOr<std::vector<BoundPod>> ReadPods(const kube::Credentials& credentials,
                                               const NodeName& node, std::string_view resource,
                                               std::chrono::milliseconds timeout) {
  kube::SingleRequest request;
  // Names of nodes need no escaping: a DNS name.
  request.target = fmt::format(
      "/api/v1/pods?fieldSelector=spec.nodeName%3D{}%2Cstatus.phase%21%3DSucceeded%2C"
      "status.phase%21%3DFailed",
      node.str());
  request.timeout = timeout;
  auto answer = kube::CallOnce(credentials, request);
  if (!answer.ok()) {
    return absl::UnavailableError(
        fmt::format("API server: {}", std::string(answer.status().message())));
  }
  if (answer->status != kOk) {
    return absl::UnavailableError(fmt::format(
        "API server: expected the pods of node {}, found HTTP {}", node.str(), answer->status));
  }
  auto pods = DecodePods(answer->body, node, resource);
  if (pods.ok()) return pods;
  return absl::UnavailableError(
      fmt::format("API server: {}", std::string(pods.status().message())));
}

}  // namespace tranche::agent
