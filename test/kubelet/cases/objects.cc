#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "test/kubelet/cases/node_state.h"

namespace tranche::test {
namespace {

constexpr const char* kProduct = "NVIDIA-L40S";
constexpr int kMib = 46068;

std::set<int> TakenOf(const NodeState& node) {
  std::set<int> taken;
  for (const RunningPod& pod : node.running) taken.insert(pod.gpus.begin(), pod.gpus.end());
  return taken;
}

std::string ProbeOf(const NodeState& node) {
  std::vector<std::string> gpus, pods;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const NodeGpu& gpu = node.gpus[i];
    const std::string numa = gpu.numa == kNoNuma ? "null" : std::to_string(gpu.numa);
    gpus.push_back(fmt::format(R"({{"index":{0},"uuid":"{1}","bus":"0000:{0:02x}:00.0","numa":{2},)"
                               R"("memoryMiB":{3},"mig":null}})",
                               i, gpu.id, numa, kMib));
  }
  for (const RunningPod& pod : node.running) {
    std::vector<std::string> ids;
    for (const int gpu : pod.gpus) {
      ids.push_back(fmt::format(R"("{}")", node.gpus[static_cast<std::size_t>(gpu)].id));
    }
    pods.push_back(fmt::format(R"({{"namespace":"team","name":"{}","container":"main",)"
                               R"("resource":"nvidia.com/gpu","devices":[{}]}})",
                               pod.name, fmt::join(ids, ",")));
  }
  return fmt::format(
      R"({{"v":1,"at":"2026-03-01T00:00:00Z","driver":"550.54.15","gpus":[{}],"pods":[{}]}})",
      fmt::join(gpus, ","), fmt::join(pods, ","));
}

// As `nvidia-smi topo -m` prints it, tabs between the cells.
std::string MatrixOf(const NodeState& node) {
  std::string text;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) text += fmt::format("\tGPU{}", i);
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const int numa = node.gpus[i].numa;
    text += fmt::format("GPU{}", i);
    for (std::size_t other = 0; other < node.gpus.size(); ++other) {
      const bool same = node.gpus[other].numa == numa;
      text += other == i ? "\t X " : same ? "\tNODE" : "\tSYS";
    }
    text += numa == kNoNuma ? "\t0-31\tN/A\n" : fmt::format("\t0-31\t{}\n", numa);
  }
  return text;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Limits(int gpus) {
  return fmt::format(R"("resources":{{"limits":{{"nvidia.com/gpu":"{0}"}},)"
                     R"("requests":{{"nvidia.com/gpu":"{0}"}}}})",
                     gpus);
}

}  // namespace

bool HidesGpus(const NodeState& node) {
  bool known = false, hidden = false;
  for (const NodeGpu& gpu : node.gpus) known |= gpu.numa != kNoNuma;
  for (const int gpu : TakenOf(node)) {
    hidden |= node.gpus[static_cast<std::size_t>(gpu)].numa == kNoNuma;
  }
  return known && hidden;
}

std::string NodeObject(const NodeState& node) {
  std::string notes;
  if (node.tells == NodeTells::kProbe) {
    notes = fmt::format(R"("tranche.dev/probe":"{}")", Escaped(ProbeOf(node)));
  } else if (node.tells == NodeTells::kMatrix) {
    notes = fmt::format(R"("tranche.dev/topology":"{}")", Escaped(MatrixOf(node)));
  }
  return fmt::format(
      R"({{"metadata":{{"name":"{4}","uid":"uid-{4}","annotations":{{{0}}},"labels":{{)"
      R"("nvidia.com/gpu.product":"{1}","nvidia.com/gpu.memory":"{2}",)"
      R"("nvidia.com/gpu.count":"{3}",)"
      R"("nvidia.com/gpu.replicas":"1"}}}},"status":{{)"
      R"("allocatable":{{"cpu":"128","nvidia.com/gpu":"{3}"}},)"
      R"("capacity":{{"cpu":"128","nvidia.com/gpu":"{3}"}}}}}})",
      notes, kProduct, kMib, node.gpus.size(), node.name);
}

std::string ZonesObject(const NodeState& node, const std::string& policy,
                        const std::string& scope) {
  std::map<int, int> all, free;
  const std::set<int> taken = TakenOf(node);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    ++all[node.gpus[i].numa];
    free[node.gpus[i].numa] += taken.contains(static_cast<int>(i)) ? 0 : 1;
  }
  std::vector<std::string> zones;
  for (const int zone : node.numa_nodes) {
    // A resource is shown for the NUMA nodes that have some of it alone.
    std::string gpus;
    if (all.contains(zone)) {
      gpus = fmt::format(R"(,{{"name":"nvidia.com/gpu","capacity":"{0}","allocatable":"{0}",)"
                         R"("available":"{1}"}})",
                         all[zone], free[zone]);
    }
    zones.push_back(
        fmt::format(R"({{"name":"node-{}","type":"Node","resources":[)"
                    R"({{"name":"cpu","capacity":"16","allocatable":"16","available":"16"}}{}]}})",
                    zone, gpus));
  }
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"attributes":[)"
                     R"({{"name":"topologyManagerPolicy","value":"{}"}},)"
                     R"({{"name":"topologyManagerScope","value":"{}"}}],"zones":[{}]}})",
                     node.name, policy, scope, fmt::join(zones, ","));
}

std::string RunningObject(const NodeState& node, const RunningPod& pod) {
  return fmt::format(R"({{"metadata":{{"namespace":"team","name":"{0}","uid":"uid-{0}"}},"spec":{{)"
                     R"("schedulerName":"gpu-scheduler","nodeName":"{2}",)"
                     R"("containers":[{{"name":"main",{1}}}]}},"status":{{"phase":"Running"}}}})",
                     pod.name, Limits(static_cast<int>(pod.gpus.size())), node.name);
}

std::string PodObject(const std::string& name, const DrawnPod& pod) {
  using Role = DrawnContainer::Role;
  std::vector<std::string> before, apps;
  for (std::size_t i = 0; i < pod.size(); ++i) {
    const DrawnContainer& one = pod[i];
    std::string text = fmt::format(R"({{"name":"c{}")", i);
    if (one.role == Role::kSidecar) text += R"(,"restartPolicy":"Always")";
    if (one.gpus > 0) text += "," + Limits(one.gpus);
    (one.role == Role::kApp ? apps : before).push_back(text + "}");
  }
  return fmt::format(
      R"({{"metadata":{{"namespace":"team","name":"{0}","uid":"uid-{0}"}},"spec":{{)"
      R"("schedulerName":"gpu-scheduler","initContainers":[{1}],"containers":[{2}]}}}})",
      name, fmt::join(before, ","), fmt::join(apps, ","));
}

}  // namespace tranche::test
