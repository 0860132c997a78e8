#include "scheduler/controllers/mig_config_map.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <optional>

#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr const char* kConfigs = "mig-configs";
constexpr std::size_t kIndent = 2;

absl::Status Bad(std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(fmt::format("expected {}, found {}", expected, found));
}

// yaml-cpp reports by exceptions; they end here.
absl::StatusOr<YAML::Node> LoadYaml(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return Bad("a map with version and mig-configs", "something else");
    const YAML::Node version = root["version"];
    if (!version || !version.IsScalar() || version.Scalar() != "v1") {
      return Bad("version: v1",
                 version && version.IsScalar() ? wire::Quoted(version.Scalar()) : "something else");
    }
    const YAML::Node configs = root[kConfigs];
    if (!configs || !(configs.IsMap() || configs.IsNull())) {
      return Bad("a map mig-configs", "something else");
    }
    return configs;
  } catch (const YAML::Exception& error) {
    return Bad("YAML", error.msg);
  }
}

// Where the line after "mig-configs:" begins; nullopt where there is no such line of its own.
std::optional<std::size_t> StartOfEntries(std::string_view file) {
  const std::string head = fmt::format("{}:", kConfigs);
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t end = std::min(file.find('\n', at), file.size());
    const std::string_view line = file.substr(at, end - at);
    if (line.starts_with(head)) {
      const std::size_t rest = line.find_first_not_of(" \t\r", head.size());
      const bool alone = rest == std::string_view::npos || line[rest] == '#';
      return alone ? std::optional(std::min(end + 1, file.size())) : std::nullopt;
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::string Indented(std::string_view text, std::size_t indent) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += std::string(indent, ' ') + std::string(text.substr(at, end - at));
    out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> AddMigConfig(const std::string& file, std::string_view name,
                                         std::string_view entry) {
  const std::string base = file.find_first_not_of(" \t\r\n") == std::string::npos
                               ? fmt::format("version: v1\n{}:\n", kConfigs)
                               : file;
  TRANCHE_ASSIGN_OR_RETURN(const YAML::Node before, LoadYaml(base));
  const std::string key(name);
  if (before.IsMap() && before[key]) return file;
  const std::optional<std::size_t> start = StartOfEntries(base);
  if (!start) return Bad("mig-configs: on a line of its own", "it in another form");
  const std::size_t indent = before.IsMap() && before.size() > 0
                                 ? static_cast<std::size_t>(before.begin()->first.Mark().column)
                                 : kIndent;
  std::string out = base.substr(0, *start);
  if (out.back() != '\n') out += '\n';
  out += Indented(entry, indent) + base.substr(*start);
  TRANCHE_ASSIGN_OR_RETURN(const YAML::Node after, LoadYaml(out));
  const bool added = after.IsMap() && after.size() == before.size() + 1 && after[key];
  if (!added || !after[key].IsSequence()) {
    return Bad(fmt::format("one entry {} of a list", wire::Quoted(name)), "another text");
  }
  return out;
}

}  // namespace tranche
