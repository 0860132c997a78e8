#include "scheduler/probe/proto_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/unit/scheduler/probe/proto_text.h"

namespace tranche::probe {
namespace THIS_FILE {

// Number and bytes of each field, "#" for numbers; the last entry is an error if there was one.
std::vector<std::string> Fields(const std::string& message) {
  std::vector<std::string> fields;
  ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    fields.push_back(std::to_string(field->number) + ":" + std::string(field->bytes.value_or("#")));
  }
  if (!reader.status().ok()) fields.push_back(std::string(reader.status().message()));
  return fields;
}

using List = std::vector<std::string>;

TEST(ProtoReaderTest, ReadsFieldsOfEveryWireType) {
  EXPECT_EQ(Fields(""), List());
  EXPECT_EQ(Fields(Bytes(1, "a") + Number(2, ~uint64_t{0}) + Tag(3, 1) + "12345678" + Tag(4, 5) +
                   "1234" + Bytes(536870911, "") + Bytes(1, std::string(300, 'x'))),
            (List{"1:a", "2:#", "3:#", "4:#", "536870911:", "1:" + std::string(300, 'x')}));
}

TEST(ProtoReaderTest, StopsAtWhatIsNoField) {
  const std::string more = ", found something else or the end";
  const struct {
    std::string message, error;
  } table[] = {
      {Tag(1, 2), "byte 1: expected a number of at most 64 bits"},
      {Tag(1, 2) + Varint(2) + "a", "byte 2: expected as many bytes as announced"},
      {Tag(1, 2) + Varint(~uint64_t{0}) + "a", "byte 11: expected as many bytes as announced"},
      {Tag(1, 1) + "1234567", "byte 1: expected as many bytes as announced"},
      {Tag(1, 5) + "123", "byte 1: expected as many bytes as announced"},
      {Tag(0, 0) + "a", "byte 1: expected a field number"},
      {Varint(uint64_t{1} << 32U) + "a", "byte 5: expected a field number"},
      {Tag(1, 3), "byte 1: expected a wire type of 0, 1, 2 or 5"},
      {Tag(1, 7), "byte 1: expected a wire type of 0, 1, 2 or 5"},
      {"\x80", "byte 1: expected a number of at most 64 bits"},
      {std::string(10, '\xff'), "byte 10: expected a number of at most 64 bits"},
      {std::string(9, '\xff') + "\x02", "byte 10: expected a number of at most 64 bits"},
  };
  for (const auto& row : table) EXPECT_EQ(Fields(row.message), List{row.error + more});
}

TEST(ProtoReaderTest, StaysAtItsError) {
  const std::string broken = Bytes(1, "a") + Tag(1, 3) + Bytes(2, "b");
  ProtoReader reader(broken);
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.Next());
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
