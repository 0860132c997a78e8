#include "scheduler/api/admission_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/reason.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/lenient_parser.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/protocol/admission_pod.h"
#include "scheduler/wire/protocol/admission_review.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using metrics::ReviewOutcome;
using Steady = std::chrono::steady_clock;

constexpr int kForbidden = 403;
constexpr int kInvalid = 422;
constexpr std::size_t kLargeReview = 1024 * 1024;

wire::AdmissionAnswer Refused(int code, std::string_view reason, std::string message) {
  wire::AdmissionAnswer answer;
  answer.code = code;
  answer.reason = reason;
  answer.message = std::move(message);
  return answer;
}

wire::AdmissionAnswer RefusedResult(std::string_view key, const char* found) {
  return Refused(kForbidden, metrics::kForgedResult,
                 fmt::format("expected annotation {} from schedulers and node agents alone, found "
                             "it {} by a user (admission.trustedUsers of tranche serve)",
                             key, found));
}

wire::Object AsObject(wire::Element element) { return element.get_object().value_unsafe(); }

class AdmissionApi {
 public:
  AdmissionApi(AdmissionOptions options, AdmissionQuestion ask_engine)
      : options_(std::move(options)), ask_engine_(std::move(ask_engine)) {}

  using Answer = absl::StatusOr<wire::AdmissionAnswer>;
  Answer Mutate(const wire::AdmissionAsk& ask, bool count_hami_shares) const;
  Answer Validate(const wire::AdmissionAsk& ask) const;

 private:
  bool IsTrusted(const wire::AdmissionAsk& ask) const;
  // The gates it lacks.
  GateSet GatesOf(const PodFacts& pod) const;
  static GateSet Lacks(const PodFacts& pod, GateSet gates);
  bool IsSpared(const PodRequest& request) const;
  absl::Status MutateClaiming(const wire::AdmissionAsk& ask, const PodFacts& pod,
                              wire::PodMutation& mutation) const;

  const AdmissionOptions options_;
  const AdmissionQuestion ask_engine_;
};

bool AdmissionApi::IsTrusted(const wire::AdmissionAsk& ask) const {
  return std::any_of(options_.trusted_users.begin(), options_.trusted_users.end(),
                     [&ask](const std::string& trusted) {
                       return ask.user == trusted || std::find(ask.groups.begin(), ask.groups.end(),
                                                               trusted) != ask.groups.end();
                     });
}

absl::StatusOr<PodFacts> Decode(const wire::AdmissionAsk& ask, wire::Element element) {
  absl::StatusOr<PodFacts> pod = wire::DecodePod(element, wire::PodDetail::kRequest);
  if (pod.ok() && !ask.ns.empty()) pod->request.name.ns = ask.ns;
  return pod;
}

// What the pod asks for with the patch, which may be something else than the document says.
absl::StatusOr<PodFacts> Changed(const wire::AdmissionAsk& ask, const std::string& patch) {
  TRANCHE_ASSIGN_OR_RETURN(const std::string text, wire::ApplyPatch(*ask.object, patch));
  wire::Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const wire::Element document, parser.Parse(text));
  return Decode(ask, document);
}

GateSet AdmissionApi::GatesOf(const PodFacts& pod) const {
  return Lacks(pod, ask_engine_(pod.request, {}).gates);
}

// Of the gates it should have those it has not.
GateSet AdmissionApi::Lacks(const PodFacts& pod, GateSet gates) {
  gates.quota &= !pod.our_gates.quota;
  gates.gang &= !pod.our_gates.gang;
  return gates;
}

bool AdmissionApi::IsSpared(const PodRequest& request) const {
  if (options_.spare == Spare::kNone) return false;
  const bool in_gang = !request.gang.empty() && request.gang_size != 1;
  const bool runs_long = request.expected_runtime && *request.expected_runtime >= kLongRuntime;
  return in_gang || (options_.spare == Spare::kLong && runs_long);
}

