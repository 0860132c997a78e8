#include "topology/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr std::array<std::string_view, 6> kPathNames = {"SYS", "NODE", "PHB",
                                                        "PXB", "PIX",  "BOARD"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Link Worse(Link left, Link right) {
  return {std::min(left.path, right.path), std::min(left.nvlinks, right.nvlinks)};
}

// The best fabric NIC of a GPU; nullopt: there is none.
std::optional<PathClass> NearestNic(const std::vector<MachineNic>& nics, std::size_t gpu) {
  std::optional<PathClass> nearest;
  for (const MachineNic& nic : nics) {
    if (nic.fabric) nearest = std::max(nearest, std::optional(nic.paths[gpu]));
  }
  return nearest;
}

bool AllAlike(const std::vector<MachineGpu>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const MachineGpu& gpu) { return gpu.numa == gpus.front().numa; });
}

bool AllOnTheirOwn(const std::vector<MachineGpu>& gpus) {
  std::vector<int> nodes;
  for (const MachineGpu& gpu : gpus) {
    if (!gpu.numa || std::find(nodes.begin(), nodes.end(), *gpu.numa) != nodes.end()) return false;
    nodes.push_back(*gpu.numa);
  }
  return true;
}

// Only what a choice depends on: neither names nor the order of NICs.
std::string DigestOf(const std::vector<MachineGpu>& gpus, const std::vector<Link>& links,
                     const std::vector<MachineNic>& nics) {
  std::string digest = fmt::format("{}", gpus.size());
  const auto out = std::back_inserter(digest);
  for (const MachineGpu& gpu : gpus) {
    digest += '|';
    if (gpu.numa) fmt::format_to(out, "{}", *gpu.numa);
  }
  digest += ';';
  for (std::size_t left = 0; left < gpus.size(); ++left) {
    for (std::size_t right = left + 1; right < gpus.size(); ++right) {
      const Link link = links[left * gpus.size() + right];
      digest += static_cast<char>('a' + static_cast<int>(link.path));
      if (link.nvlinks > 0) fmt::format_to(out, "{}", link.nvlinks);
    }
  }
  std::vector<std::string> fabric;
  for (const MachineNic& nic : nics) {
    if (!nic.fabric) continue;
    std::string paths;
    for (const PathClass path : nic.paths) {
      paths += static_cast<char>('a' + static_cast<int>(path));
    }
    fabric.push_back(std::move(paths));
  }
  std::sort(fabric.begin(), fabric.end());
  for (const std::string& paths : fabric) digest += ';' + paths;
  return digest;
}

bool IsUniform(const std::vector<MachineGpu>& gpus, const std::vector<Link>& links,
               const std::vector<MachineNic>& nics) {
  if (gpus.size() < 2) return true;
  if (!AllAlike(gpus) && !AllOnTheirOwn(gpus)) return false;
  for (std::size_t left = 0; left < gpus.size(); ++left) {
    if (NearestNic(nics, left) != NearestNic(nics, 0)) return false;
    for (std::size_t right = left + 1; right < gpus.size(); ++right) {
      if (links[left * gpus.size() + right] != links[1]) return false;
    }
  }
  return true;
}

}  // namespace

std::string_view PathName(PathClass path) { return kPathNames[static_cast<std::size_t>(path)]; }

std::string LinkName(Link link) {
  return link.nvlinks > 0 ? fmt::format("NV{}", link.nvlinks) : std::string(PathName(link.path));
}

std::optional<LinkFloor> ParseLinkFloor(std::string_view text) {
  const std::string name = LowerCase(text);
  if (name == "nvlink") return LinkFloor{PathClass::kSys, 1};
  for (uint8_t links = 1; links <= kMaxNvlinks; ++links) {
    if (name == fmt::format("nv{}", links)) return LinkFloor{PathClass::kSys, links};
  }
  for (const PathClass path :
       {PathClass::kNode, PathClass::kPhb, PathClass::kPxb, PathClass::kPix}) {
    if (name == LowerCase(PathName(path))) return LinkFloor{path, 0};
  }
  return std::nullopt;
}

void MarkFabric(std::vector<MachineNic>& nics) {
  const auto is_beside_a_gpu = [](const MachineNic& nic) {
    return std::any_of(nic.paths.begin(), nic.paths.end(),
                       [](PathClass path) { return path >= PathClass::kPxb; });
  };
  const bool built_in = std::any_of(nics.begin(), nics.end(), is_beside_a_gpu);
  for (MachineNic& nic : nics) nic.fabric = !built_in || is_beside_a_gpu(nic);
}

Machine::Machine(std::vector<MachineGpu> gpus, std::vector<Link> links,
                 std::vector<MachineNic> nics)
    : gpus_(std::move(gpus)), links_(std::move(links)), nics_(std::move(nics)) {
  const std::size_t count = gpus_.size();
  TRANCHE_CHECK_LE(count, std::size_t{kMaxMachineGpus});
  TRANCHE_CHECK_EQ(links_.size(), count * count);
  for (const MachineNic& nic : nics_) TRANCHE_CHECK_EQ(nic.paths.size(), count);
  for (std::size_t left = 0; left < count; ++left) {
    links_[left * count + left] = {PathClass::kBoard, 0};  // takes part in no minimum and no sum
    for (std::size_t right = 0; right < left; ++right) {
      Link& there = links_[left * count + right];
      Link& back = links_[right * count + left];
      there = back = Worse(there, back);
      TRANCHE_CHECK_LE(there.nvlinks, kMaxNvlinks);
    }
  }
  digest_ = DigestOf(gpus_, links_, nics_);
  uniform_ = IsUniform(gpus_, links_, nics_);
}

// NVLink between two GPUs hides their way over PCIe; it still counts where NVLinks are equal. NODE
// is the worst way between GPUs of one NUMA node, so that nothing is promised that may be missing.
PathClass InferredPath(std::optional<int> left, std::optional<int> right) {
  return left && left == right ? PathClass::kNode : PathClass::kSys;
}

}  // namespace tranche
