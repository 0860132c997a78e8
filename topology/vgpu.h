// vGPU guests: virtual machines whose GPU is a part of a physical one. What part, the product label
// says, which is the name of NVIDIA's vGPU type.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace tranche {

// The part of a physical GPU that a device is, as fractions of its compute and of its memory.
struct GpuPart {
  int compute = 1;
  int compute_of = 1;
  int memory = 1;
  int memory_of = 1;
  bool is_whole() const { return compute == compute_of && memory == memory_of; }
  friend bool operator==(const GpuPart&, const GpuPart&) = default;
};

struct VgpuType {
  std::string_view card;  // product label of the physical GPU, "NVIDIA-A100-PCIE-40GB"
  GpuPart part;
};

// What a vGPU type is of which card: of a time-sliced one ("GRID-A100-10C", "NVIDIA-A40-48Q") its
// gigabytes of the card's, for compute too; of one backed by MIG ("GRID-A100D-1-10C",
// "NVIDIA-H100XM-1-10CME") what its instance has. nullopt: the label is no vGPU type, or one whose
// card, size or instance nobody here knows.
std::optional<VgpuType> VgpuTypeOf(std::string_view product);

}  // namespace tranche
