#include "scheduler/probe/pci_tree.h"

#include <charconv>
#include <fstream>

namespace tranche::probe {

std::string PciTree::FirstWord(const std::string& bus, const char* file) const {
  std::ifstream stream(root_ + "/" + bus + "/" + file);
  std::string word;
  stream >> word;
  return word;
}

std::optional<int> PciTree::NumaNode(const std::string& bus) const {
  const std::string word = FirstWord(bus, "numa_node");
  int node = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), node);
  const bool known = error == std::errc() && end == word.data() + word.size() && node >= 0;
  return known ? std::optional(node) : std::nullopt;
}

std::string PciTree::CpuList(const std::string& bus) const {
  return FirstWord(bus, "local_cpulist");
}

}  // namespace tranche::probe
