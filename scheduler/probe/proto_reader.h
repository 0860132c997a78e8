// Reads protocol buffer messages, field by field, from bytes that may be anything.
//
// Thread rule: one thread. Views point into the bytes given. Every length is checked before it is
// used; groups, which nobody writes any more, are errors. Source: protobuf.dev, encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace tranche::probe {

class ProtoReader {
 public:
  struct Field {
    uint32_t number = 0;
    // Text, bytes or a message; nullopt for a number, which nothing here needs.
    std::optional<std::string_view> bytes;
  };

  explicit ProtoReader(std::string_view message) : message_(message) {}

  // The next field; nullopt at the end and after an error.
  std::optional<Field> Next();
  // InvalidArgument naming what was expected and at which byte, once Next has stumbled.
  const absl::Status& status() const { return status_; }

 private:
  std::optional<uint64_t> Varint();
  std::optional<std::string_view> Take(uint64_t size);
  std::nullopt_t Fail(const char* expected);

  std::string_view message_;
  std::size_t at_ = 0;
  absl::Status status_;
};

}  // namespace tranche::probe
