#include "scheduler/kube/writes/scheduling_gate.h"

#include <utility>

#include "scheduler/kube/writes/pod_reading.h"
#include "scheduler/kube/writes/write_requests.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using Kind = WriteResult::Kind;

constexpr int kUnprocessable = 422;  // a `test` of the patch did not hold
constexpr int kRounds = 2;

// Where the gate stands, or the answer that needs no write.
struct GateReading {
  std::optional<WriteResult> known;
  int place = 0;
};

std::optional<int> PlaceOf(wire::Object pod, std::string_view gate) {
  const auto spec = wire::FindObject(pod, "spec");
  const auto gates = spec ? wire::FindArray(*spec, "schedulingGates") : std::nullopt;
  if (!gates) return std::nullopt;
  int place = 0;
  for (const wire::Element one : *gates) {
    wire::Object object;
    if (one.get(object) == simdjson::SUCCESS && wire::FindText(object, "name") == gate) {
      return place;
    }
    ++place;
  }
  return std::nullopt;
}

GateReading ReadGate(const ApiAnswer& answer, const GateWrite& write) {
  GateReading reading;
  wire::LenientParser parser;
  const PodReading read = ReadPod(parser, answer, write.pod, write.uid);
  if (read.failed) {
    reading.known = read.failed;
    return reading;
  }
  const std::optional<int> place = PlaceOf(read.pod, write.gate);
  if (!place) reading.known = {Kind::kDone, answer.status, ""};
  reading.place = place.value_or(0);
  return reading;
}

}  // namespace

asio::awaitable<WriteResult> DropGate(ApiCalls& calls, GateWrite write, TimePoint deadline) {
  WriteResult sent;
  for (int round = 0; round < kRounds; ++round) {
    const ApiAnswer answer = co_await calls.Get(PodPath(write.pod), deadline);
    const GateReading reading = ReadGate(answer, write);
    if (reading.known) co_return *reading.known;
    ApiRequest request = GateRequest(write.pod, write.uid.str(), write.gate, reading.place);
    request.deadline = deadline;
    sent = co_await calls.Write(std::move(request), ApiCalls::kMaxTries);
    if (sent.http_code != kUnprocessable) break;
  }
  co_return sent;
}

}  // namespace tranche::kube
