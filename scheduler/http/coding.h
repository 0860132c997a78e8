// Answers in fewer bytes: the content coding gzip (RFC 9110 sections 8.4.1 and 12.5.3).
//
// Pure functions over bytes; any thread. Cost of Gzip: about 10 ms for a megabyte of JSON, and
// a quarter of a megabyte of memory besides the result.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tranche::http {

// Does the value of an Accept-Encoding header take gzip? Without the header: no, since those who
// do not say so may be unable to read it. Example: "br, gzip;q=0.5" does, "gzip;q=0" does not.
bool TakesGzip(std::string_view accept_encoding);

// The text as one gzip member; nullopt where zlib has no memory, or cannot count so much.
std::optional<std::string> Gzip(std::string_view text);

}  // namespace tranche::http
