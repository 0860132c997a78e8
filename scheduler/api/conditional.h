// Answers that need not be sent again: a tag made of the body, and 304 to a caller that has it. In
// fewer bytes: gzip to callers that take it. And answers that need not be made twice: while one is
// being sent the same text serves who asks next, and its compressed form is kept until the text
// changes.
//
// The page asks for the same documents every few seconds; in a quiet cluster nothing is sent. The
// tag is strong and depends on the bytes alone, so that replicas agree; the two forms of a text
// have each its own. Thread rule: any thread. Cost: one pass over the body, and of compressing it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/http/server.h"

namespace tranche {

// Shorter bodies are sent as they are: they fit a packet or two anyway.
inline constexpr std::size_t kLeastCompressed = 1024;

// True when the value of an If-None-Match header names the tag, or is "*". Example:
// NamesTag("\"a\", W/\"b\"", "\"b\"") is true.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

// A 200 with ETag, "Cache-Control: no-cache" and "Vary: Accept-Encoding", compressed where the
// caller takes it; or a 304 without a body. Other statuses pass. A tag that the response carries is
// kept, with "-gz" at its end where the body is compressed.
http::Response Conditional(const http::Request& request, http::Response response);

// One document that many ask for. Any thread.
class SharedText {
 public:
  // As Conditional. The text is in the memory of the last answer if that is still being sent and
  // the same; compressed, it is made once for each version, while others who ask for it wait.
  http::Response Respond(const http::Request& request, http::Response response);

 private:
  std::shared_ptr<const std::string> Compressed(const std::string& tag, const std::string& text);

  absl::Mutex mutex_;
  std::weak_ptr<const std::string> last_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex compressing_;
  std::string tag_ ABSL_GUARDED_BY(compressing_);  // of the text that is kept compressed
  std::shared_ptr<const std::string> compressed_ ABSL_GUARDED_BY(compressing_);
};

}  // namespace tranche
