#include "scheduler/cli/scheduler_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "scheduler/wire/json/json.h"
#include "topology/mig.h"

namespace tranche {
namespace {

// Of nodes that are looked at, in percent.
constexpr int kAllNodes = 100;
constexpr int kFewestNodes = 5;
// Nodes that pass before kube-scheduler may stop.
constexpr int kEnoughNodes = 1'000;

// Keys of request styles that no node advertises.
constexpr std::array<std::string_view, 7> kUnadvertised = {
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/vgpu-memory",
    "nvidia.com/vgpu-cores",
    "volcano.sh/vgpu-memory-percentage",
    "hivedscheduler.microsoft.com/pod-scheduling-enable"};

// Keys that node agents advertise beside those of the stock device plugin.
constexpr std::array<std::string_view, 16> kOfAgents = {
    "aliyun.com/gpu-mem",        "elasticgpu.io/gpu-core",          "elasticgpu.io/gpu-memory",
    "koordinator.sh/gpu",        "koordinator.sh/gpu-core",         "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu.shared", "koordinator.sh/gpu-memory-ratio", "nvidia.com/vgpu-number",
    "tencent.com/vcuda-core",    "tencent.com/vcuda-memory",        "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",     "volcano.sh/vgpu-cores",           "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-number"};

// Every MIG resource of every board, plain and shared.
std::set<std::string> MigResources() {
  std::set<std::string> names;
  for (const MigBoard& board : MigBoards()) {
    for (const MigProfile& profile : board.profiles) {
      names.insert(FormatMigResource({std::string(profile.name), false}));
      names.insert(FormatMigResource({std::string(profile.name), true}));
    }
  }
  return names;
}

// Text that needs no quoting inside a YAML value.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:[]%").find(c) != std::string_view::npos;
  });
}

absl::Status Check(const SchedulerConfigOptions& options) {
  for (const std::string& text : {options.server, options.scheduler_name, options.kubeconfig,
                                  options.ca_file, options.cert_file, options.key_file}) {
    if (!IsPlain(text)) {
      return absl::InvalidArgumentError(
          fmt::format("expected letters, digits and -_./:[]%, found {}", wire::Quoted(text)));
    }
  }
  const bool tls = options.server.rfind("https://", 0) == 0;
  if (!tls && options.server.rfind("http://", 0) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("server: expected http://HOST:PORT or https://HOST:PORT, found {}",
                    wire::Quoted(options.server)));
  }
  if (tls && options.ca_file.empty()) {
    return absl::InvalidArgumentError(
        "ca-file: expected a file with an https server, found none (kube-scheduler would not "
        "verify the server)");
  }
  if (!tls && !(options.ca_file + options.cert_file + options.key_file).empty()) {
    return absl::InvalidArgumentError("ca-file: expected an https server, found http");
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("cert-file: expected together with key-file, found one");
  }
  return absl::OkStatus();
}

std::string Percentage(const std::optional<int>& nodes) {
  const int percentage = nodes ? PercentageOfNodes(*nodes) : kAllNodes;
  const std::string line = fmt::format("  percentageOfNodesToScore: {}\n", percentage);
  if (percentage == kAllNodes)
    return "  # Let Tranche see every feasible node, not a sample.\n" + line;
  return fmt::format(
             "  # Of {} nodes kube-scheduler stops at {} that passed its own filters: a pod costs "
             "it\n"
             "  # less, packing hardly suffers, but a pod that fits only elsewhere is refused at "
             "first\n"
             "  # and looks again.\n",
             *nodes, static_cast<int64_t>(*nodes) * percentage / kAllNodes) +
         line;
}

std::string Profile(const SchedulerConfigOptions& options) {
  std::string out = fmt::format("profiles:\n- schedulerName: {}\n", options.scheduler_name) +
                    Percentage(options.nodes);
  if (!options.all_pods) return out;
  out +=
      "  pluginConfig:\n"
      "  - name: NodeResourcesFit\n"
      "    args:\n"
      "      apiVersion: kubescheduler.config.k8s.io/v1\n"
      "      kind: NodeResourcesFitArgs\n"
      "      # No node advertises these; Tranche accounts for them.\n"
      "      ignoredResources:\n";
  for (const std::string_view name : kUnadvertised) out += fmt::format("      - {}\n", name);
  return out;
}

