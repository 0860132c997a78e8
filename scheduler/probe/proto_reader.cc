#include "scheduler/probe/proto_reader.h"

#include <fmt/format.h>

namespace tranche::probe {
namespace {

enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr unsigned kWireBits = 3;
constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29U) - 1;
constexpr unsigned kGroupBits = 7;
constexpr unsigned kMaxShift = 63;

}  // namespace

std::nullopt_t ProtoReader::Fail(const char* expected) {
  status_ = absl::InvalidArgumentError(
      fmt::format("byte {}: expected {}, found something else or the end", at_, expected));
  return std::nullopt;
}

std::optional<uint64_t> ProtoReader::Varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift <= kMaxShift && at_ < message_.size(); shift += kGroupBits) {
    const auto byte = static_cast<uint8_t>(message_[at_++]);
    if (shift == kMaxShift && byte > 1) break;  // more than 64 bits
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return Fail("a number of at most 64 bits");
}

std::optional<std::string_view> ProtoReader::Take(uint64_t size) {
  if (size > message_.size() - at_) return Fail("as many bytes as announced");
  const std::string_view taken = message_.substr(at_, size);
  at_ += size;
  return taken;
}

std::optional<ProtoReader::Field> ProtoReader::Next() {
  if (!status_.ok() || at_ == message_.size()) return std::nullopt;
  const std::optional<uint64_t> tag = Varint();
  if (!tag) return std::nullopt;
  const uint64_t number = *tag >> kWireBits;
  if (number == 0 || number > kMaxFieldNumber) return Fail("a field number");
  Field field;
  field.number = static_cast<uint32_t>(number);
  switch (*tag & 7U) {
    case kVarint:
      if (!Varint()) return std::nullopt;
      return field;
    case kFixed64:
      if (!Take(8)) return std::nullopt;
      return field;
    case kFixed32:
      if (!Take(4)) return std::nullopt;
      return field;
    case kBytes: {
      const std::optional<uint64_t> size = Varint();
      if (!size) return std::nullopt;
      field.bytes = Take(*size);
      if (!field.bytes) return std::nullopt;
      return field;
    }
    default:
      return Fail("a wire type of 0, 1, 2 or 5");
  }
}

}  // namespace tranche::probe
