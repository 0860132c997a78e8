// What GPUs tell of their health: events, and memory that waits to be mended.
#include "scheduler/probe/nvml_abi.h"
#include "scheduler/probe/nvml_library.h"
#include "topology/base/status.h"

namespace tranche::probe {

absl::StatusOr<std::string> Nvml::MemoryProblem(Device gpu) {
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const absl::Status status = library_->Call<Device, unsigned*, unsigned*, unsigned*, unsigned*>(
      "nvmlDeviceGetRemappedRows", gpu, &corrected, &uncorrected, &pending, &failed);
  // Before Ampere, or a driver that does not know the function yet.
  if (absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) return std::string();
  if (!status.ok()) return status;
  if (failed != 0) return "a row of its memory could not be remapped: it has to be replaced";
  if (pending != 0) return "rows of its memory wait to be remapped: it needs a reset";
  return std::string();
}

absl::Status Nvml::Listen() {
  TRANCHE_RETURN_IF_ERROR(library_->Call<void**>("nvmlEventSetCreate", &events_));
  TRANCHE_ASSIGN_OR_RETURN(const int count, DeviceCount());
  for (int index = 0; index < count; ++index) {
    const auto gpu = DeviceAt(index);
    if (!gpu.ok()) continue;
    unsigned long long known = 0;
    TRANCHE_RETURN_IF_ERROR(library_->Call<Device, unsigned long long*>(
        "nvmlDeviceGetSupportedEventTypes", *gpu, &known));
    const unsigned long long wanted = known & (abi::kXidCriticalError | abi::kDoubleBitEccError);
    if (wanted == 0) continue;
    TRANCHE_RETURN_IF_ERROR(library_->Call<Device, unsigned long long, void*>(
        "nvmlDeviceRegisterEvents", *gpu, wanted, events_));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<GpuEvent>> Nvml::NextEvent(std::chrono::milliseconds patience) {
  abi::EventData data{};
  const absl::Status status = library_->Call<void*, abi::EventData*, unsigned>(
      "nvmlEventSetWait_v2", events_, &data, static_cast<unsigned>(patience.count()));
  if (absl::IsDeadlineExceeded(status)) return std::optional<GpuEvent>();
  if (!status.ok()) return status;
  GpuEvent event;
  TRANCHE_ASSIGN_OR_RETURN(event.uuid, Uuid(data.device));
  if (data.type == abi::kXidCriticalError) event.xid = data.data;
  return std::optional<GpuEvent>(std::move(event));
}

}  // namespace tranche::probe
