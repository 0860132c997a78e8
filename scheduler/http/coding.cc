#include "scheduler/http/coding.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace tranche::http {
namespace {

// JSON of a fleet repeats itself so much that more effort gains little: a fifth of the bytes for
// three times the time.
constexpr int kLevel = 1;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's head and end
constexpr int kMemoryLevel = 8;

constexpr std::string_view kBlanks = " \t";

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsGzip(std::string_view coding) {
  constexpr std::string_view kName = "gzip";
  return std::ranges::equal(coding, kName, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

// A weight of 0, "0." or "0.000" says no.
bool IsZeroWeight(std::string_view parameter) {
  if (parameter.size() < 3 || (parameter[0] != 'q' && parameter[0] != 'Q') || parameter[1] != '=') {
    return false;
  }
  return parameter.substr(2).find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool TakesGzip(std::string_view accept_encoding) {
  // What names gzip counts before what means everything.
  std::optional<bool> named;
  bool others = false;
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    const std::size_t semicolon = item.find(';');
    const std::string_view coding = Trim(item.substr(0, semicolon));
    const bool takes =
        semicolon == std::string_view::npos || !IsZeroWeight(Trim(item.substr(semicolon + 1)));
    if (IsGzip(coding)) named = takes;
    if (coding == "*") others = takes;
    accept_encoding = comma == std::string_view::npos ? "" : accept_encoding.substr(comma + 1);
  }
  return named.value_or(others);
}

std::optional<std::string> Gzip(std::string_view text) {
  if (text.size() > std::numeric_limits<uInt>::max() / 2) return std::nullopt;
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return std::nullopt;
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  // zlib reads through this pointer only; without ZLIB_CONST it says so nowhere.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!done) return std::nullopt;
  out.shrink_to_fit();
  return out;
}

}  // namespace tranche::http
