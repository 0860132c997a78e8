// What the kubelet answers: whatever the bytes, an error or a list in order that says the same when
// it is written and read again.
#include <algorithm>

#include "scheduler/probe/pod_resources.h"
#include "topology/base/check.h"

namespace {

std::string Field(char number, const std::string& value) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (std::size_t size = value.size();; size >>= 7) {
    bytes.push_back(static_cast<char>(size >= 0x80 ? 0x80 | (size & 0x7F) : size));
    if (size < 0x80) return bytes + value;
  }
}

std::string Encoded(const std::vector<tranche::probe::ContainerDevices>& all) {
  std::string message;
  for (const auto& one : all) {
    std::string devices = Field(1, one.resource);
    for (const std::string& id : one.devices) devices += Field(2, id);
    const std::string container = Field(1, one.container) + Field(2, devices);
    message += Field(1, Field(1, one.pod) + Field(2, one.ns) + Field(3, container));
  }
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using tranche::probe::DecodePodResources;
  const auto decoded = DecodePodResources({reinterpret_cast<const char*>(data), size});
  if (!decoded.ok()) return 0;
  TRANCHE_CHECK(std::is_sorted(decoded->begin(), decoded->end()));
  const auto again = DecodePodResources(Encoded(*decoded));
  TRANCHE_CHECK(again.ok() && *again == *decoded);
  return 0;
}
