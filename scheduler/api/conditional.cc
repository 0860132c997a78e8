#include "scheduler/api/conditional.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

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

http::Response SharedText::Respond(std::string text) {
  http::Response response;
  const absl::MutexLock lock(&mutex_);
  response.shared = last_.lock();
  if (response.shared && *response.shared == text) return response;
  response.shared = std::make_shared<const std::string>(std::move(text));
  last_ = response.shared;
  return response;
}

http::Response Conditional(const http::Request& request, http::Response response) {
  if (response.status != 200) return response;
  std::string& tag = response.headers["ETag"];
  if (tag.empty()) tag = TagOf(response.text());
  response.headers["Cache-Control"] = "no-cache";
  if (NamesTag(request.if_none_match, tag)) {
    response.status = 304;
    response.body.clear();
    response.shared.reset();
  }
  return response;
}

}  // namespace tranche
