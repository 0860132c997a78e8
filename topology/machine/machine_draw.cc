#include "topology/machine/machine_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace tranche {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kCellWidth = 5;
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kGreen = "\x1b[1;32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string Counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// How GPUs hang together by NVLink.
struct NvlinkGraph {
  explicit NvlinkGraph(const Machine& machine);
  bool AllLinked() const { return linked_pairs == pairs; }
  bool AreLinked(GpuSet set) const;

  std::vector<GpuSet> peers;   // by GPU, without itself
  std::vector<GpuSet> groups;  // connected by NVLink, largest first
  std::size_t pairs = 0;
  std::size_t linked_pairs = 0;
  int links = 0;
  int fewest = kMaxNvlinks;  // of linked pairs
  int most = 0;
};

NvlinkGraph::NvlinkGraph(const Machine& machine) {
  peers.resize(static_cast<std::size_t>(machine.size()));
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < left; ++right) {
      ++pairs;
      const int nvlinks = machine.link(left, right).nvlinks;
      if (nvlinks == 0) continue;
      ++linked_pairs;
      links += nvlinks;
      fewest = std::min(fewest, nvlinks);
      most = std::max(most, nvlinks);
      peers[static_cast<std::size_t>(left)].Add(right);
      peers[static_cast<std::size_t>(right)].Add(left);
    }
  }
  GpuSet left = machine.all();
  while (!left.empty()) {
    GpuSet group;
    group.Add(left.first());
    for (GpuSet before; before != group;) {
      before = group;
      for (const int gpu : before) group = group | peers[static_cast<std::size_t>(gpu)];
    }
    groups.push_back(group);
    left = left - group;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](GpuSet one, GpuSet other) { return one.size() > other.size(); });
}

bool NvlinkGraph::AreLinked(GpuSet set) const {
  for (const int gpu : set) {
    GpuSet others = set;
    others.Remove(gpu);
    if (!peers[static_cast<std::size_t>(gpu)].Contains(others)) return false;
  }
  return true;
}

// Two quads whose GPUs are all linked, each GPU with one more link into the other quad.
bool IsCubeMesh(const NvlinkGraph& graph) {
  if (graph.peers.size() != 8 || graph.groups.size() != 1) return false;
  for (const GpuSet peers : graph.peers) {
    if (peers.size() != 4) return false;
  }
  for (const int twin : graph.peers[0]) {
    GpuSet quad = graph.peers[0];
    quad.Add(0);
    quad.Remove(twin);
    if (graph.AreLinked(quad) && graph.AreLinked(GpuSet::FirstOf(8) - quad)) return true;
  }
  return false;
}

// "NV12", "NV10 to NV12".
std::string LinkRange(const NvlinkGraph& graph) {
  return graph.fewest == graph.most ? fmt::format("NV{}", graph.most)
                                    : fmt::format("NV{} to NV{}", graph.fewest, graph.most);
}

// "4 NVLink pairs (NV12)", "1 NVLink group of 3 (NV4) and 1 GPU without NVLink"; every group must
// be linked throughout and of one size.
std::string GroupsText(const NvlinkGraph& graph) {
  std::size_t groups = 0;
  for (const GpuSet group : graph.groups) groups += group.size() > 1 ? 1 : 0;
  const std::size_t loners = graph.groups.size() - groups;
  const int size = graph.groups.front().size();
  const std::string of = size > 2 ? fmt::format(" of {}", size) : "";
  std::string text =
      fmt::format("{}{} ({})", Counted(groups, size > 2 ? "NVLink group" : "NVLink pair"), of,
                  LinkRange(graph));
  if (loners > 0) text += fmt::format(" and {} without NVLink", Counted(loners, "GPU"));
  return text;
}

class Picture {
 public:
  Picture(const Machine& machine, bool colour) : machine_(machine), colour_(colour) {}
  std::string Draw();

 private:
  // The nearest fabric NICs of a GPU; SYS: none is nearer than that.
  struct Near {
    PathClass path = PathClass::kSys;
    std::vector<std::string_view> nics;
    friend auto operator<=>(const Near&, const Near&) = default;
  };

