#include "test/sim/world/pod_view.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace tranche::sim {
namespace {

constexpr std::array<std::string_view, 7> kIgnored = {
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/vgpu-memory",
    "nvidia.com/vgpu-cores",
    "volcano.sh/vgpu-memory-percentage",
    "hivedscheduler.microsoft.com/pod-scheduling-enable"};

const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

Amounts RequestsOf(const Json& container) {
  Amounts out;
  const Json* const resources = Find(container, "resources");
  const Json* const requests = resources == nullptr ? nullptr : Find(*resources, "requests");
  if (requests == nullptr) return out;
  for (auto it = requests->begin(); it != requests->end(); ++it) {
    if (std::find(kIgnored.begin(), kIgnored.end(), it.key()) != kIgnored.end()) continue;
    out[it.key()] = AmountOf(it->get_ref<const std::string&>(), it.key() == "cpu");
  }
  return out;
}

void RaiseTo(Amounts& amounts, const Amounts& least) {
  for (const auto& [resource, units] : least) {
    int64_t& present = amounts[resource];
    present = std::max(present, units);
  }
}

}  // namespace

int64_t AmountOf(const std::string& quantity, bool of_cpu) {
  char* end = nullptr;
  const int64_t number = std::strtoll(quantity.c_str(), &end, 10);
  const std::string_view unit(end);
  if (of_cpu) return unit == "m" ? number : number * 1000;
  constexpr std::string_view kSteps = "KMGTPE";
  if (unit.empty()) return number;
  const std::size_t step = kSteps.find(unit[0] == 'k' ? 'K' : unit[0]);
  if (step == std::string_view::npos) return 0;
  int64_t out = number;
  for (std::size_t i = 0; i <= step; ++i) out *= unit.ends_with("i") ? 1024 : 1000;
  return out;
}

PodView::PodView(StoredPtr pod) : stored(std::move(pod)) {
  const Json& object = stored->object();
  const Json& metadata = object.at("metadata");
  const Json& spec = object.at("spec");
  uid = stored->uid();
  key = stored->key();
  node = spec.value("nodeName", "");
  scheduler = spec.value("schedulerName", "");
  priority = spec.value("priority", int64_t{0});
  never_preempts = spec.value("preemptionPolicy", "") == "Never";
  deleting = metadata.contains("deletionTimestamp");
  if (const Json* const gates = Find(spec, "schedulingGates")) gated = !gates->empty();
  if (const Json* const status = Find(object, "status")) {
    phase = status->value("phase", "");
    nominated = status->value("nominatedNodeName", "");
  }
  for (const Json& container : spec.at("containers")) {
    AddAmounts(requests, RequestsOf(container));
  }
  if (const Json* const inits = Find(spec, "initContainers")) {
    for (const Json& container : *inits) RaiseTo(requests, RequestsOf(container));
  }
  requests["pods"] = 1;
  if (const Json* const tolerations = Find(spec, "tolerations")) {
    for (const Json& toleration : *tolerations) tolerated.push_back(toleration.value("key", ""));
  }
  if (const Json* const selector = Find(spec, "nodeSelector")) {
    node_selector = selector->get<std::map<std::string, std::string>>();
  }
}

NodeView::NodeView(StoredPtr node) : stored(std::move(node)), name(stored->name()) {
  const Json& object = stored->object();
  if (const Json* const spec = Find(object, "spec")) {
    cordoned = spec->value("unschedulable", false);
    if (const Json* const list = Find(*spec, "taints")) {
      for (const Json& taint : *list) {
        if (taint.value("effect", "") != "PreferNoSchedule") taints.push_back(taint.at("key"));
      }
    }
  }
  const Json* const status = Find(object, "status");
  if (status == nullptr) return;
  if (const Json* const amounts = Find(*status, "allocatable")) {
    for (auto it = amounts->begin(); it != amounts->end(); ++it) {
      allocatable[it.key()] = AmountOf(it->get_ref<const std::string&>(), it.key() == "cpu");
    }
  }
  if (const Json* const conditions = Find(*status, "conditions")) {
    for (const Json& condition : *conditions) {
      if (condition.at("type") == "Ready") ready = condition.at("status") == "True";
    }
  }
}

bool Tolerates(const PodView& pod, const NodeView& node) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const std::string& taint) {
    return std::any_of(pod.tolerated.begin(), pod.tolerated.end(),
                       [&](const std::string& key) { return key.empty() || key == taint; });
  });
}

std::string UnsuitableFor(const PodView& pod, const NodeView& node) {
  if (node.cordoned) return "node(s) were unschedulable";
  if (!Tolerates(pod, node)) return "node(s) had untolerated taint(s)";
  if (pod.node_selector.empty()) return "";
  const Json* const labels = Find(node.stored->object().at("metadata"), "labels");
  for (const auto& [key, value] : pod.node_selector) {
    if (labels == nullptr || labels->value(key, "") != value) {
      return "node(s) didn't match Pod's node affinity/selector";
    }
  }
  return "";
}

std::string Lacks(const PodView& pod, const NodeView& node, const Amounts& used) {
  for (const auto& [resource, units] : pod.requests) {
    if (units == 0) continue;
    const auto has = node.allocatable.find(resource);
    const auto taken = used.find(resource);
    const int64_t left = (has == node.allocatable.end() ? 0 : has->second) -
                         (taken == used.end() ? 0 : taken->second);
    if (units > left) return resource == "pods" ? "Too many pods" : "Insufficient " + resource;
  }
  return "";
}

void AddAmounts(Amounts& to, const Amounts& amounts) {
  for (const auto& [resource, units] : amounts) to[resource] += units;
}

void SubtractAmounts(Amounts& from, const Amounts& amounts) {
  for (const auto& [resource, units] : amounts) from[resource] -= units;
}

}  // namespace tranche::sim
