#include "scheduler/agent/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "topology/base/quantity.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

// Takes a value, or says what it expected.
using Setter = std::function<std::string(const std::string&)>;

constexpr int kMostDigits = 4;
constexpr int64_t kMostSeconds = 3'600;
constexpr int64_t kMostSlots = 48;  // containers that an MPS server takes
constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warn", "error", "off"};

Setter SomeText(std::string& field) {
  return [&field](const std::string& text) {
    field = text;
    return std::string(text.empty() ? "a text" : "");
  };
}

Setter SetGiveBy(GiveBy& field) {
  return [&field](const std::string& text) {
    field = text == "cdi" ? GiveBy::kCdi : GiveBy::kEnvironment;
    return std::string(text == "cdi" || text == "environment" ? "" : "environment or cdi");
  };
}

Setter SetSeconds(std::chrono::seconds& field) {
  return [&field](const std::string& text) {
    std::string_view rest = text;
    const auto seconds = TakeDigits(rest, kMostDigits);
    const bool right = seconds && rest.empty() && *seconds >= 1 && *seconds <= kMostSeconds;
    if (right) field = std::chrono::seconds(*seconds);
    return std::string(right ? "" : "a whole number in 1..3600");
  };
}

Setter SetSlots(int& field) {
  return [&field](const std::string& text) {
    std::string_view rest = text;
    const auto slots = TakeDigits(rest, kMostDigits);
    const bool right = slots && rest.empty() && *slots <= kMostSlots;
    if (right) field = static_cast<int>(*slots);
    return std::string(right ? "" : "a whole number in 0..48, the containers MPS takes on a GPU");
  };
}

Setter SetFlag(bool& field) {
  return [&field](const std::string& text) {
    field = text == "true";
    return std::string(text == "true" || text == "false" ? "" : "true or false");
  };
}

Setter SetLevel(std::string& field) {
  return [&field](const std::string& text) {
    field = text;
    return std::string(std::ranges::count(kLevels, text) > 0 ? ""
                                                             : "debug, info, warn, error or off");
  };
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const std::string& yaml) {
  Config config;
  std::string node;
  const std::map<std::string, Setter> setters = {
      {"node", SomeText(node)},
      {"kubeconfig", SomeText(config.kubeconfig)},
      {"resource", SomeText(config.resource)},
      {"pluginFolder", SomeText(config.plugin_folder)},
      {"podResources", SomeText(config.pod_resources)},
      {"nvml", SomeText(config.nvml)},
      {"giveBy", SetGiveBy(config.give_by)},
      {"cdiKind", SomeText(config.cdi_kind)},
      {"lookSeconds", SetSeconds(config.look_period)},
      {"watchHealth", SetFlag(config.watch_health)},
      {"makeMig", SetFlag(config.make_mig)},
      {"makeSeconds", SetSeconds(config.make_patience)},
      {"slots", SetSlots(config.slots)},
      {"mpsFolder", SomeText(config.mps_folder)},
      {"mpsControl", SomeText(config.mps_control)},
      {"mpsOnly", SetFlag(config.mps_only)},
      {"logLevel", SetLevel(config.log_level)},
  };
  try {
    const YAML::Node document = YAML::Load(yaml);
    if (!document.IsMap() && !document.IsNull()) {
      return absl::InvalidArgumentError("expected keys with values, found another document");
    }
    for (const auto& entry : document) {
      const auto key = entry.first.as<std::string>();
      const auto setter = setters.find(key);
      if (setter == setters.end()) {
        return absl::InvalidArgumentError(fmt::format("expected a known key, found {}", key));
      }
      const std::string value = entry.second.IsScalar() ? entry.second.Scalar() : "";
      if (const std::string expected = setter->second(value); !expected.empty()) {
        return absl::InvalidArgumentError(
            fmt::format("{}: expected {}, found '{}'", key, expected, value));
      }
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("expected YAML, found: {}", error.what()));
  }
  const char* const named = std::getenv("NODE_NAME");
  if (node.empty() && named != nullptr) node = named;
  if (node.empty()) {
    return absl::InvalidArgumentError("expected the key node or NODE_NAME, found neither");
  }
  config.node = NodeName(node);
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  auto config = ParseConfig(text.str());
  if (config.ok()) return config;
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", path, std::string(config.status().message())));
}

}  // namespace tranche::agent
