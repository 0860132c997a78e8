#include "scheduler/kube/writes/pod_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/kube/writes/pod_reading.h"
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

std::optional<std::string_view> Present(const std::optional<wire::Object>& annotations,
                                        std::string_view key) {
  return annotations ? wire::FindText(*annotations, key) : std::nullopt;
}

MarkReading ReadMarks(const ApiAnswer& answer, const PodMarkWrite& write) {
  MarkReading reading;
  wire::LenientParser parser;
  const PodReading read = ReadPod(parser, answer, write.pod, write.uid);
  const auto version =
      read.failed ? std::nullopt : wire::FindText(read.metadata, "resourceVersion");
  if (!version) {
    reading.known = read.failed ? read.failed : NotRead(parser, answer);
    return reading;
  }
  reading.version = *version;
  const auto annotations = wire::FindObject(read.metadata, "annotations");
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
