// The part of NVML's binary interface that is called: numbers and layouts, in our own names.
//
// Source: NVML API reference, R470 and later (docs.nvidia.com/deploy/nvml-api). NVIDIA keeps the
// layout behind a versioned function name (nvmlInit_v2) for good.
#pragma once

namespace tranche::probe::abi {

// What every function returns.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidArgument = 2;
inline constexpr int kNotSupported = 3;
inline constexpr int kNoPermission = 4;
inline constexpr int kNotFound = 6;
inline constexpr int kTimeout = 10;

// nvmlDeviceGetTopologyCommonAncestor.
inline constexpr unsigned kAncestorInternal = 0;
inline constexpr unsigned kAncestorSingle = 10;
inline constexpr unsigned kAncestorMultiple = 20;
inline constexpr unsigned kAncestorHostBridge = 30;
inline constexpr unsigned kAncestorNode = 40;
inline constexpr unsigned kAncestorSystem = 50;

// nvmlDeviceGetNvLinkRemoteDeviceType.
inline constexpr unsigned kRemoteGpu = 0;
inline constexpr unsigned kRemoteSwitch = 2;

// nvmlDeviceGetPciInfo_v3, nvmlDeviceGetNvLinkRemotePciInfo_v2.
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

// nvmlDeviceGetMemoryInfo, bytes.
struct Memory {
  unsigned long long total, free, used;
};

// nvmlDeviceGetMemoryInfo_v2, bytes; `version` is set before the call.
struct MemoryWithReserved {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryWithReserved) == 40);
inline constexpr unsigned kMemoryWithReservedVersion = sizeof(MemoryWithReserved) | (2U << 24U);

// nvmlDeviceGetComputeMode, nvmlDeviceSetComputeMode.
inline constexpr int kExclusiveProcess = 3;

// nvmlGpuInstanceGetInfo.
struct GpuInstanceInfo {
  void* device;
  unsigned id;
  unsigned profile_id;
  unsigned start, size;  // memory slices
};
static_assert(sizeof(GpuInstanceInfo) == 24);

// nvmlDeviceGetGpuInstanceProfileInfoV; `version` is set before the call.
struct GpuInstanceProfile {
  unsigned version;
  unsigned id;
  unsigned peer_to_peer;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
  unsigned long long memory_mib;
  char name[96];  // "MIG 1g.10gb"
};
static_assert(sizeof(GpuInstanceProfile) == 152);
inline constexpr unsigned kGpuInstanceProfileVersion = sizeof(GpuInstanceProfile) | (2U << 24U);

// nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDeviceCreateGpuInstanceWithPlacement; memory
// slices.
struct GpuInstancePlacement {
  unsigned start, size;
};
static_assert(sizeof(GpuInstancePlacement) == 8);

// nvmlGpuInstanceGetComputeInstanceProfileInfo; profiles are numbered from 0, with gaps.
struct ComputeInstanceProfile {
  unsigned id;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
};
static_assert(sizeof(ComputeInstanceProfile) == 36);
inline constexpr unsigned kSharedEngines = 0;

// nvmlDeviceRegisterEvents.
inline constexpr unsigned long long kDoubleBitEccError = 0x2;
inline constexpr unsigned long long kXidCriticalError = 0x8;

// nvmlEventSetWait_v2.
struct EventData {
  void* device;
  unsigned long long type;
  unsigned long long data;  // of kXidCriticalError: the XID
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

// nvmlDeviceGetAttributes_v2 of a MIG device.
struct MigAttributes {
  unsigned multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
  unsigned gpu_slices;      // of the GPU instance
  unsigned compute_slices;  // of the compute instance in it
  unsigned long long memory_mib;
};
static_assert(sizeof(MigAttributes) == 40);

}  // namespace tranche::probe::abi
