#include "scheduler/kube/writes/pod_reading.h"

#include <fmt/format.h>

namespace tranche::kube {
namespace {

using Kind = WriteResult::Kind;

constexpr int kConflict = 409;

}  // namespace

WriteResult NotRead(wire::LenientParser& parser, const ApiAnswer& answer) {
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    return {Kind::kNotSent, 0, answer.error};
  }
  const ApiStatus status = ReadStatus(parser, answer);
  const bool refused = status.code >= 400 && status.code < 500;
  return {refused ? Kind::kRejected : Kind::kNotSent, status.code, status.message};
}

PodReading ReadPod(wire::LenientParser& parser, const ApiAnswer& answer, const PodName& pod,
                   const PodUid& uid) {
  PodReading reading;
  const auto document = parser.Parse(answer.body);
  const bool is_object = answer.succeeded() && document.ok() && !DecodeStatus(*document) &&
                         document->get(reading.pod) == simdjson::SUCCESS;
  const auto metadata = is_object ? wire::FindObject(reading.pod, "metadata") : std::nullopt;
  const auto found = metadata ? wire::FindText(*metadata, "uid") : std::nullopt;
  if (!found) {
    reading.failed = NotRead(parser, answer);
  } else if (*found != uid.str()) {
    reading.failed = {
        Kind::kRejected, kConflict,
        fmt::format("expected pod {} with uid {}, found uid {}", pod.str(), uid.str(), *found)};
  } else {
    reading.document = *document;
    reading.metadata = *metadata;
  }
  return reading;
}

}  // namespace tranche::kube
