#include "scheduler/api/verbs.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/wire/protocol/extender_v1.h"

namespace tranche {
namespace {

using metrics::Result;
using metrics::Verb;
using Steady = std::chrono::steady_clock;

// How many candidates of a preemption are judged per hold of the engine's lock.
constexpr std::size_t kPreemptBatch = 16;

// Scratch that has served a body above this is given back when none came for a while: not at once,
// or a fleet with long lists would have new pages made for it at every call; nor never, or one such
// call would cost its memory for ever.
constexpr std::size_t kLargeBody = 1024 * 1024;
constexpr std::chrono::minutes kKeptFor{5};

// What one server thread reuses from call to call.
struct Scratch {
  wire::Codec codec;
  wire::ExtenderArgs args;
  FilterAnswer answer;
  std::vector<int> ranks;
  std::optional<Steady::time_point> large_since;  // the last large body
};

class ThreadScratch {
 public:
  explicit ThreadScratch(const http::Request& request) {
    std::unique_ptr<Scratch>& slot = Slot();
    const bool large = request.body.size() > kLargeBody;
    const bool outlived = slot != nullptr && !large && slot->large_since &&
                          Steady::now() - *slot->large_since > kKeptFor;
    if (slot == nullptr || outlived) slot = std::make_unique<Scratch>();
    if (large) slot->large_since = Steady::now();
  }
  Scratch& operator*() const { return *Slot(); }
  Scratch* operator->() const { return Slot().get(); }

