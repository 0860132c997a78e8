#include "scheduler/turns/device_id.h"

#include <fmt/format.h>

#include "topology/base/quantity.h"

namespace tranche::agent {
namespace {

constexpr int kMostDigits = 2;
constexpr std::string_view kSlot = "slot-";

// "1g.10gb@6+1"
std::optional<MigDevice> ParsePlace(std::string_view text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  MigDevice place;
  place.profile = text.substr(0, at);
  std::string_view rest = text.substr(at + 1);
  const auto start = TakeDigits(rest, kMostDigits);
  if (!start || !rest.starts_with('+')) return std::nullopt;
  rest.remove_prefix(1);
  const auto size = TakeDigits(rest, kMostDigits);
  if (!size || !rest.empty()) return std::nullopt;
  place.start = static_cast<int>(*start);
  place.size = static_cast<int>(*size);
  return place;
}

std::optional<int> ParseSlot(std::string_view text) {
  if (!text.starts_with(kSlot)) return std::nullopt;
  text.remove_prefix(kSlot.size());
  const auto number = TakeDigits(text, kMostDigits);
  if (!number || !text.empty()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

std::string DeviceId::str() const {
  if (slot) return fmt::format("{}/{}{}", gpu.str(), kSlot, *slot);
  if (!place) return gpu.str();
  return fmt::format("{}/{}@{}+{}", gpu.str(), place->profile, place->start, place->size);
}

DeviceId ParseDeviceId(std::string_view text) {
  const std::size_t end = text.find('/');
  if (end == std::string_view::npos) return {GpuUuid(std::string(text)), std::nullopt};
  const std::string_view rest = text.substr(end + 1);
  return {GpuUuid(std::string(text.substr(0, end))), ParsePlace(rest), ParseSlot(rest)};
}

DeviceId IdOf(const Device& device) { return {device.uuid, device.mig}; }

bool Overlap(const DeviceId& one, const DeviceId& other) {
  if (one.gpu != other.gpu) return false;
  if (one.slot && other.slot) return one.slot == other.slot;
  if (!one.place || !other.place) return true;
  return one.place->start < other.place->start + other.place->size &&
         other.place->start < one.place->start + one.place->size;
}

}  // namespace tranche::agent
