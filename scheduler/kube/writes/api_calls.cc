#include "scheduler/kube/writes/api_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/kube/writes/write_requests.h"
#include "scheduler/wire/pods/pod_decode.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr int kTooManyRequests = 429;

}  // namespace

ApiCalls::Verdict ApiCalls::Judge(const ApiAnswer& answer) {
  using Kind = WriteResult::Kind;
  Verdict verdict;
  WriteResult& result = verdict.result;
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    result.kind =
        answer.transport == ApiAnswer::Transport::kNotSent ? Kind::kNotSent : Kind::kUnknown;
    result.message = answer.error;
    return verdict;
  }
  verdict.status = ReadStatus(parser_, answer);
  const ApiStatus& status = verdict.status;
  result.http_code = answer.status;
  result.message = status.message;
  if (status.success) {
    result.kind = Kind::kDone;
  } else if (status.code == kTooManyRequests && !status.names_disruption_budget) {
    result.kind = Kind::kNotSent;  // throttled: the write was not run
  } else if (status.code >= 400 && status.code < 500) {
    result.kind = Kind::kRejected;
  } else {
    result.kind = Kind::kUnknown;
  }
  return verdict;
}

asio::awaitable<bool> ApiCalls::WaitForTurn(const ApiStatus& status, int tries,
                                            TimePoint deadline) {
  std::chrono::milliseconds wait = timing_.bind_backoff * (1 << std::min(tries, kMaxTries));
  if (status.retry_after_seconds) wait = std::chrono::seconds(*status.retry_after_seconds);
  if (steady_clock::now() + wait >= deadline) co_return false;
  const bool passed = co_await stop_.Sleep(wait);
  co_return passed;
}

asio::awaitable<ApiCalls::Verdict> ApiCalls::Send(ApiRequest request, int tries) {
  for (int tried = 1;; ++tried) {
    const ApiAnswer answer = co_await client_.Call(request);
    Verdict verdict = Judge(answer);
    const bool throttled = answer.transport == ApiAnswer::Transport::kAnswered &&
                           verdict.result.kind == WriteResult::Kind::kNotSent;
    if (!throttled || tried >= tries) co_return verdict;
    const bool again = co_await WaitForTurn(verdict.status, tried - 1, request.deadline);
    if (!again) co_return verdict;
  }
}

asio::awaitable<WriteResult> ApiCalls::Write(ApiRequest request, int tries) {
  Verdict verdict = co_await Send(std::move(request), tries);
  co_return std::move(verdict.result);
}

asio::awaitable<WriteResult> ApiCalls::Persist(ApiRequest request, std::function<bool()> wanted) {
  using Kind = WriteResult::Kind;
  const TimePoint begin = steady_clock::now();
  const TimePoint end = begin + timing_.write_patience;
  const auto each = request.deadline - begin;
  for (int tries = 0;; ++tries) {
    Verdict verdict = co_await Send(request, 1);
    const Kind kind = verdict.result.kind;
    const bool open = kind == Kind::kNotSent || kind == Kind::kUnknown;
    if (!open || !wanted()) co_return std::move(verdict.result);
    const bool again = co_await WaitForTurn(verdict.status, tries, end);
    if (!again || !wanted()) co_return std::move(verdict.result);
    request.deadline = std::min(steady_clock::now() + each, end);
  }
}

asio::awaitable<EvictionResult> ApiCalls::Evict(ApiRequest request, int tries) {
  Verdict verdict = co_await Send(std::move(request), tries);
  const ApiStatus& status = verdict.status;
  EvictionResult result{std::move(verdict.result), std::nullopt};
  if (result.write.http_code != 0) result.write.http_code = status.code;
  const bool many_budgets = status.stated && status.code == 500 && status.reason.empty();
  if (many_budgets) result.write.kind = WriteResult::Kind::kRejected;
  if (status.retry_after_seconds) {
    result.retry_after = std::chrono::seconds(*status.retry_after_seconds);
  }
  co_return result;
}

asio::awaitable<PodLookup> ApiCalls::GetPod(PodName pod, PodUid uid, TimePoint deadline) {
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
    const auto document = parser_.Parse(answer.body);
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

asio::awaitable<ApiAnswer> ApiCalls::Get(std::string target, TimePoint deadline) {
  ApiRequest request;
  request.target = std::move(target);
  request.answer_limit = kMaxAnswerBytes;
  request.deadline = deadline;
  ApiAnswer answer = co_await client_.Call(request);
  co_return answer;
}

asio::awaitable<ConfigMapLookup> ApiCalls::ReadConfigMap(NamespacedName map, std::string key,
                                                         TimePoint deadline) {
  const ApiAnswer answer = co_await Get(ConfigMapPath(map), deadline);
  ConfigMapLookup lookup;
  if (answer.transport != ApiAnswer::Transport::kAnswered) {
    lookup.message = answer.error;
    co_return lookup;
  }
  const auto document = parser_.Parse(answer.body);
  wire::Object object;
  const bool read = answer.succeeded() && document.ok() && !DecodeStatus(*document) &&
                    document->get(object) == simdjson::SUCCESS;
  const auto metadata = read ? wire::FindObject(object, "metadata") : std::nullopt;
  if (!metadata) {
    const ApiStatus status = ReadStatus(parser_, answer);
    if (status.code == 404 && status.reason == "NotFound") {
      lookup.kind = ConfigMapLookup::Kind::kMissing;
    }
    lookup.message = fmt::format("{} {}", status.code, status.message);
    co_return lookup;
  }
  lookup.kind = ConfigMapLookup::Kind::kFound;
  lookup.version = wire::FindText(*metadata, "resourceVersion").value_or("");
  if (const auto data = wire::FindObject(object, "data")) {
    lookup.text = wire::FindText(*data, key).value_or("");
  }
  co_return lookup;
}

}  // namespace tranche::kube
