// Answers that need not be sent again: a tag made of the body, and 304 to a caller that has it.
//
// The page asks for the same documents every few seconds; in a quiet cluster nothing is sent. The
// tag is strong and depends on the bytes alone, so that replicas agree. Thread rule: any thread.
// Cost: one pass over the body.
#pragma once

#include <string_view>

#include "scheduler/http/server.h"

namespace tranche {

// True when the value of an If-None-Match header names the tag, or is "*". Example:
// NamesTag("\"a\", W/\"b\"", "\"b\"") is true.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

// A 200 with ETag and "Cache-Control: no-cache", or a 304 without a body. Other statuses pass. A
// tag that the response carries is kept.
http::Response Conditional(const http::Request& request, http::Response response);

}  // namespace tranche
