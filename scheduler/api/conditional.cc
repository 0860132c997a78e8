#include "scheduler/api/conditional.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

#include "scheduler/http/coding.h"

namespace tranche {
namespace {

constexpr std::string_view kSpace = " \t";

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string TagOf(std::string_view body) {
  return fmt::format("\"{:016x}-{:x}\"", std::hash<std::string_view>()(body), body.size());
}

// The tag of the compressed form: "a" -> "a-gz".
std::string CompressedTag(std::string_view tag) {
  if (tag.ends_with('"')) tag.remove_suffix(1);
  return fmt::format("{}-gz\"", tag);
}

// `compress(tag, text)`: the compressed form, or null.
template <typename Compress>
http::Response Negotiate(const http::Request& request, http::Response response, Compress compress) {
  if (response.status != 200) return response;
  std::string tag = response.headers["ETag"];
  if (tag.empty()) tag = TagOf(response.text());
  const std::string compressed_tag = CompressedTag(tag);
  bool compressed =
      response.text().size() >= kLeastCompressed && http::TakesGzip(request.accept_encoding);
  response.headers["Cache-Control"] = "no-cache";
  response.headers["Vary"] = "Accept-Encoding";
  if (NamesTag(request.if_none_match, tag) || NamesTag(request.if_none_match, compressed_tag)) {
    response.status = 304;
    response.body.clear();
    response.shared.reset();
  } else if (compressed) {
    std::shared_ptr<const std::string> text = compress(tag, response.text());
    compressed = text != nullptr;
    if (compressed) {
      response.headers["Content-Encoding"] = "gzip";
      response.shared = std::move(text);
      response.body.clear();
    }
  }
  response.headers["ETag"] = compressed ? compressed_tag : tag;
  return response;
}

}  // namespace

bool NamesTag(std::string_view if_none_match, std::string_view tag) {
  while (!if_none_match.empty()) {
    const std::size_t comma = if_none_match.find(',');
    std::string_view named = Trim(if_none_match.substr(0, comma));
    // RFC 9110 13.1.2: weak comparison.
    if (named.substr(0, 2) == "W/") named.remove_prefix(2);
    if (named == "*" || (!named.empty() && named == tag)) return true;
    if_none_match = comma == std::string_view::npos ? "" : if_none_match.substr(comma + 1);
  }
  return false;
}

http::Response Conditional(const http::Request& request, http::Response response) {
  return Negotiate(request, std::move(response), [](const std::string&, const std::string& text) {
    std::optional<std::string> out = http::Gzip(text);
    return out ? std::make_shared<const std::string>(*std::move(out)) : nullptr;
  });
}

http::Response SharedText::Respond(const http::Request& request, http::Response response) {
  if (response.status != 200) return response;
  {
    const absl::MutexLock lock(&mutex_);
    const std::shared_ptr<const std::string> known = last_.lock();
    if (known && *known == response.body) {
      response.body.clear();
      response.shared = known;
    } else {
      response.shared = std::make_shared<const std::string>(std::move(response.body));
      last_ = response.shared;
    }
  }
  return Negotiate(
      request, std::move(response),
      [this](const std::string& tag, const std::string& text) { return Compressed(tag, text); });
}

std::shared_ptr<const std::string> SharedText::Compressed(const std::string& tag,
                                                          const std::string& text) {
  const absl::MutexLock lock(&compressing_);
  if (compressed_ && tag_ == tag) return compressed_;
  std::optional<std::string> out = http::Gzip(text);
  tag_ = tag;
  compressed_ = out ? std::make_shared<const std::string>(*std::move(out)) : nullptr;
  return compressed_;
}

}  // namespace tranche
