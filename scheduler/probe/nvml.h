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

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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

// What a GPU can be cut into.
struct MigProfile {
  std::string name;  // "1g.10gb+me"
  unsigned id = 0;   // the driver's, of this GPU
  int slices = 0;    // of compute
  int64_t mib = 0;
};

// A GPU instance; a compute instance of it is what can be handed out.
struct GpuInstance {
  unsigned id = 0;  // the driver's
  std::string profile;
  int start = 0;
  int size = 0;
  std::string uuid;  // of the compute instance that is all of it; empty: it has none
};

// A critical error that the driver told of.
struct GpuEvent {
  std::string uuid;
  std::optional<uint64_t> xid;  // nullopt: memory that ECC could not correct
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
  absl::StatusOr<std::string> ProductName(Device gpu);  // "NVIDIA H100 80GB HBM3"
  // "0000:07:00.0", as the kernel spells it.
  absl::StatusOr<std::string> PciBus(Device gpu);
  absl::StatusOr<int64_t> MemoryMib(Device gpu);
  // Without what the driver keeps for itself, where it tells.
  absl::StatusOr<int64_t> UsableMib(Device gpu);
  // Sets compute mode EXCLUSIVE_PROCESS, in which one process at a time may use the GPU, say the
  // MPS server for its clients.
  absl::Status MakeExclusive(Device gpu);
  // False also for GPUs that know no MIG.
  absl::StatusOr<bool> MigIsOn(Device gpu);
  // Instances that can be handed out, by start. A compute instance smaller than its GPU instance is
  // told with the count of its slices in front: "1c.3g.40gb".
  absl::StatusOr<std::vector<MigInstance>> MigInstances(Device gpu);

  // Making MIG instances to measure; for GPUs whose MIG mode is on. What another thread does to the
  // same GPU meanwhile is the driver's to order.
  absl::StatusOr<std::vector<MigProfile>> MigProfiles(Device gpu);
  // Memory units where an instance may start, ascending, whatever there is now; all of one size.
  struct Places {
    int size = 0;
    std::vector<int> starts;
  };
  absl::StatusOr<Places> PlacesOf(Device gpu, const MigProfile& profile);
  // Also those without a compute instance, by start.
  absl::StatusOr<std::vector<GpuInstance>> GpuInstances(Device gpu);
  // Makes a GPU instance and a compute instance of all of it. After an error a GPU instance may be
  // left.
  absl::Status MakeInstance(Device gpu, const MigProfile& profile, int start, int size);
  // With its compute instances.
  absl::Status DestroyInstance(Device gpu, unsigned id);

  // Why the GPU's memory needs a reset or more; empty: it does not, or the GPU cannot say.
  absl::StatusOr<std::string> MemoryProblem(Device gpu);
  // Listens for critical errors of all GPUs as long as this lives; a GPU that tells none is left
  // out.
  absl::Status Listen();
  // The next one since Listen; nullopt: none came within that time.
  absl::StatusOr<std::optional<GpuEvent>> NextEvent(std::chrono::milliseconds patience);

  absl::StatusOr<Ancestor> CommonAncestor(Device one, Device other);
  absl::StatusOr<NvLinks> ActiveLinks(Device gpu);

 private:
  class Library;

  explicit Nvml(std::unique_ptr<Library> library);
  absl::StatusOr<MigInstance> ReadMigInstance(Device gpu, Device mig);
  absl::StatusOr<std::string> ProfileName(Device gpu, unsigned profile_id);
  absl::Status AddUuids(Device gpu, std::vector<GpuInstance>& instances);
  absl::Status MakeComputeInstance(void* instance, int slices);

  std::unique_ptr<Library> library_;
  void* events_ = nullptr;  // what Listen has made
};

}  // namespace tranche::probe
