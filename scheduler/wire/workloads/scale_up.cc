#include "scheduler/wire/workloads/scale_up.h"

#include <array>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/text_fields.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kClaimWord = "nodeclaim/";
constexpr std::string_view kNodeWord = ", node/";

// Recorders of events.k8s.io leave the first two empty.
constexpr std::array<std::string_view, 3> kTimes = {"firstTimestamp", "lastTimestamp", "eventTime"};

}  // namespace

absl::StatusOr<std::optional<ScaleUp>> DecodeScaleUp(Element event) {
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(event, "event");
  if (!root) return reader.status();
  const std::string_view reason = reader.ReadText(*root, "reason", "event");
  const std::optional<Object> regards = reader.ReadObject(*root, "involvedObject", "event");
  const std::string_view kind = regards ? reader.ReadText(*regards, "kind", "involvedObject") : "";
  const std::string_view uid = regards ? reader.ReadText(*regards, "uid", "involvedObject") : "";
  const std::string_view message = reader.ReadText(*root, "message", "event");
  if (!reader.ok()) return reader.status();
  const bool is_made = message.find(kClaimWord) != std::string_view::npos &&
                       message.find(kNodeWord) == std::string_view::npos;
  const bool raises = reason == kTriggeredScaleUp || (reason == kNominatedByKarpenter && is_made);
  if (kind != "Pod" || uid.empty() || !raises) return std::nullopt;
  ScaleUp out{PodUid(uid), std::nullopt};
  for (const std::string_view key : kTimes) {
    if (!out.told) out.told = ParseTime(FindText(*root, key).value_or(""));
  }
  return out;
}

}  // namespace tranche::wire