// A pod whose only wish for GPUs is its resource claims.
absl::Status AdmissionApi::MutateClaiming(const wire::AdmissionAsk& ask, const PodFacts& pod,
                                          wire::PodMutation& mutation) const {
  TRANCHE_ASSIGN_OR_RETURN(const dra::PodClaims claims, wire::DecodePodClaims(*ask.object));
  if (claims.empty()) return absl::OkStatus();
  const AdmissionWord word = ask_engine_(pod.request, claims);
  if (!word.wants_gpus) return absl::OkStatus();
  if (options_.gates) mutation.AddGates(Lacks(pod, word.gates));
  if (IsSpared(pod.request)) mutation.SpareFromAutoscalers();
  mutation.SetScheduler();
  return absl::OkStatus();
}

AdmissionApi::Answer AdmissionApi::Mutate(const wire::AdmissionAsk& ask,
                                          bool count_hami_shares) const {
  wire::AdmissionAnswer answer;
  if (ask.verb != wire::AdmissionVerb::kCreate) return answer;
  absl::StatusOr<PodFacts> pod = Decode(ask, *ask.object);
  if (!pod.ok()) return pod.status();
  wire::MutationRules rules;
  rules.scheduler_name = options_.scheduler_name;
  rules.take_over = options_.take_over;
  rules.strip_results = !IsTrusted(ask);
  rules.count_hami_shares = count_hami_shares || options_.count_hami_shares;
  rules.move_hami_limits = options_.hami_limits == HamiLimits::kAnnotation;
  wire::PodMutation mutation(AsObject(*ask.object), rules);
  if (mutation.refusal()) {
    return Refused(kInvalid, Describe(Reason::kBadAmount).code, *mutation.refusal());
  }
  if (pod->request.asks_gpu() && pod->node.empty() && mutation.is_ours()) {
    if (mutation.changes_request() && (options_.gates || options_.show_devices)) {
      pod = Changed(ask, mutation.patch());
      if (!pod.ok()) return pod.status();
    }
    // On HAMi's nodes its plugin says which cards are seen.
    if (options_.show_devices && !rules.count_hami_shares) mutation.ShowDevices(pod->request);
    if (options_.gates) mutation.AddGates(GatesOf(*pod));
    if (IsSpared(pod->request)) mutation.SpareFromAutoscalers();
    mutation.SetScheduler();
  } else if (pod->node.empty() && mutation.is_ours()) {
    TRANCHE_RETURN_IF_ERROR(MutateClaiming(ask, *pod, mutation));
  } else if (pod->request.asks_gpu() && pod->node.empty()) {
    mutation.WarnOfOtherScheduler();
  }
  answer.warnings = mutation.warnings();
  answer.patch = mutation.patch();
  return answer;
}

AdmissionApi::Answer AdmissionApi::Validate(const wire::AdmissionAsk& ask) const {
  const wire::Object after = AsObject(*ask.object);
  if (ask.verb == wire::AdmissionVerb::kUpdate) {
    const std::string_view key = wire::FindChangedResult(AsObject(*ask.before), after);
    if (key.empty() || IsTrusted(ask)) return wire::AdmissionAnswer();
    return RefusedResult(key, "changed");
  }
  // First of all: whatever else the pod is, nobody forges a result.
  const std::string_view key = wire::FindResultKey(after);
  if (!key.empty() && !IsTrusted(ask)) return RefusedResult(key, "set");
  TRANCHE_ASSIGN_OR_RETURN(const PodFacts pod, Decode(ask, *ask.object));
  const std::optional<wire::Object> spec = wire::FindObject(after, "spec");
  const std::string_view scheduler =
      spec ? wire::FindText(*spec, "schedulerName").value_or("") : std::string_view();
  // What others make of a request is theirs to judge.
  if (!wire::IsOurs(scheduler, options_.scheduler_name)) return wire::AdmissionAnswer();
  std::optional<wire::Impossible> impossible = wire::FindImpossible(pod);
  if (!impossible) return wire::AdmissionAnswer();
  return Refused(kInvalid, Describe(impossible->reason).code, std::move(impossible->message));
}

