// NVML, the driver's library about GPUs, loaded at run time: nothing of NVIDIA is needed to build
// or to run anywhere else.
//
// Loaded and initialised for one look at the node and let go again: whoever holds NVML open keeps
// the driver from being replaced and GPUs from being reset or changed to MIG.
//
// Thread rule: one thread. A call may hang as long as the driver does; NVML knows no deadlines.
// Errors name the function and the driver's words: PermissionDenied, Unimplemented (not on this
// hardware), InvalidArgument, OutOfRange (no such thing), Unavailable for all else,
// FailedPrecondition where the library lacks the function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/probe/node_reading.h"

namespace tranche::probe {

// The nearest thing on the PCIe tree that two GPUs share, nearest first.
enum class Ancestor : uint8_t { kBoard, kSwitch, kSwitches, kHostBridge, kNumaNode, kSystem };

// Active NVLinks of one GPU, by where they lead.
struct NvLinks {
  int to_switches = 0;
  std::vector<std::string> to_gpus;  // PCI bus of the other end, once for each link
};

class Nvml {
 public:
  // A GPU or a MIG device of it; valid as long as the Nvml.
  using Device = void*;

  // Errors: NotFound when there is no such library, Unavailable when the driver does not run.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  absl::StatusOr<std::string> DriverVersion();
  absl::StatusOr<int> DeviceCount();
  absl::StatusOr<Device> DeviceAt(int index);  // in the driver's order, by PCI bus
  absl::StatusOr<std::string> Uuid(Device device);
  // "0000:07:00.0", as the kernel spells it.
  absl::StatusOr<std::string> PciBus(Device gpu);
  absl::StatusOr<int64_t> MemoryMib(Device gpu);
  // False also for GPUs that know no MIG.
  absl::StatusOr<bool> MigIsOn(Device gpu);
  // Instances that can be handed out, by start. A compute instance smaller than its GPU instance is
  // told with the count of its slices in front: "1c.3g.40gb".
  absl::StatusOr<std::vector<MigInstance>> MigInstances(Device gpu);

  absl::StatusOr<Ancestor> CommonAncestor(Device one, Device other);
  absl::StatusOr<NvLinks> ActiveLinks(Device gpu);

 private:
  class Library;

  explicit Nvml(std::unique_ptr<Library> library);
  absl::StatusOr<MigInstance> ReadMigInstance(Device gpu, Device mig);
  absl::StatusOr<std::string> ProfileName(Device gpu, unsigned profile_id);

  std::unique_ptr<Library> library_;
};

}  // namespace tranche::probe
