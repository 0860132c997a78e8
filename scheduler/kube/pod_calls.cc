#include "scheduler/kube/pod_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/kube/server_url.h"
#include "scheduler/wire/pod_decode.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr int kMaxTries = 10;
constexpr std::size_t kMaxAnswerBytes = 16 * 1024 * 1024;  // one object
constexpr int kTooManyRequests = 429;

std::string PodPath(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", PercentEncoded(pod.ns),
                     PercentEncoded(pod.name));
}

void AppendMember(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out.push_back(',');
  wire::AppendQuoted(out, key);
  out.push_back(':');
  wire::AppendQuoted(out, value);
}

}  // namespace

std::string EncodeBinding(const BindingWrite& write) {
  std::string out = R"({"apiVersion":"v1","kind":"Binding","metadata":{)";
  AppendMember(out, "name", write.pod.name);
  AppendMember(out, "namespace", write.pod.ns);
  AppendMember(out, "uid", write.uid.str());
  if (!write.annotations.empty()) {
    out += R"(,"annotations":{)";
    for (const auto& [key, value] : write.annotations) AppendMember(out, key, value);
    out.push_back('}');
  }
  out += R"(},"target":{"apiVersion":"v1","kind":"Node")";
  AppendMember(out, "name", write.node.str());
  return out + "}}";
}

WriteResult JudgeBinding(wire::Parser& parser, const ApiAnswer& answer) {
  using Kind = WriteResult::Kind;
  WriteResult result;
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    result.kind =
        answer.transport == ApiAnswer::Transport::kNotSent ? Kind::kNotSent : Kind::kUnknown;
    result.message = answer.error;
    return result;
  }
  const ApiStatus status = ReadStatus(parser, answer);
  result.http_code = answer.status;
  result.message = status.message;
  if (status.success) {
    result.kind = Kind::kDone;
  } else if (status.code == kTooManyRequests) {
    result.kind = Kind::kNotSent;  // throttled: the write was not run
  } else if (status.code >= 400 && status.code < 500) {
    result.kind = Kind::kRejected;
  } else {
    result.kind = Kind::kUnknown;
  }
  return result;
}

asio::awaitable<bool> PodCalls::WaitForTurn(const ApiStatus& status, int tries,
                                            TimePoint deadline) {
  std::chrono::milliseconds wait = timing_.bind_backoff * (1 << std::min(tries, kMaxTries));
  if (status.retry_after_seconds) wait = std::chrono::seconds(*status.retry_after_seconds);
  if (steady_clock::now() + wait >= deadline) co_return false;
  const bool passed = co_await stop_.Sleep(wait);
  co_return passed;
}

asio::awaitable<WriteResult> PodCalls::Bind(BindingWrite write, TimePoint deadline) {
  ApiRequest request;
  request.method = "POST";
  request.target = PodPath(write.pod) + "/binding";
  request.body = EncodeBinding(write);
  request.answer_limit = kMaxAnswerBytes;
  request.deadline = deadline;
  for (int tries = 0;; ++tries) {
    const ApiAnswer answer = co_await client_.Call(request);
    WriteResult result = JudgeBinding(parser_, answer);
    const bool throttled = answer.transport == ApiAnswer::Transport::kAnswered &&
                           result.kind == WriteResult::Kind::kNotSent;
    if (!throttled || tries + 1 >= kMaxTries) co_return result;
    const ApiStatus status = ReadStatus(parser_, answer);
    const bool again = co_await WaitForTurn(status, tries, deadline);
    if (!again) co_return result;
  }
}

asio::awaitable<WriteResult> PodCalls::Poke(PodName pod, PodUid uid, Instant when,
                                            TimePoint deadline) {
  ApiRequest request;
  request.method = "PATCH";
  request.target = PodPath(pod) + "/status";
  request.content_type = "application/strategic-merge-patch+json";
  request.body = R"({"metadata":{)";
  AppendMember(request.body, "uid", uid.str());
  request.body += R"(},"status":{"conditions":[{"status":"True")";
  for (const auto& [key, value] :
       {std::pair<std::string_view, std::string>{"type", "tranche.dev/RoomFreed"},
        {"reason", "RoomFreed"},
        {"message", "room appeared after the last attempt"},
        {"lastTransitionTime", wire::FormatTime(when)}}) {
    AppendMember(request.body, key, value);
  }
  request.body += "}]}}";
  request.answer_limit = kMaxAnswerBytes;
  request.deadline = deadline;
  const ApiAnswer answer = co_await client_.Call(request);
  co_return JudgeBinding(parser_, answer);
}

asio::awaitable<PodLookup> PodCalls::Get(PodName pod, PodUid uid, TimePoint deadline) {
  ApiRequest request;
  request.target = PodPath(pod);
  request.answer_limit = kMaxAnswerBytes;
  request.deadline = deadline;
  PodLookup lookup;
  for (int tries = 0;; ++tries) {
    const ApiAnswer answer = co_await client_.Call(request);
    if (answer.transport != ApiAnswer::Transport::kAnswered) {
      lookup.message = answer.error;
      co_return lookup;
    }
    const auto document = parser_.Parse(answer.body, /*padded=*/false);
    const bool is_pod = answer.succeeded() && document.ok() && !DecodeStatus(*document);
    if (is_pod) {
      auto facts = wire::DecodePod(*document);
      if (!facts.ok()) {
        lookup.message = CutMessage(std::string(facts.status().message()));
      } else if (!uid.empty() && facts->request.uid != uid) {
        lookup.kind = PodLookup::Kind::kMissing;
      } else {
        lookup.kind = PodLookup::Kind::kFound;
        lookup.pod = std::move(*facts);
      }
      co_return lookup;
    }
    const ApiStatus status = ReadStatus(parser_, answer);
    lookup.message = fmt::format("{} {}", status.code, status.message);
    // A proxy may say 404 too: only the API server's own word proves that the pod is gone.
    if (status.code == 404 && status.reason == "NotFound") {
      lookup.kind = PodLookup::Kind::kMissing;
      co_return lookup;
    }
    const bool temporary = status.code == kTooManyRequests || status.code >= 500;
    if (!temporary || tries + 1 >= kMaxTries) co_return lookup;
    const bool again = co_await WaitForTurn(status, tries, deadline);
    if (!again) co_return lookup;
  }
}

}  // namespace tranche::kube
