#include "scheduler/agent/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

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

struct Key {
  std::string name;
  std::string meaning;
  std::string standard;  // where it is not given
  Setter set;
};

std::vector<Key> KeysOf(Config& config, std::string& node) {
  const auto text = [](std::string name, std::string meaning, std::string& field) {
    return Key{std::move(name), std::move(meaning), field, SomeText(field)};
  };
  const auto flag = [](std::string name, std::string meaning, bool& field) {
    return Key{std::move(name), std::move(meaning), field ? "true" : "false", SetFlag(field)};
  };
  const auto seconds = [](std::string name, std::string meaning, std::chrono::seconds& field) {
    return Key{std::move(name), std::move(meaning), std::to_string(field.count()),
               SetSeconds(field)};
  };
  return {
      {"node", "the node it runs on", "$NODE_NAME", SomeText(node)},
      {"kubeconfig", "how to reach the API server", "the pod's account",
       SomeText(config.kubeconfig)},
      text("resource", "what it advertises", config.resource),
      text("pluginFolder", "where the kubelet's socket is and its own goes", config.plugin_folder),
      text("podResources", "the kubelet's socket that tells who holds what", config.pod_resources),
      text("nvml", "NVIDIA's library", config.nvml),
      {"giveBy", "environment or cdi", "environment", SetGiveBy(config.give_by)},
      text("cdiKind", "the kind of CDI devices", config.cdi_kind),
      seconds("lookSeconds", "how often it looks at the GPUs", config.look_period),
      flag("watchHealth", "listens for critical errors of GPUs", config.watch_health),
      flag("makeMig", "makes MIG instances where records say, and removes all others",
           config.make_mig),
      seconds("makeSeconds", "how long a pod waits for an instance", config.make_patience),
      {"slots", "containers that may share a GPU by MPS; 0: none", std::to_string(config.slots),
       SetSlots(config.slots)},
      text("mpsFolder", "sockets of MPS, at the same place on the node", config.mps_folder),
      text("mpsControl", "NVIDIA's program", config.mps_control),
      flag("mpsOnly", "shared GPUs are for MPS alone", config.mps_only),
      {"logLevel", "debug, info, warn, error or off", config.log_level, SetLevel(config.log_level)},
  };
}

}  // namespace

std::string ConfigHelp() {
  Config config;
  std::string node;
  std::string help;
  for (const Key& key : KeysOf(config, node)) {
    help += fmt::format("  {:<13} {} ({})\n", key.name, key.meaning, key.standard);
  }
  return help;
}

absl::StatusOr<Config> ParseConfig(const std::string& yaml) {
  Config config;
  std::string node;
  const std::vector<Key> keys = KeysOf(config, node);
  try {
    const YAML::Node document = YAML::Load(yaml);
    if (!document.IsMap() && !document.IsNull()) {
      return absl::InvalidArgumentError("expected keys with values, found another document");
    }
    for (const auto& entry : document) {
      const auto key = entry.first.as<std::string>();
      const auto known = std::ranges::find(keys, key, &Key::name);
      if (known == keys.end()) {
        return absl::InvalidArgumentError(fmt::format("expected a known key, found {}", key));
      }
      const std::string value = entry.second.IsScalar() ? entry.second.Scalar() : "";
      if (const std::string expected = known->set(value); !expected.empty()) {
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
