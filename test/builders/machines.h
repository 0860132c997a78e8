// Machines for tests, by what connects their GPUs.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/machine/machine.h"

namespace tranche::test {

// `nvlinks`: row by row; PCIe is NODE inside a NUMA node and SYS across. `numa`: of each GPU.
inline Machine MakeMachine(const std::vector<std::vector<int>>& nvlinks,
                           const std::vector<int>& numa) {
  std::vector<MachineGpu> gpus;
  std::vector<Link> links;
  for (std::size_t i = 0; i < nvlinks.size(); ++i) {
    gpus.push_back({fmt::format("GPU{}", i), GpuUuid(), numa[i], ""});
    for (std::size_t j = 0; j < nvlinks.size(); ++j) {
      links.push_back({numa[i] == numa[j] ? PathClass::kNode : PathClass::kSys,
                       static_cast<uint8_t>(nvlinks[i][j])});
    }
  }
  return Machine(std::move(gpus), std::move(links), {});
}

// DGX-1 with V100: quads 0-3 and 4-7, each GPU linked to one of the other quad. Source:
// gpu-topology section 4.
inline Machine CubeMesh() {
  return MakeMachine({{0, 1, 1, 2, 2, 0, 0, 0},
                      {1, 0, 2, 1, 0, 2, 0, 0},
                      {1, 2, 0, 2, 0, 0, 1, 0},
                      {2, 1, 2, 0, 0, 0, 0, 1},
                      {2, 0, 0, 0, 0, 1, 1, 2},
                      {0, 2, 0, 0, 1, 0, 2, 1},
                      {0, 0, 1, 0, 1, 2, 0, 2},
                      {0, 0, 0, 1, 2, 1, 2, 0}},
                     {0, 0, 0, 0, 1, 1, 1, 1});
}

// Bridged pairs 01, 23, ... of a two-socket box.
inline Machine BridgedPairs(int gpus, int links = 12) {
  std::vector<std::vector<int>> nvlinks(static_cast<std::size_t>(gpus),
                                        std::vector<int>(static_cast<std::size_t>(gpus), 0));
  std::vector<int> numa;
  for (int i = 0; i < gpus; ++i) {
    nvlinks[static_cast<std::size_t>(i)][static_cast<std::size_t>(i ^ 1)] = links;
    numa.push_back(i < gpus / 2 ? 0 : 1);
  }
  return MakeMachine(nvlinks, numa);
}

// Every pair over an NVSwitch; `left` GPUs on NUMA node 0, the others on 1.
inline Machine Switched(int gpus, int left) {
  const auto size = static_cast<std::size_t>(gpus);
  std::vector<std::vector<int>> nvlinks(size, std::vector<int>(size, 18));
  std::vector<int> numa;
  for (int i = 0; i < gpus; ++i) numa.push_back(i < left ? 0 : 1);
  return MakeMachine(nvlinks, numa);
}

// No NVLink; `left` GPUs on NUMA node 0, the others on 1.
inline Machine PcieOnly(int gpus, int left) {
  const auto size = static_cast<std::size_t>(gpus);
  std::vector<int> numa;
  for (int i = 0; i < gpus; ++i) numa.push_back(i < left ? 0 : 1);
  return MakeMachine(std::vector<std::vector<int>>(size, std::vector<int>(size, 0)), numa);
}

}  // namespace tranche::test
