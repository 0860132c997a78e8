#include "scheduler/api/foresight/edit_reviews.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/api/foresight/plan_api.h"
#include "scheduler/facts/reason.h"
#include "scheduler/wire/json/lenient_parser.h"

namespace tranche {
namespace {

using metrics::ReviewOutcome;

constexpr int kForbidden = 403;

wire::AdmissionAnswer NotJudged(std::string_view why) {
  wire::AdmissionAnswer answer;
  answer.warnings.push_back(
      fmt::format("Tranche could not tell what this evicts: {}; tranche plan -f says it", why));
  return answer;
}

std::string BodyOf(const wire::EditAsk& ask) {
  if (!ask.json.empty()) return ask.json;
  return wire::Dump({{"delete", {{{"kind", ask.kind}, {"name", ask.name}}}}});
}

std::string Counted(std::size_t pods) {
  return fmt::format("{} pod{}", pods, pods == 1 ? "" : "s");
}

}  // namespace

wire::AdmissionAnswer EditReviews::Judge(const wire::EditAsk& ask, Steady::time_point until) {
  const PolicyStore store = host_.policies.Store();
  const auto may_go_on = [this, until] { return !stopping_ && Steady::now() < until; };
  if (!may_go_on()) return NotJudged("other edits are being looked at");
  const absl::StatusOr<PlanAnswer> plan = AnswerPlan(host_, BodyOf(ask), 1, may_go_on);
  // An object that is not in force as written evicts nobody by that; its condition says so too.
  if (!plan.ok()) return NotJudged(std::string(plan.status().message()));
  if (!plan->complete) return NotJudged("it takes too long");
  wire::AdmissionAnswer answer;
  if (plan->evicted.empty()) return answer;
  const PolicySet& set = store.set();
  std::size_t guarded = 0;
  for (const PodName& pod : plan->evicted) {
    const GpuPolicy* const policy = set.PolicyFor(pod.ns);
    const GpuPolicy& governs = policy == nullptr ? host_.policies.defaults() : *policy;
    guarded += governs.evicting_edits == EvictingEdits::kRefuse ? 1 : 0;
  }
  if (static_cast<int64_t>(guarded) <= ask.accepted) {
    answer.warnings.push_back(fmt::format("{} would be evicted at once; tranche plan -f says which",
                                          Counted(plan->evicted.size())));
    return answer;
  }
  answer.code = kForbidden;
  answer.reason = metrics::kEvicts;
  answer.message = fmt::format(
      "expected an edit that evicts nobody, or the annotation {}: \"{}\" on the object (GPUPolicy "
      "evictingEdits), found {} that would be evicted at once; tranche plan -f says which",
      wire::kAcceptEvictionsKey, guarded, Counted(guarded));
  return answer;
}

void EditReviews::Review(const http::Request& request, const http::Responder& respond) {
  const Steady::time_point began = Steady::now();
  const auto count = [this, began](ReviewOutcome outcome, std::string_view reason) {
    metrics_.CountReview(metrics::Webhook::kEdits, outcome, reason, Steady::now() - began);
  };
  wire::LenientParser parser;
  const absl::StatusOr<wire::Element> document = parser.Parse(request.body, wire::Padding::kThere);
  absl::StatusOr<std::optional<wire::EditAsk>> ask = std::nullopt;
  std::string uid;
  if (document.ok()) {
    const auto review = wire::ReadAdmissionReview(*document);
    if (review.ok()) uid = review->uid;
    ask = wire::ReadEditReview(*document);
  }
  if (!document.ok() || !ask.ok()) {
    count(ReviewOutcome::kError, metrics::kMalformedReview);
    return respond(ErrorResponse(document.ok() ? ask.status() : document.status()));
  }
  const auto answer = [count, respond](const std::string& to, const wire::AdmissionAnswer& said) {
    count(said.allowed() ? ReviewOutcome::kAllowed : ReviewOutcome::kRefused,
          said.allowed() ? Describe(Reason::kNone).code : said.reason);
    http::Response response;
    response.body = wire::EncodeAdmissionReview(to, said);
    respond(std::move(response));
  };
  // Before all objects are in, or where others write, there is nothing to say.
  const bool ready = host_.cluster.readiness() == Readiness::kReady;
  if (!*ask || !(*ask)->changes || !ready) return answer(uid, {});
  if (under_way_.fetch_add(1) >= kMost) {
    --under_way_;
    return answer(uid, NotJudged("other edits are being looked at"));
  }
  boost::asio::post(pool_, [this, answer, began, edit = **std::move(ask)] {
    wire::AdmissionAnswer said = NotJudged("the question could not be answered");
    try {
      said = Judge(edit, began + patience_);
    } catch (const std::exception& failure) {
      spdlog::error("/admission/edits: given up, {}", failure.what());
    }
    --under_way_;
    if (said.allowed() && !edit.dry_run) {
      host_.policies.Reviewed(edit.kind, edit.name, edit.spec, edit.user);
    }
    answer(edit.uid, said);
  });
}

void EditReviews::AddTo(Router& router) {
  router.Add("POST", "/admission/edits",
             [this](const http::Request& request, const http::Responder& respond) {
               Review(request, respond);
             });
}

}  // namespace tranche
