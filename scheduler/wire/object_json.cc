#include "scheduler/wire/object_json.h"

#include <fmt/format.h>

#include "scheduler/wire/json.h"

namespace tranche::wire {
namespace {

// The API's limits; what is longer is refused there.
constexpr std::size_t kMaxNote = 1024;
constexpr std::size_t kMaxInstance = 128;
// Leaves room for a time and a serial number within a DNS subdomain of 253.
constexpr std::size_t kMaxNameStem = 200;

// `text` cut at `limit` bytes, never inside a character.
std::string_view Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

// The API reads eventTime with exactly six decimals and nothing else.
std::string MicroTime(Instant when) {
  const auto second = std::chrono::floor<std::chrono::seconds>(when);
  std::string text = FormatTime(second);
  text.pop_back();
  return text + fmt::format(".{:03}000Z", (when - second).count());
}

std::string_view ApiVersionOf(std::string_view kind) {
  return kind.starts_with("GPU") ? "tranche.dev/v1alpha1" : "v1";
}

}  // namespace

void AppendMember(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out.push_back(',');
  AppendQuoted(out, key);
  out.push_back(':');
  AppendQuoted(out, value);
}

std::string EncodeCondition(const ConditionText& condition) {
  std::string out = "{";
  AppendMember(out, "type", condition.type);
  AppendMember(out, "status", condition.holds ? "True" : "False");
  if (!condition.reason.empty()) AppendMember(out, "reason", condition.reason);
  if (!condition.message.empty()) AppendMember(out, "message", condition.message);
  AppendMember(out, "lastTransitionTime", FormatTime(condition.when));
  return out + "}";
}

EventPlace PlaceOf(const EventText& event) {
  std::string_view stem = event.name.substr(0, kMaxNameStem);
  while (stem.ends_with('.') || stem.ends_with('-')) stem.remove_suffix(1);
  return {std::string(event.ns.empty() ? "default" : event.ns),
          fmt::format("{}.{:x}.{:x}", stem, event.when.time_since_epoch().count(), event.serial)};
}

std::string EncodeEvent(const EventText& event) {
  const EventPlace place = PlaceOf(event);
  std::string out = R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{)";
  AppendMember(out, "name", place.name);
  AppendMember(out, "namespace", place.ns);
  out += "}";
  AppendMember(out, "eventTime", MicroTime(event.when));
  AppendMember(out, "reportingController", "tranche.dev/scheduler");
  AppendMember(out, "reportingInstance", Cut(event.instance, kMaxInstance));
  AppendMember(out, "action", event.action);
  AppendMember(out, "reason", event.reason);
  AppendMember(out, "type", event.warning ? "Warning" : "Normal");
  AppendMember(out, "note", Cut(event.note, kMaxNote));
  out += R"(,"regarding":{)";
  AppendMember(out, "apiVersion", ApiVersionOf(event.kind));
  AppendMember(out, "kind", event.kind);
  AppendMember(out, "name", event.name);
  if (!event.ns.empty()) AppendMember(out, "namespace", event.ns);
  if (!event.uid.empty()) AppendMember(out, "uid", event.uid);
  return out + "}}";
}

}  // namespace tranche::wire