// Adds the review to the metrics, before its answer leaves.
class ReviewCount {
 public:
  ReviewCount(metrics::Metrics& metrics, metrics::Webhook webhook)
      : metrics_(metrics), webhook_(webhook), started_(Steady::now()) {}
  void Answered(const wire::AdmissionAnswer& answer) const {
    if (!answer.allowed()) return Add(ReviewOutcome::kRefused, answer.reason);
    Add(answer.patch.empty() ? ReviewOutcome::kAllowed : ReviewOutcome::kChanged,
        Describe(Reason::kNone).code);
  }
  http::Response Malformed(const absl::Status& status) const {
    Add(ReviewOutcome::kError, metrics::kMalformedReview);
    return ErrorResponse(status);
  }

 private:
  void Add(ReviewOutcome outcome, std::string_view reason) const {
    metrics_.CountReview(webhook_, outcome, reason, Steady::now() - started_);
  }

  metrics::Metrics& metrics_;
  metrics::Webhook webhook_;
  Steady::time_point started_;
};

// One review: the pieces every path shares.
template <typename Judge>
http::Handler Reviewer(metrics::Metrics& metrics, metrics::Webhook webhook, Judge judge) {
  return [&metrics, webhook, judge = std::move(judge)](const http::Request& request,
                                                       const http::Responder& respond) {
    const ReviewCount count(metrics, webhook);
    // After a large body the parser's memory is given back.
    thread_local wire::LenientParser kept;
    std::optional<wire::LenientParser> own;
    wire::LenientParser& parser = request.body.size() > kLargeReview ? own.emplace() : kept;
    const absl::StatusOr<wire::Element> document =
        parser.Parse(request.body, wire::Padding::kThere);
    if (!document.ok()) return respond(count.Malformed(document.status()));
    const absl::StatusOr<wire::AdmissionAsk> ask = wire::ReadAdmissionReview(*document);
    if (!ask.ok()) return respond(count.Malformed(ask.status()));
    AdmissionApi::Answer answer = wire::AdmissionAnswer();
    if (ask->object) answer = judge(*ask);
    if (!answer.ok()) return respond(count.Malformed(answer.status()));
    count.Answered(*answer);
    http::Response response;
    response.body = wire::EncodeAdmissionReview(ask->uid, *answer);
    respond(std::move(response));
  };
}

}  // namespace

AdmissionQuestion AskEngine(Host& host) {
  return [&host](const PodRequest& request, const dra::PodClaims& claims) {
    AdmissionWord word{request.asks_gpu(), {}};
    if (host.cluster.readiness() != Readiness::kReady) return word;
    host.engine.With(EngineCaller::kAdmission, [&](Engine& engine, Instant now) {
      if (word.wants_gpus) {
        word.gates = engine.GatesFor(request, now);
      } else {
        const ClaimForecast claimed = engine.ForecastClaims(request, claims, now);
        word.wants_gpus = claimed.wants_gpus;
        word.gates.quota = claimed.quota_waits;
      }
    });
    return word;
  };
}

void AddAdmissionApi(AdmissionOptions options, AdmissionQuestion ask_engine,
                     metrics::Metrics& metrics, Router& router) {
  const auto api = std::make_shared<const AdmissionApi>(std::move(options), std::move(ask_engine));
  for (const auto& [path, count_hami_shares] :
       {std::pair("/admission/mutate", false), std::pair("/admission/mutate/hami", true)}) {
    router.Add("POST", path,
               Reviewer(metrics, metrics::Webhook::kMutate,
                        [api, hami = count_hami_shares](const wire::AdmissionAsk& ask) {
                          return api->Mutate(ask, hami);
                        }));
  }
  router.Add("POST", "/admission/validate",
             Reviewer(metrics, metrics::Webhook::kValidate,
                      [api](const wire::AdmissionAsk& ask) { return api->Validate(ask); }));
}

}  // namespace tranche