  void DrawNode(std::optional<int> numa, const std::vector<int>& gpus);
  void DrawFarNics();
  void DrawMatrix();
  void DrawSummary();
  void DrawGroups();
  Near NearestNics(int gpu) const;
  std::string CpusOf(const std::vector<int>& gpus) const;
  // `text` in a colour, where there are colours.
  std::string In(std::string_view colour, std::string_view text) const {
    return colour_ ? fmt::format("{}{}{}", colour, text, kPlain) : std::string(text);
  }
  // Words behind `lead`, broken into lines before column 100.
  void List(std::string_view lead, const std::vector<std::string_view>& words);

  const Machine& machine_;
  const bool colour_;
  std::string out_;
};

Picture::Near Picture::NearestNics(int gpu) const {
  Near near;
  for (const MachineNic& nic : machine_.nics()) {
    const PathClass path = nic.paths[static_cast<std::size_t>(gpu)];
    if (!nic.fabric || path == PathClass::kSys || path < near.path) continue;
    if (path > near.path) near = {path, {}};
    near.nics.push_back(nic.name);
  }
  return near;
}

std::string Picture::CpusOf(const std::vector<int>& gpus) const {
  const std::string& cpus = machine_.gpu(gpus.front()).cpus;
  const bool alike = std::all_of(gpus.begin(), gpus.end(),
                                 [&](int gpu) { return machine_.gpu(gpu).cpus == cpus; });
  return alike && !cpus.empty() ? fmt::format("  CPUs {}", cpus.substr(0, kColumns / 2)) : "";
}

void Picture::List(std::string_view lead, const std::vector<std::string_view>& words) {
  std::string line(lead);
  for (const std::string_view word : words) {
    if (line.size() > lead.size() && line.size() + 1 + word.size() > kColumns) {
      out_ += line + '\n';
      line = std::string(lead.size(), ' ');
    }
    line += fmt::format(" {}", word);
  }
  out_ += line + '\n';
}

// GPUs that share their nearest NICs stand in one line.
void Picture::DrawNode(std::optional<int> numa, const std::vector<int>& gpus) {
  out_ += In(kBold, numa ? fmt::format("NUMA node {}", *numa) : "NUMA node unknown");
  out_ += In(kDim, CpusOf(gpus)) + '\n';
  std::map<Near, std::vector<int>> lines;
  for (const int gpu : gpus) lines[NearestNics(gpu)].push_back(gpu);
  std::vector<std::pair<std::vector<int>, Near>> by_gpu;
  for (const auto& [near, near_gpus] : lines) by_gpu.emplace_back(near_gpus, near);
  std::sort(by_gpu.begin(), by_gpu.end());
  std::size_t width = 0;
  std::vector<std::string> leads;
  for (const auto& [near_gpus, near] : by_gpu) {
    std::string lead = " ";
    for (const int gpu : near_gpus) lead += ' ' + machine_.gpu(gpu).name;
    width = std::max(width, lead.size());
    leads.push_back(std::move(lead));
  }
  for (std::size_t at = 0; at < leads.size(); ++at) {
    const Near& near = by_gpu[at].second;
    if (near.nics.empty()) {
      out_ += leads[at] + '\n';
    } else {
      List(fmt::format("{:<{}}  -- {:<4} --", leads[at], width, PathName(near.path)), near.nics);
    }
  }
}

void Picture::DrawFarNics() {
  std::vector<std::string_view> far;
  std::vector<std::string_view> other;
  for (const MachineNic& nic : machine_.nics()) {
    const bool is_far = std::all_of(nic.paths.begin(), nic.paths.end(),
                                    [](PathClass path) { return path == PathClass::kSys; });
    if (!nic.fabric) {
      other.push_back(nic.name);
    } else if (is_far) {
      far.push_back(nic.name);
    }
  }
  if (!far.empty()) List("NICs near no GPU:", far);
  if (!other.empty()) List("NICs for storage or management:", other);
}