 private:
  static std::unique_ptr<Scratch>& Slot() {
    thread_local std::unique_ptr<Scratch> slot;
    return slot;
  }
};

http::Response Reply(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

http::Response RefusalAnswer(int status, std::string_view message) {
  std::string body;
  wire::WriteBindingResult(message, body);  // {"Error":"..."}
  return Reply(status, std::move(body));
}

http::Response Malformed(const absl::Status& status) {
  return RefusalAnswer(400, std::string_view(status.message().data(), status.message().size()));
}

// Adds the call to the metrics, before its answer leaves: who reads both sees them agree.
class Count {
 public:
  Count(metrics::Metrics& metrics, Verb verb)
      : metrics_(metrics), verb_(verb), started_(Steady::now()) {}
  void Answer(Result result, http::Response response, const http::Responder& respond) const {
    metrics_.CountRequest(verb_, result, Steady::now() - started_);
    respond(std::move(response));
  }

 private:
  metrics::Metrics& metrics_;
  Verb verb_;
  Steady::time_point started_;
};

// An error of the cycle, which kube-scheduler tries again a moment later.
constexpr std::string_view kClaimsUnseen = "the pod, which names claims, has not been seen yet";

// kube-scheduler may hear of a node before we do. When nothing fits, no event would bring
// the pod back once we know the node; an error does, by its backoff.
std::string_view FilterError(const FilterAnswer& answer) {
  if (answer.untouched || !answer.chosen.empty()) return "";
  for (const auto& [position, reason] : answer.refused) {
    if (reason == Reason::kUnknownNode) return Describe(reason).text;
  }
  return "";
}

void CountFilter(const FilterAnswer& answer, metrics::Metrics& metrics) {
  if (answer.untouched) return;
  metrics::Metrics::NodesByReason nodes{};
  for (const auto& [position, reason] : answer.refused) ++nodes[static_cast<std::size_t>(reason)];
  metrics.CountRefusedNodes(nodes);
  if (answer.observed != Reason::kNone) metrics.CountObserved(answer.observed);
  metrics.CountDecision(Verb::kFilter, answer.reason);
}

}  // namespace

Verbs::Verbs(Host& host, Binder& binder, metrics::Metrics& metrics, wire::ReasonStyle style)
    : host_(host), binder_(binder), metrics_(metrics), style_(style) {}

void Verbs::AddTo(Router& router) {
  router.Add("POST", "/scheduler/filter", std::bind_front(&Verbs::Filter, this));
  router.Add("POST", "/scheduler/prioritize", std::bind_front(&Verbs::Prioritize, this));
  router.Add("POST", "/scheduler/preempt", std::bind_front(&Verbs::Preempt, this));
  router.Add("POST", "/scheduler/bind", std::bind_front(&Verbs::Bind, this));
}

void Verbs::Filter(const http::Request& request, const http::Responder& respond) {
  const Count count(metrics_, Verb::kFilter);
  const ThreadScratch lease(request);
  Scratch& scratch = *lease;
  const absl::Status read = scratch.codec.ReadExtenderArgs(request.body, scratch.args);
  if (!read.ok()) return count.Answer(Result::kMalformed, Malformed(read), respond);
  std::string body;
  if (const Readiness readiness = host_.cluster.readiness(); readiness != Readiness::kReady) {
    wire::WriteFilterError(Describe(readiness), body);
    return count.Answer(Result::kNotReady, Reply(200, std::move(body)), respond);
  }
  const PodFacts& pod = scratch.args.pod;
  const bool seen = host_.engine.With(EngineCaller::kFilter, [&](Engine& engine, Instant now) {
    // What claims cost is judged by the books, which know a pod once the watch has shown it.
    if (pod.claims && !pod.request.asks_gpu() && !engine.Knows(pod.request.uid)) return false;
    engine.Filter(pod.request, scratch.args.names, now, scratch.answer);
    return true;
  });
  if (!seen) {
    wire::WriteFilterError(kClaimsUnseen, body);
    return count.Answer(Result::kNotReady, Reply(200, std::move(body)), respond);
  }
  wire::WriteFilterResult(scratch.args, scratch.answer, host_.policies.preemption_in_tree(), body,
                          FilterError(scratch.answer), style_);
  const bool yes = scratch.answer.untouched || !scratch.answer.chosen.empty();
  CountFilter(scratch.answer, metrics_);
  count.Answer(yes ? Result::kYes : Result::kNo, Reply(200, std::move(body)), respond);
}

void Verbs::Prioritize(const http::Request& request, const http::Responder& respond) {
  const Count count(metrics_, Verb::kPrioritize);
  const ThreadScratch lease(request);
  Scratch& scratch = *lease;
  wire::ExtenderArgs& args = scratch.args;
  absl::Status read = scratch.codec.ReadExtenderArgs(request.body, args, wire::PodPart::kUid);
  if (!read.ok()) return count.Answer(Result::kMalformed, Malformed(read), respond);
  if (const Readiness readiness = host_.cluster.readiness(); readiness != Readiness::kReady) {
    return count.Answer(Result::kNotReady, RefusalAnswer(503, Describe(readiness)), respond);
  }
  const bool ranked =
      host_.engine.With(EngineCaller::kPrioritize, [&](Engine& engine, Instant now) {
        return engine.RankAsFiltered(args.pod.request.uid, args.names, now, scratch.ranks);
      });
  if (!ranked) {
    read = scratch.codec.ReadPod(args);
    if (!read.ok()) return count.Answer(Result::kMalformed, Malformed(read), respond);
    host_.engine.With(EngineCaller::kPrioritize, [&](Engine& engine, Instant now) {
      engine.Prioritize(args.pod.request, args.names, now, scratch.ranks);
    });
  }
  std::string body;
  wire::WritePriorities(scratch.args, scratch.ranks, body);
  count.Answer(Result::kYes, Reply(200, std::move(body)), respond);
}

void Verbs::Preempt(const http::Request& request, const http::Responder& respond) {
  const Count count(metrics_, Verb::kPreempt);
  absl::StatusOr<wire::PreemptionArgs> args =
      ThreadScratch(request)->codec.ReadPreemptionArgs(request.body);
  if (!args.ok()) return count.Answer(Result::kMalformed, Malformed(args.status()), respond);
  if (const Readiness readiness = host_.cluster.readiness(); readiness != Readiness::kReady) {
    return count.Answer(Result::kNotReady, RefusalAnswer(503, Describe(readiness)), respond);
  }
  std::vector<PreemptNode> kept;
  const PodRequest& pod = args->pod.request;
  if (!pod.asks_gpu()) {
    kept = std::move(args->nodes);
    // Since 1.38 nodes without victims are asked about; an answer that names one fails the call.
    std::erase_if(kept, [](const PreemptNode& node) { return node.victims.empty(); });
  } else {
    const std::span<const PreemptNode> all(args->nodes);
    for (std::size_t from = 0; from < all.size(); from += kPreemptBatch) {
      const auto batch = all.subspan(from, std::min(kPreemptBatch, all.size() - from));
      std::vector<PreemptNode> found = host_.engine.With(
          EngineCaller::kPreempt,
          [&](Engine& engine, Instant now) { return engine.Preempt(pod, batch, now); });
      std::move(found.begin(), found.end(), std::back_inserter(kept));
    }
    metrics_.CountDecision(Verb::kPreempt, kept.empty() ? Reason::kNoRoom : Reason::kNone);
  }
  std::string body;
  wire::WritePreemptionResult(kept, body);
  count.Answer(kept.empty() ? Result::kNo : Result::kYes, Reply(200, std::move(body)), respond);
}

void Verbs::Bind(const http::Request& request, http::Responder respond) {
  const Count count(metrics_, Verb::kBind);
  const absl::StatusOr<wire::BindingArgs> args =
      ThreadScratch(request)->codec.ReadBindingArgs(request.body);
  if (!args.ok()) return count.Answer(Result::kMalformed, Malformed(args.status()), respond);
  binder_.Bind(args->pod, args->uid, args->node,
               [respond = std::move(respond), count](const BindAnswer& answer) {
                 std::string body;
                 wire::WriteBindingResult(answer.error, body);
                 count.Answer(answer.result, Reply(200, std::move(body)), respond);
               });
}

}  // namespace tranche
