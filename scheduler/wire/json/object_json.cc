#include "scheduler/wire/json/object_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/wire/json/json.h"

namespace tranche::wire {
namespace {

// The API's limits; what is longer is refused there.
constexpr std::size_t kMaxNote = 1024;
constexpr std::size_t kMaxInstance = 128;
// Leaves room for a time and a serial number within a DNS subdomain of 253.
constexpr std::size_t kMaxNameStem = 200;

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

Json ConditionJson(const ConditionText& condition) {
  Json json = {{"type", condition.type}, {"status", condition.holds ? "True" : "False"}};
  if (!condition.reason.empty()) json["reason"] = condition.reason;
  if (!condition.message.empty()) json["message"] = condition.message;
  json["lastTransitionTime"] = FormatTime(condition.when);
  return json;
}

std::string EncodeCondition(const ConditionText& condition) {
  return Dump(ConditionJson(condition));
}

EventPlace PlaceOf(const EventText& event) {
  std::string_view stem = event.name.substr(0, kMaxNameStem);
  while (stem.ends_with('.') || stem.ends_with('-')) stem.remove_suffix(1);
  return {std::string(event.ns.empty() ? "default" : event.ns),
          fmt::format("{}.{:x}.{:x}", stem, event.when.time_since_epoch().count(), event.serial)};
}

std::string EncodeEvent(const EventText& event) {
  const EventPlace place = PlaceOf(event);
  Json regarding = {
      {"apiVersion", ApiVersionOf(event.kind)}, {"kind", event.kind}, {"name", event.name}};
  if (!event.ns.empty()) regarding["namespace"] = event.ns;
  if (!event.uid.empty()) regarding["uid"] = event.uid;
  return Dump({{"apiVersion", "events.k8s.io/v1"},
               {"kind", "Event"},
               {"metadata", {{"name", place.name}, {"namespace", place.ns}}},
               {"eventTime", MicroTime(event.when)},
               {"reportingController", "tranche.dev/scheduler"},
               {"reportingInstance", CutAt(event.instance, kMaxInstance)},
               {"action", event.action},
               {"reason", event.reason},
               {"type", event.warning ? "Warning" : "Normal"},
               {"note", CutAt(event.note, kMaxNote)},
               {"regarding", std::move(regarding)}});
}

}  // namespace tranche::wire
