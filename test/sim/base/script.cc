#include "test/sim/base/script.h"

#include <functional>
#include <utility>

namespace tranche::sim {
namespace {

uint64_t NumberOf(const std::string& text) {
  uint64_t number = 14695981039346656037ULL;
  for (const char byte : text)
    number = (number ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return number;
}

}  // namespace

Script::Name& Script::NameOf(const std::string& name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  return names_.emplace(name, Name{draws_.Fork(NumberOf(name))}).first->second;
}

std::optional<Draws> Script::Act(const std::string& name) { return ActByChance(name, 10'000); }

std::optional<Draws> Script::ActByChance(const std::string& name, int parts) {
  Name& of = NameOf(name);
  ++of.asked;
  if (!of.chances.Chance(parts)) return std::nullopt;
  const Id id = name + "#" + std::to_string(++of.came);
  if (left_out_.contains(id)) return std::nullopt;
  done_.push_back(id);
  return draws_.Fork(NumberOf(id));
}

}  // namespace tranche::sim
