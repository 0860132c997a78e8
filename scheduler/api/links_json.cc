#include "scheduler/api/links_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler/api/json_members.h"
#include "topology/machine/machine_draw.h"

namespace tranche {
namespace {

std::string Describe(const Machine& machine) {
  std::string out = "{";
  AppendMember(out, "text", DescribeMachine(machine));
  AppendList(out, "groups", NvlinkGroups(machine),
             [](std::string& text, const std::vector<int>& group) {
               text += fmt::format("[{}]", fmt::join(group, ","));
             });
  return out;
}

}  // namespace

std::vector<std::vector<int>> NvlinkGroups(const Machine& machine) {
  // Each GPU's first reachable one; a pass per GPU joins whole groups.
  std::vector<int> first(static_cast<std::size_t>(machine.size()));
  std::iota(first.begin(), first.end(), 0);
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = left + 1; right < machine.size(); ++right) {
      if (machine.link(left, right).nvlinks == 0) continue;
      const int from = first[static_cast<std::size_t>(right)];
      const int to = first[static_cast<std::size_t>(left)];
      for (int& one : first) {
        if (one == std::max(from, to)) one = std::min(from, to);
      }
    }
  }
  std::vector<std::vector<int>> groups;
  for (int head = 0; head < machine.size(); ++head) {
    std::vector<int> group;
    for (int gpu = head; gpu < machine.size(); ++gpu) {
      if (first[static_cast<std::size_t>(gpu)] == head) group.push_back(gpu);
    }
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

void LinksJson::Append(std::string& out, const NodeView& node) {
  if (node.machine == nullptr) {
    AppendNull(out, "nvlink");
    return;
  }
  std::string& text = known_[node.machine.get()];
  if (text.empty()) text = Describe(node.machine->machine());
  AppendKey(out, "nvlink");
  out += text;
  AppendFlag(out, "verified", node.links_verified);
  out += '}';
}

}  // namespace tranche
