#include "scheduler/http/coding.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace tranche::http {
namespace THIS_FILE {

// What a client makes of a gzip member; "" where it is none.
std::string Unzip(std::string text, std::size_t most) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  out.resize(whole ? stream.total_out : 0);
  inflateEnd(&stream);
  return out;
}

TEST(CodingTest, GzipIsTakenWhereTheHeaderSaysSo) {
  const struct {
    const char* header;
    bool takes;
  } rows[] = {
      {"gzip", true},
      {"gzip, deflate, br, zstd", true},
      {"br;q=1.0, gzip;q=0.8, *;q=0.1", true},
      {"GZip", true},
      {" gzip ; q=0.001 ", true},
      {"*", true},
      {"identity,gzip", true},
      {"", false},
      {"identity", false},
      {"gzip;q=0", false},
      {"gzip; q=0.000", false},
      {"gzip;q=0, *", false},
      {"*;q=0", false},
      {"xgzip", false},
      {"gzip2", false},
      {",,;,", false},
  };
  for (const auto& [header, takes] : rows) EXPECT_EQ(TakesGzip(header), takes) << header;
}

TEST(CodingTest, WhatIsUnpackedIsWhatWasPacked) {
  std::string fleet;
  for (int i = 0; i < 20'000; ++i) fleet += R"({"name":"node-)" + std::to_string(i) + "\"},";
  for (const std::string& text : {std::string(), std::string("{}"), std::string(3, '\0'), fleet}) {
    const std::optional<std::string> packed = Gzip(text);
    ASSERT_TRUE(packed);
    EXPECT_EQ(Unzip(*packed, text.size() + 1), text);
    EXPECT_EQ(Gzip(text), packed) << "the same bytes each time";
  }
  EXPECT_LT(Gzip(fleet)->size() * 5, fleet.size());
}

}  // namespace THIS_FILE
}  // namespace tranche::http
