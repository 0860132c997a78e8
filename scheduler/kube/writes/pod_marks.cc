#include "scheduler/kube/writes/pod_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/kube/writes/write_requests.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using Kind = WriteResult::Kind;

constexpr int kConflict = 409;
constexpr int kRounds = 2;  // how often one call reads and writes before it gives way

// What the server says of the pod, or the answer that needs no write.
struct MarkReading {
  std::optional<WriteResult> known;
  std::string version;  // the pod's resourceVersion
};

WriteResult Unread(wire::LenientParser& parser, const ApiAnswer& answer) {
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    return {Kind::kNotSent, 0, answer.error};  // only the read was tried
  }
  const ApiStatus status = ReadStatus(parser, answer);
  const bool refused = status.code >= 400 && status.code < 500;
  return {refused ? Kind::kRejected : Kind::kNotSent, status.code, status.message};
}

std::optional<std::string_view> Present(const std::optional<wire::Object>& annotations,
                                        std::string_view key) {
  return annotations ? wire::FindText(*annotations, key) : std::nullopt;
}

MarkReading ReadMarks(const ApiAnswer& answer, const PodMarkWrite& write) {
  MarkReading reading;
  wire::LenientParser parser;
  const auto document = parser.Parse(answer.body);
  wire::Object pod;
  const bool is_object = answer.succeeded() && document.ok() && !DecodeStatus(*document) &&
                         document->get(pod) == simdjson::SUCCESS;
  const auto metadata = is_object ? wire::FindObject(pod, "metadata") : std::nullopt;
  const auto uid = metadata ? wire::FindText(*metadata, "uid") : std::nullopt;
  const auto version = metadata ? wire::FindText(*metadata, "resourceVersion") : std::nullopt;
  if (!uid || !version) {
    reading.known = Unread(parser, answer);
    return reading;
  }
  if (*uid != write.uid.str()) {
    reading.known = {Kind::kRejected, kConflict,
                     fmt::format("expected pod {} with uid {}, found uid {}", write.pod.str(),
                                 write.uid.str(), *uid)};
    return reading;
  }
  reading.version = *version;
  const auto annotations = wire::FindObject(*metadata, "annotations");
  bool done = true;
  for (const PodMark& mark : write.marks) {
    const std::optional<std::string_view> present = Present(annotations, mark.key);
    done = done && present == mark.after;
    if (mark.ours_alone || present == mark.before || present == mark.after) continue;
    reading.known = {Kind::kRejected, kConflict,
                     fmt::format("annotation {} of pod {} is somebody else's by now", mark.key,
                                 write.pod.str())};
    return reading;
  }
  if (done) reading.known = {Kind::kDone, answer.status, ""};
  return reading;
}

}  // namespace

asio::awaitable<WriteResult> MarkPod(ApiCalls& calls, PodMarkWrite write, TimePoint deadline) {
  WriteResult sent;
  for (int round = 0; round < kRounds; ++round) {
    const ApiAnswer answer = co_await calls.Get(PodPath(write.pod), deadline);
    const MarkReading reading = ReadMarks(answer, write);
    if (reading.known) co_return *reading.known;
    ApiRequest request = PodMarkRequest(write, reading.version);
    request.deadline = deadline;
    sent = co_await calls.Write(std::move(request), 1);
    if (sent.http_code != kConflict) break;
  }
  co_return sent;
}

}  // namespace tranche::kube
