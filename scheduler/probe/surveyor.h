// Looks at the node: NVML, nvidia-smi and the kubelet, put together as one reading.
//
// Thread rule: one thread. A look takes as long as the driver does, and at most the time limits of
// program.h and grpc_call.h on top.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/probe/node_reading.h"
#include "scheduler/probe/nvml.h"
#include "scheduler/probe/pci_tree.h"

namespace tranche::probe {

struct Sources {
  std::string nvml = "libnvidia-ml.so.1";
  std::string nvidia_smi = "nvidia-smi";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string pci_devices = "/sys/bus/pci/devices";
};

struct Survey {
  NodeReading reading;
  // What could not be asked, and why; the reading then says less, or the same from another source.
  std::vector<std::string> notes;
};

class Surveyor {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Links change when the driver starts anew, which changes what NVML says, or when one of them
  // fails, which it does not tell: the matrix is drawn again this often.
  static constexpr std::chrono::minutes kMatrixPeriod{10};

  explicit Surveyor(Sources sources);

  // Errors: NotFound when there is no NVML library; those of ReadGpus.
  absl::StatusOr<Survey> Look(Time now);

 private:
  absl::Status DrawAnew(Nvml& nvml, const std::vector<Gpu>& gpus);
  void AskKubelet(Survey& survey);

  const Sources sources_;
  const PciTree pci_;
  // The last matrix, what nvidia-smi could not do for it, and what it was drawn for.
  std::string matrix_;
  std::string matrix_note_;
  std::string matrix_of_;
  Time matrix_at_;
};

}  // namespace tranche::probe
