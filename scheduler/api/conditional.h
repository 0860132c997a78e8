// Answers that need not be sent again: a tag made of the body, and 304 to a caller that has it. And
// answers that need not be kept twice: while one is being sent, the same text serves who asks next.
//
// The page asks for the same documents every few seconds; in a quiet cluster nothing is sent. The
// tag is strong and depends on the bytes alone, so that replicas agree. Thread rule: any thread.
// Cost: one pass over the body.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"

namespace tranche {

// True when the value of an If-None-Match header names the tag, or is "*". Example:
// NamesTag("\"a\", W/\"b\"", "\"b\"") is true.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

// A 200 with ETag and "Cache-Control: no-cache", or a 304 without a body. Other statuses pass. A
// tag that the response carries is kept.
http::Response Conditional(const http::Request& request, http::Response response);

// One document that many ask for. Any thread.
class SharedText {
 public:
  // 200 with the text, in the memory of the last answer if that is still being sent and the same.
  http::Response Respond(std::string text);

 private:
  absl::Mutex mutex_;
  std::weak_ptr<const std::string> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
