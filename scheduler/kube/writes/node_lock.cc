#include "scheduler/kube/writes/node_lock.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/kube/writes/write_requests.h"
#include "scheduler/wire/agents/node_lock.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using Kind = NodeLockResult::Kind;

constexpr int kConflict = 409;
constexpr int kForbidden = 403;
constexpr int kRounds = 2;  // how often one call reads and writes before it gives way

// What the server says of the annotation; a failure when it does not.
struct LockReading {
  bool read = false;
  std::string message;              // not read: why
  std::string version;              // the node's resourceVersion
  std::optional<std::string> text;  // nullopt: no such annotation
};

LockReading ReadLock(const ApiAnswer& answer, const std::string& node, const std::string& key) {
  LockReading reading;
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    reading.message = fmt::format("node {} could not be read: {}", node, answer.error);
    return reading;
  }
  wire::LenientParser parser;
  const auto document = parser.Parse(answer.body);
  wire::Object object;
  const bool is_object = answer.succeeded() && document.ok() && !DecodeStatus(*document) &&
                         document->get(object) == simdjson::SUCCESS;
  const auto metadata = is_object ? wire::FindObject(object, "metadata") : std::nullopt;
  const auto version = metadata ? wire::FindText(*metadata, "resourceVersion") : std::nullopt;
  if (!version) {
    const ApiStatus status = ReadStatus(parser, answer);
    reading.message =
        fmt::format("node {} could not be read: {} {}", node, status.code, status.message);
    return reading;
  }
  reading.read = true;
  reading.version = *version;
  if (const auto annotations = wire::FindObject(*metadata, "annotations")) {
    reading.text = wire::FindText(*annotations, key);
  }
  return reading;
}

NodeLockResult Failed(const NodeLockWrite& write, const WriteResult& sent) {
  const char* const hint =
      sent.http_code == kForbidden ? " (the ClusterRole tranche-node-lock allows it)" : "";
  return {Kind::kFailed, "",
          fmt::format("annotation {} of node {} could not be written: {} {}{}", write.key,
                      write.node.str(), sent.http_code, sent.message, hint)};
}

// Whether a round decided the matter. A conflict and a lost answer call for another look.
bool IsSettled(const WriteResult& sent) {
  return sent.http_code != kConflict && sent.kind != WriteResult::Kind::kUnknown;
}

// Reads, asks `judge` (whose result, if any, is the answer), writes `text`.
template <typename Judge>
asio::awaitable<NodeLockResult> Change(ApiCalls& calls, NodeLockWrite write, std::string text,
                                       Judge judge, TimePoint deadline) {
  LockReading reading;
  WriteResult sent;
  for (int round = 0; round < kRounds; ++round) {
    const ApiAnswer answer = co_await calls.Get(NodePath(write.node), deadline);
    reading = ReadLock(answer, write.node.str(), write.key);
    if (!reading.read) co_return NodeLockResult{Kind::kFailed, "", reading.message};
    if (const std::optional<NodeLockResult> known = judge(reading.text)) co_return *known;
    ApiRequest request = NodeLockRequest(write.node, write.key, text, reading.version);
    request.deadline = deadline;
    sent = co_await calls.Write(std::move(request), ApiCalls::kMaxTries);
    if (sent.kind == WriteResult::Kind::kDone) co_return NodeLockResult{Kind::kDone, text, ""};
    if (IsSettled(sent)) break;
  }
  const bool outrun = sent.http_code == kConflict && !text.empty();
  if (!outrun) co_return Failed(write, sent);
  co_return NodeLockResult{Kind::kHeld, reading.text.value_or(""), sent.message};
}

}  // namespace

asio::awaitable<NodeLockResult> TakeNodeLock(ApiCalls& calls, NodeLockWrite write,
                                             TimePoint deadline) {
  auto judge = [wanted = write.value, stale_after = write.stale_after,
                now = write.now](const std::optional<std::string>& current) {
    std::optional<NodeLockResult> out;
    switch (wire::JudgeLock(current, wanted, stale_after, now)) {
      case wire::LockVerdict::kOurs:
        out = {Kind::kDone, wanted, ""};
        break;
      case wire::LockVerdict::kHeld:
        out = {Kind::kHeld, current.value_or(""), ""};
        break;
      case wire::LockVerdict::kFree:
        break;
    }
    return out;
  };
  std::string text = write.value;
  return Change(calls, std::move(write), std::move(text), std::move(judge), deadline);
}

asio::awaitable<NodeLockResult> DropNodeLock(ApiCalls& calls, NodeLockWrite write,
                                             TimePoint deadline) {
  auto judge = [ours = write.value](const std::optional<std::string>& current) {
    std::optional<NodeLockResult> out;
    if (current != ours) out = {Kind::kDone, current.value_or(""), ""};
    return out;
  };
  return Change(calls, std::move(write), "", std::move(judge), deadline);
}

}  // namespace tranche::kube
