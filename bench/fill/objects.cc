#include "bench/fill/objects.h"

#include <fmt/format.h>

#include <charconv>

namespace tranche::bench::fill {
namespace {

// Divisible by 1000, so that a share's memory is exact and never binds before its compute does.
constexpr int64_t kCardMib = 32'000;
constexpr std::string_view kNodePrefix = "node-";

std::string ModelList(ModelSet set, const std::vector<std::string>& models) {
  std::string list;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if ((set >> i & 1) != 0) list += fmt::format("{}{}", list.empty() ? "" : ",", models[i]);
  }
  return list;
}

}  // namespace

std::string NodeNameOf(int id) { return fmt::format("{}{:06}", kNodePrefix, id); }

absl::StatusOr<int> NodeNumberOf(std::string_view name) {
  int id = -1;
  if (name.starts_with(kNodePrefix)) {
    std::from_chars(name.data() + kNodePrefix.size(), name.data() + name.size(), id);
  }
  if (id >= 0 && NodeNameOf(id) == name) return id;
  return absl::InternalError(fmt::format("expected the name of a node, found \"{}\"", name));
}

std::string PodNameOf(int64_t serial) { return fmt::format("task-{}", serial); }
std::string UidOf(int64_t serial) { return fmt::format("uid-{}", serial); }

std::string NodeObject(int id, const NodeBook& node, const std::vector<std::string>& models) {
  std::string labels;
  std::string gpus;
  if (node.gpus > 0) {
    labels = fmt::format(
        R"("nvidia.com/gpu.product":"{}","nvidia.com/gpu.memory":"{}","nvidia.com/gpu.count":"{}",)"
        R"("nvidia.com/gpu.replicas":"1")",
        models[static_cast<std::size_t>(node.model)], kCardMib, node.gpus);
    gpus = fmt::format(R"(,"nvidia.com/gpu":"{}")", node.gpus);
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{0}","uid":"uid-{0}",)"
      R"("labels":{{{1}}}}},"status":{{"allocatable":{{"cpu":"{2}m","memory":"{3}Mi"{4}}},)"
      R"("capacity":{{"cpu":"{2}m","memory":"{3}Mi"{4}}},)"
      R"("conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      NodeNameOf(id), labels, node.cpu, node.memory, gpus);
}

std::string PodObject(int64_t serial, const TaskType& task,
                      const std::vector<std::string>& models) {
  std::string annotations;
  if (task.shares()) {
    annotations = fmt::format(R"("tranche.dev/gpu-fraction":"0.{:03}")", task.milli);
  }
  if (task.gpus > 0 && task.models != kAnyOfThem) {
    annotations += fmt::format(R"({}"tranche.dev/model":"{}")", annotations.empty() ? "" : ",",
                               ModelList(task.models, models));
  }
  const std::string gpus =
      task.gpus > 0 && !task.shares() ? fmt::format(R"("nvidia.com/gpu":"{}",)", task.gpus) : "";
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"{}","uid":"{}",)"
      R"("annotations":{{{}}}}},"spec":{{"containers":[{{"name":"main","image":"task:1",)"
      R"("resources":{{"limits":{{{}"cpu":"{}m","memory":"{}Mi"}}}}}}]}},)"
      R"("status":{{"phase":"Pending"}}}})",
      PodNameOf(serial), kNamespace, UidOf(serial), annotations, gpus, task.cpu, task.memory);
}

std::string PolicyObject() {
  return R"({"apiVersion":"tranche.dev/v1alpha1","kind":"GPUPolicy","metadata":{"name":"fill"},)"
         R"("spec":{"placement":{"plainPods":"Rank"},"sharing":{"unenforced":"Allow"}}})";
}

absl::StatusOr<Placement> PlacementOf(const TaskType& task, int node,
                                      const Allocation& allocation) {
  Placement placement{node, 0};
  int devices = 0;
  for (const ContainerDevices& container : allocation.containers) {
    for (const Device& device : container.devices) {
      if (device.card < 0 || device.card >= kMaxGpus || device.milli.count() != task.milli) {
        return absl::InternalError(
            fmt::format("expected {} milli of a GPU, found {} of GPU {}, on {}", task.milli,
                        device.milli.count(), device.card, NodeNameOf(node)));
      }
      placement.gpus |= uint32_t{1} << device.card;
      ++devices;
    }
  }
  if (devices == task.gpus) return placement;
  return absl::InternalError(
      fmt::format("expected {} devices, found {}, on {}", task.gpus, devices, NodeNameOf(node)));
}

}  // namespace tranche::bench::fill
