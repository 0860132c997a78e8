// What the bytes of JSON strings are, by whatever the machine has and by one byte after the other.
#include "scheduler/wire/json/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche::wire {
namespace THIS_FILE {

TEST(PlainText, EveryByteIsWhatItIsWhereverItStands) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool quote = byte == '"';
    const bool special = byte < 0x20 || byte >= 0x80 || byte == '\\';
    EXPECT_EQ(SpecialBytes(uint64_t{0x0101010101010101} * static_cast<uint64_t>(byte)) != 0,
              quote || special)
        << byte;
    for (std::size_t at = 0; at < 64; ++at) {
      std::string text(64, '~');
      text[at] = static_cast<char>(byte);
      for (const TextBlock& block : {LookAt(text.data()), LookAtBytes(text.data())}) {
        EXPECT_EQ(block.quotes, uint64_t{quote} << at) << byte << " at " << at;
        EXPECT_EQ(block.special, uint64_t{special} << at) << byte << " at " << at;
      }
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
