#include "test/sim/cluster/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "test/sim/cluster/answer.h"

namespace tranche::sim {
namespace {

constexpr SimTime kSnapshotLives = std::chrono::minutes(5);  // until etcd compacts

std::string ValueOf(const Query& query, std::string_view key) {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

Reply ReplyOf(const Answer& answer) { return {answer.code, true, answer.status.dump(), {}}; }

Reply TooLarge(uint64_t asked, uint64_t current) {
  Answer answer = Refuse(
      504, "Timeout", fmt::format("Too large resource version: {}, current: {}", asked, current));
  answer.status["details"] = {{"causes", Json::array({{{"reason", "ResourceVersionTooLarge"}}})},
                              {"retryAfterSeconds", 1}};
  return ReplyOf(answer);
}

}  // namespace

std::string BareText(const Stored& stored, const ResourceType& type) {
  const std::string head =
      fmt::format("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",", type.version, type.kind);
  const std::string& text = stored.text();
  if (text.starts_with(head)) return "{" + text.substr(head.size());
  Json bare = stored.object();
  bare.erase("apiVersion");
  bare.erase("kind");
  return bare.dump();
}

Reply Lists::List(const ResourceType& type, const std::string& ns, const Query& query) {
  const std::string token = ValueOf(query, "continue");
  const std::string asked = ValueOf(query, "resourceVersion");
  const std::string match = ValueOf(query, "resourceVersionMatch");
  const std::string limit_text = ValueOf(query, "limit");
  const std::size_t limit =
      limit_text.empty() ? SIZE_MAX : std::min<std::size_t>(std::stoul(limit_text), page_size_);
  if (!token.empty()) {
    if (!asked.empty()) {
      return ReplyOf(Refuse(400, "BadRequest",
                            "specifying resource version is not allowed when "
                            "using continue"));
    }
    const auto found = snapshots_.find(token);
    if (found == snapshots_.end() || found->second.made + kSnapshotLives < loop_.now()) {
      return ReplyOf(Refuse(410, "Expired", "The provided continue parameter is too old"));
    }
    return Page(type, found->second, limit);
  }
  if (!match.empty() && asked.empty()) {
    return ReplyOf(Refuse(400, "BadRequest", "resourceVersionMatch is forbidden without version"));
  }
  if (!asked.empty() && asked != "0") {
    const uint64_t version = std::strtoull(asked.c_str(), nullptr, 10);
    if (version > store_.version()) return TooLarge(version, store_.version());
    const bool exact = match == "Exact" || (match.empty() && !limit_text.empty());
    if (exact && version != store_.version()) {
      return ReplyOf(
          Refuse(410, "Expired", "The resourceVersion for the provided list is too old"));
    }
  }
  Snapshot snapshot{store_.version(), loop_.now(), {}};
  for (const auto& [key, object] : store_.All(type.plural)) {
    if (ns.empty() || object->ns() == ns) snapshot.rest.push_back(object);
  }
  std::reverse(snapshot.rest.begin(), snapshot.rest.end());
  return Page(type, std::move(snapshot), limit);
}

Reply Lists::Page(const ResourceType& type, Snapshot snapshot, std::size_t limit) {
  std::string items;
  for (std::size_t i = 0; i < limit && !snapshot.rest.empty(); ++i) {
    if (!items.empty()) items += ',';
    items += BareText(*snapshot.rest.back(), type);
    snapshot.rest.pop_back();
  }
  std::string more;
  if (!snapshot.rest.empty()) {
    // The token needs escapes in a URL, as real ones do.
    const std::string token = fmt::format("page {}&{}=", snapshot.version, ++tokens_);
    more = fmt::format(",\"continue\":\"{}\"", token);
  }
  Reply reply{200,
              true,
              fmt::format("{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{{"
                          "\"resourceVersion\":\"{}\"{}}},\"items\":[{}]}}",
                          type.kind, type.version, snapshot.version, more, items),
              {}};
  if (!more.empty()) {
    std::erase_if(snapshots_, [this](const auto& entry) {
      return entry.second.made + kSnapshotLives < loop_.now();
    });
    snapshots_.insert_or_assign(fmt::format("page {}&{}=", snapshot.version, tokens_),
                                std::move(snapshot));
  }
  return reply;
}

}  // namespace tranche::sim
