#include "test/sim/tool/seed_file.h"

#include <fmt/format.h>

#include <sstream>

namespace tranche::sim {

std::optional<SeedFile> ReadSeedFile(const std::string& text, std::string& problem) {
  SeedFile file;
  std::istringstream lines(text);
  bool has_seed = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string name;
    if (!(words >> name)) continue;
    bool read = true;
    if (name == "#") {
      if (file.why.empty()) std::getline(words >> std::ws, file.why);
    } else if (name == "seed") {
      read = has_seed = static_cast<bool>(words >> file.options.seed);
    } else if (name == "lives") {
      read = static_cast<bool>(words >> file.options.lives);
    } else if (name == "faults") {
      read = static_cast<bool>(words >> file.options.faults);
    } else if (name == "checker") {
      read = static_cast<bool>(words >> file.checker);
    } else if (name == "without") {
      for (std::string id; words >> id;) file.options.left_out.insert(id);
    } else {
      read = false;
    }
    if (!read) {
      problem = fmt::format(
          "expected seed, lives, faults, checker or without and a value, found \"{}\", in line {}",
          line, number);
      return std::nullopt;
    }
  }
  if (!has_seed) {
    problem = "expected a line with a seed, found none";
    return std::nullopt;
  }
  return file;
}

std::string WriteSeedFile(const SeedFile& file) {
  constexpr std::size_t kWide = 90;
  std::string text =
      fmt::format("# {}\nseed {}\nlives {}\nfaults {}\nchecker {}\n", file.why, file.options.seed,
                  file.options.lives, file.options.faults, file.checker);
  std::string line;
  for (const Script::Id& id : file.options.left_out) {
    if (!line.empty() && line.size() + id.size() > kWide) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "without " : " ") + id;
  }
  if (!line.empty()) text += line + "\n";
  return text;
}

}  // namespace tranche::sim
