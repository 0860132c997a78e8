#include "scheduler/cli/cli_reserve.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string_view>
#include <system_error>
#include <vector>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/records/placeholder_pod.h"

namespace tranche {
namespace {

namespace fs = std::filesystem;

// Device list strategy volume-mounts: a file for each device.
constexpr const char* kMountedDevices = "/var/run/nvidia-container-devices";
constexpr const char* kDriverGpus = "/proc/driver/nvidia/gpus";

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

// "GPU UUID:  GPU-..." -> "GPU-..."; empty: the line is another.
std::string_view ValueOf(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return {};
  line.remove_prefix(key.size());
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

// The UUID of the GPU with this minor number, as the driver says it; empty: it does not.
std::string UuidOf(const std::string& minor, const std::string& root) {
  for (const std::string& bus : NamesIn(root + kDriverGpus)) {
    std::ifstream file(root + kDriverGpus + "/" + bus + "/information");
    std::string uuid;
    bool same = false;
    for (std::string line; std::getline(file, line);) {
      if (const auto value = ValueOf(line, "GPU UUID:"); !value.empty()) uuid = value;
      same |= ValueOf(line, "Device Minor:") == minor;
    }
    if (same) return uuid;
  }
  return "";
}

// CDI names no device in the environment: the container simply has its node.
std::vector<std::string> DeviceNodes(const std::string& root) {
  std::vector<std::string> minors;
  for (const std::string& name : NamesIn(root + "/dev")) {
    const std::string_view minor = ValueOf(name, "nvidia");
    const bool number = !minor.empty() && minor.find_first_not_of("0123456789") == minor.npos;
    if (number) minors.emplace_back(minor);
  }
  return minors;
}

int Hold() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  int which = 0;
  sigwait(&ends, &which);
  return 0;
}

}  // namespace

absl::StatusOr<std::string> OwnGpu(const char* visible, const std::string& root) {
  const std::string_view said = visible == nullptr ? "" : visible;
  if (const std::string_view device = wire::OneDevice(said); !device.empty()) {
    return std::string(device);
  }
  std::string found = fmt::format("{}={}", wire::kVisibleDevicesEnv, wire::Quoted(said));
  if (said == kMountedDevices) {
    const std::vector<std::string> names = NamesIn(root + kMountedDevices);
    if (names.size() == 1 && !wire::OneDevice(names.front()).empty()) return names.front();
    found += fmt::format(" with {} devices", names.size());
  }
  const std::vector<std::string> minors = DeviceNodes(root);
  if (minors.size() == 1) {
    const std::string uuid = UuidOf(minors.front(), root);
    if (!wire::OneDevice(uuid).empty()) return uuid;
  }
  return absl::FailedPreconditionError(fmt::format(
      "expected one GPU, found {} and {} device nodes /dev/nvidia*", found, minors.size()));
}

int RunReserve(const ReserveOptions& options, std::ostream& err) {
  if (options.hold) return Hold();
  const std::string name(wire::kVisibleDevicesEnv);
  const absl::StatusOr<std::string> gpu = OwnGpu(std::getenv(name.c_str()), options.root);
  if (!gpu.ok()) {
    err << "tranche: " << std::string(gpu.status().message()) << '\n';
    return 1;
  }
  std::ofstream file(options.message_file);
  if (!(file << *gpu) || !file.flush()) {
    err << "tranche: --message-file: expected a file that can be written, found none at "
        << wire::Quoted(options.message_file) << '\n';
    return 1;
  }
  return 0;
}

}  // namespace tranche