void Picture::DrawMatrix() {
  if (machine_.size() < 2) return;
  std::size_t lead = 0;
  for (const MachineGpu& gpu : machine_.gpus()) lead = std::max(lead, gpu.name.size());
  out_ += '\n' + std::string(lead, ' ');
  for (const MachineGpu& gpu : machine_.gpus()) {
    const std::string_view name = gpu.name;
    const bool is_usual = name.substr(0, 3) == "GPU";
    out_ += fmt::format("{:>{}}", is_usual ? name.substr(3) : name, kCellWidth);
  }
  out_ += '\n';
  for (int row = 0; row < machine_.size(); ++row) {
    out_ += fmt::format("{:<{}}", machine_.gpu(row).name, lead);
    for (int column = 0; column < machine_.size(); ++column) {
      const Link link = machine_.link(row, column);
      const std::string cell =
          fmt::format("{:>{}}", row == column ? "." : LinkName(link), kCellWidth);
      out_ += In(link.nvlinks > 0 ? kGreen : kDim, cell);
    }
    out_ += '\n';
  }
}

void Picture::DrawSummary() {
  std::set<int> numa;
  for (const MachineGpu& gpu : machine_.gpus()) {
    if (gpu.numa) numa.insert(*gpu.numa);
  }
  std::string facts = numa.empty() ? "NUMA nodes unknown" : Counted(numa.size(), "NUMA node");
  const auto fabric = std::count_if(machine_.nics().begin(), machine_.nics().end(),
                                    [](const MachineNic& nic) { return nic.fabric; });
  if (fabric > 0) facts += ", " + Counted(static_cast<std::size_t>(fabric), "fabric NIC");
  out_ += fmt::format("\n{}: {}\n", In(kBold, DescribeMachine(machine_)), facts);
  DrawGroups();
}

// Which GPUs form the pairs or groups, where there are several.
void Picture::DrawGroups() {
  std::vector<std::string> groups;
  for (const GpuSet group : NvlinkGraph(machine_).groups) {
    if (group.size() < 2 || group == machine_.all()) continue;
    std::string text;
    for (const int gpu : group) {
      text += fmt::format("{}{}", text.empty() ? "" : "=", machine_.gpu(gpu).name);
    }
    groups.push_back(std::move(text));
  }
  if (!groups.empty()) List("NVLink joins", {groups.begin(), groups.end()});
}

std::string Picture::Draw() {
  // In the order of their first GPU, as the matrix has them.
  std::vector<std::pair<std::optional<int>, std::vector<int>>> nodes;
  for (int gpu = 0; gpu < machine_.size(); ++gpu) {
    const std::optional<int> numa = machine_.gpu(gpu).numa;
    auto node = std::find_if(nodes.begin(), nodes.end(),
                             [&](const auto& known) { return known.first == numa; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), {numa, {}});
    node->second.push_back(gpu);
  }
  for (const auto& [numa, gpus] : nodes) DrawNode(numa, gpus);
  DrawFarNics();
  DrawMatrix();
  DrawSummary();
  return std::move(out_);
}

}  // namespace

std::string DrawMachine(const Machine& machine, bool colour) {
  return Picture(machine, colour).Draw();
}

std::string DescribeMachine(const Machine& machine) {
  const auto size = static_cast<std::size_t>(machine.size());
  if (size < 2) return size == 0 ? "no GPU" : "1 GPU";
  const NvlinkGraph graph(machine);
  if (graph.linked_pairs == 0) return fmt::format("{} GPUs, PCIe only", size);
  if (graph.AllLinked() && size > 2) {
    // More links to all others together than a GPU has: only a switch gives each pair all of them.
    const bool is_switched = graph.fewest * (machine.size() - 1) > kMaxNvlinks;
    return fmt::format("{} GPUs, {} ({})", size,
                       is_switched ? "NVSwitch, all to all" : "NVLink mesh, all to all",
                       LinkRange(graph));
  }
  if (IsCubeMesh(graph)) {
    return fmt::format("hybrid cube mesh of {} GPUs ({})", size, LinkRange(graph));
  }
  const bool groups_alike =
      std::all_of(graph.groups.begin(), graph.groups.end(), [&](GpuSet group) {
        return graph.AreLinked(group) &&
               (group.size() == 1 || group.size() == graph.groups.front().size());
      });
  if (groups_alike) return GroupsText(graph);
  return fmt::format("{} GPUs, {} of {} pairs with NVLink ({})", size, graph.linked_pairs,
                     graph.pairs, LinkRange(graph));
}

}  // namespace tranche
