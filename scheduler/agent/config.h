// What `tranche-node --config` reads. Every field has a default but the node's name, which may come
// from the environment (NODE_NAME).
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/agent/plugin.h"
#include "topology/base/ids.h"

namespace tranche::agent {

struct Config {
  NodeName node;
  std::string kubeconfig;  // empty: as a pod of the cluster
  std::string resource = "nvidia.com/gpu";
  std::string plugin_folder = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string nvml = "libnvidia-ml.so.1";
  GiveBy give_by = GiveBy::kEnvironment;
  std::string cdi_kind = "nvidia.com/gpu";
  std::chrono::seconds look_period{10};  // at the GPUs
  bool watch_health = true;              // listens for critical errors of GPUs
  // Makes MIG instances where records say, and removes all others: nobody else may make any there.
  bool make_mig = false;
  std::chrono::seconds make_patience{20};  // with the driver, for one instance
  // Containers that may use a GPU at a time, held to their parts by MPS; 0: GPUs are given whole.
  int slots = 0;
  // For the sockets of MPS; at the same place on the node.
  std::string mps_folder = "/run/tranche/mps";
  std::string mps_control = "nvidia-cuda-mps-control";
  // No program may use a shared GPU but through MPS (compute mode EXCLUSIVE_PROCESS).
  bool mps_only = true;
  std::string log_level = "info";
};

// Errors: InvalidArgument naming the key, what was expected and found; NotFound for a file that
// cannot be read.
absl::StatusOr<Config> ParseConfig(const std::string& yaml);
absl::StatusOr<Config> LoadConfig(const std::string& path);
// Every key with its meaning and what holds where it is not given, a line each.
std::string ConfigHelp();

}  // namespace tranche::agent
