// The inside of one machine as far as it is known: GPUs, the links between them, NUMA nodes, NICs.
//
// Immutable and validated once built; equal machines are shared by nodes (machine_table.h). Thread
// rule: const after construction. Source: gpu-topology sections 1 to 3.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/ids.h"
#include "topology/machine/gpu_set.h"

namespace tranche {

// The way over PCIe, worst first (the codes of `nvidia-smi topo -m`). kBoard, two GPUs of one
// board, is never printed by the tool; HAMi's scores tell it.
enum class PathClass : uint8_t { kSys, kNode, kPhb, kPxb, kPix, kBoard };
std::string_view PathName(PathClass path);  // "SYS", "NODE", "PHB", "PXB", "PIX", "BOARD"

inline constexpr uint8_t kMaxNvlinks = 18;

// Between two GPUs. Links of an NVSwitch count like direct ones.
struct Link {
  PathClass path = PathClass::kSys;
  uint8_t nvlinks = 0;  // bonded NVLinks, 0..18; with some the path is inferred (InferredPath)
  friend auto operator<=>(const Link&, const Link&) = default;
};
std::string LinkName(Link link);  // "NV2", else the path's name
// The path between two GPUs of which only the NUMA nodes are known: NODE or SYS. NVLinked pairs
// have it, as `nvidia-smi` prints NV# in place of their path.
PathClass InferredPath(std::optional<int> left, std::optional<int> right);

// The least a link may be. nvlinks > 0: that many NVLinks; else a path at least as good, or any
// NVLink.
struct LinkFloor {
  PathClass path = PathClass::kSys;
  uint8_t nvlinks = 0;
  bool Admits(Link link) const {
    return nvlinks > 0 ? link.nvlinks >= nvlinks : link.nvlinks > 0 || link.path >= path;
  }
  friend bool operator==(const LinkFloor&, const LinkFloor&) = default;
};
// "nvlink" (one), "nv4", "pix", "pxb", "phb", "node", in any case; nullopt: something else.
std::optional<LinkFloor> ParseLinkFloor(std::string_view text);

struct MachineGpu {
  std::string name;         // "GPU0"
  GpuUuid uuid;             // empty: not told
  std::optional<int> numa;  // the NUMA node of its CPUs (the lowest, where a list is given)
  std::string cpus;         // CPU affinity as printed, "0-63,128-191"; empty: not told
  friend bool operator==(const MachineGpu&, const MachineGpu&) = default;
};

struct MachineNic {
  std::string name;              // "mlx5_0"
  bool fabric = true;            // false: looks like a storage or management port (MarkFabric)
  std::vector<PathClass> paths;  // by GPU
  friend bool operator==(const MachineNic&, const MachineNic&) = default;
};

// Sets `fabric`. Nothing published tells what a port is for. But where a machine was built with
// NICs beside its GPUs (PIX or PXB), a NIC that is beside none was put there for something else:
// ports 4, 5, 10 and 11 of a DGX A100, the two on the host bridges of a DGX-2. Where no NIC is
// beside a GPU all count as fabric. Source: gpu-topology section 7.
void MarkFabric(std::vector<MachineNic>& nics);

class Machine {
 public:
  // `links`: row by row, gpus.size() squared; the diagonal is ignored. Where the two directions
  // differ the worse counts. Requires: at most kMaxMachineGpus GPUs, NIC paths for each GPU.
  Machine(std::vector<MachineGpu> gpus, std::vector<Link> links, std::vector<MachineNic> nics);

  int size() const { return static_cast<int>(gpus_.size()); }
  const MachineGpu& gpu(int at) const { return gpus_[static_cast<std::size_t>(at)]; }
  const std::vector<MachineGpu>& gpus() const { return gpus_; }
  const std::vector<MachineNic>& nics() const { return nics_; }
  Link link(int left, int right) const {
    return links_[static_cast<std::size_t>(left * size() + right)];
  }
  GpuSet all() const { return GpuSet::FirstOf(size()); }
  // All that a choice among its GPUs can depend on (links, NUMA, paths to fabric NICs), not names.
  // Machines of equal digest are interchangeable.
  const std::string& digest() const { return digest_; }
  // Every pair of GPUs is linked alike, and so are the GPUs to NUMA nodes and NICs: which are taken
  // makes no difference.
  bool uniform() const { return uniform_; }
  friend bool operator==(const Machine& left, const Machine& right) {
    return left.gpus_ == right.gpus_ && left.links_ == right.links_ && left.nics_ == right.nics_;
  }

 private:
  std::vector<MachineGpu> gpus_;
  std::vector<Link> links_;
  std::vector<MachineNic> nics_;
  std::string digest_;
  bool uniform_ = false;
};

}  // namespace tranche