std::string ManagedResources(const SchedulerConfigOptions& options) {
  if (options.all_pods) {
    return "  # No managedResources: Tranche is asked about every pod, because a pod may want a "
           "GPU\n"
           "  # by a tranche.dev annotation alone. Pods without any GPU wish pass untouched. What\n"
           "  # ignoredByScheduler would do for resources no node advertises is done by\n"
           "  # ignoredResources above.\n";
  }
  std::string out =
      "  # Only pods that name one of these are shown to Tranche: a pod with nothing but a\n"
      "  # tranche.dev annotation is scheduled as if it wanted no GPU.\n"
      "  managedResources:\n";
  const auto add = [&out](std::string_view name, const char* ignored) {
    out += fmt::format("  - {{name: {}, ignoredByScheduler: {}}}\n", name, ignored);
  };
  // kube-scheduler goes on counting what nodes advertise.
  constexpr const char* kCounted = "false";
  constexpr const char* kIgnored = "true";
  add("nvidia.com/gpu", kCounted);
  add("nvidia.com/gpu.shared", kCounted);
  for (const std::string& name : MigResources()) {
    // Kubernetes takes no '+' in a resource name, and FormatMigResource writes none.
    add(name, kCounted);
  }
  for (const std::string_view name : kOfAgents) add(name, kCounted);
  for (const std::string_view name : kUnadvertised) add(name, kIgnored);
  return out;
}

std::string Tls(const SchedulerConfigOptions& options) {
  if (options.ca_file.empty()) return "";
  std::string out =
      fmt::format("  enableHTTPS: true\n  tlsConfig:\n    caFile: {}\n", options.ca_file);
  if (!options.cert_file.empty()) {
    out += fmt::format("    certFile: {}\n    keyFile: {}\n", options.cert_file, options.key_file);
  }
  return out;
}

}  // namespace

int PercentageOfNodes(int nodes) {
  return std::clamp((kEnoughNodes * kAllNodes + nodes - 1) / nodes, kFewestNodes, kAllNodes);
}

absl::StatusOr<std::string> MakeSchedulerConfig(const SchedulerConfigOptions& options) {
  if (const absl::Status checked = Check(options); !checked.ok()) return checked;
  std::string prefix = options.server;
  while (prefix.back() == '/') prefix.pop_back();
  std::string out = fmt::format(
      "# Start kube-scheduler with --config and this file.\n"
      "apiVersion: kubescheduler.config.k8s.io/v1\n"
      "kind: KubeSchedulerConfiguration\n"
      "clientConnection:\n"
      "  kubeconfig: {}\n"
      "  qps: 500\n"
      "  burst: 1000\n"
      "leaderElection:\n"
      "  leaderElect: true\n"
      "# Fewer attempts on pods that have to wait.\n"
      "podMaxBackoffSeconds: 30\n",
      options.kubeconfig);
  out += Profile(options);
  out += fmt::format(
      "extenders:\n"
      "- urlPrefix: {}/scheduler\n"
      "  filterVerb: filter\n"
      "  prioritizeVerb: prioritize\n"
      "  preemptVerb: preempt\n"
      "  bindVerb: bind\n"
      "  # 20 lets Tranche's strict order decide; 15 is where it begins to outweigh all of\n"
      "  # kube-scheduler's own scores together.\n"
      "  weight: 20\n"
      "  # A bind answers within 4 s, what is not proven by then is pursued in the background.\n"
      "  httpTimeout: 5s\n"
      "  nodeCacheCapable: true\n"
      "  # Ignoring a failure would place pods without device accounting.\n"
      "  ignorable: false\n",
      prefix);
  out += Tls(options);
  out += ManagedResources(options);
  return out;
}

}  // namespace tranche
