#include "scheduler/kube/reviews/review_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/kube/transport/api_status.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::kube {
namespace {

using wire::Json;

constexpr std::size_t kMostReviewBytes = std::size_t{256} * 1024;

ApiRequest ReviewRequest(const char* target, const Json& review, TimePoint deadline) {
  ApiRequest request;
  request.method = "POST";
  request.target = target;
  request.body = wire::Dump(review);
  request.answer_limit = kMostReviewBytes;
  request.deadline = deadline;
  return request;
}

// The status of a review of that kind.
absl::StatusOr<Json> StatusOf(const ApiAnswer& answer, std::string_view kind) {
  const auto bad = [kind](std::string_view found) {
    return absl::UnavailableError(fmt::format("{}: {}", kind, found));
  };
  if (answer.transport != ApiAnswer::Transport::kAnswered) return bad(CutMessage(answer.error));
  Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool is_object = json.is_object();
  if (!answer.succeeded()) {
    // A 403 speaks of the right to ask; what others say might repeat what was asked.
    constexpr int kForbidden = 403;
    const bool tells = is_object && answer.status == kForbidden && json.contains("message") &&
                       json["message"].is_string();
    return bad(fmt::format("the API server answered {}{}", answer.status,
                           tells ? ": " + CutMessage(json["message"].get<std::string>()) : ""));
  }
  if (!is_object || json.value("kind", Json()) != kind ||
      !json.value("status", Json()).is_object()) {
    return bad("expected a review with a status, found another answer");
  }
  return std::move(json["status"]);
}

bool IsTrue(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string TextIn(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> TextsOf(const Json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const Json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

}  // namespace

ApiRequest TokenReviewRequest(const std::string& token, const std::vector<std::string>& audiences,
                              TimePoint deadline) {
  Json review = {{"apiVersion", "authentication.k8s.io/v1"},
                 {"kind", "TokenReview"},
                 {"spec", {{"token", token}}}};
  if (!audiences.empty()) review["spec"]["audiences"] = audiences;
  return ReviewRequest("/apis/authentication.k8s.io/v1/tokenreviews", review, deadline);
}

ApiRequest AccessReviewRequest(const ReviewedUser& user, const AccessQuestion& question,
                               TimePoint deadline) {
  Json spec = {{"user", user.name}};
  if (!user.uid.empty()) spec["uid"] = user.uid;
  if (!user.groups.empty()) spec["groups"] = user.groups;
  if (!user.extra.empty()) spec["extra"] = user.extra;
  if (!question.path.empty()) {
    spec["nonResourceAttributes"] = {{"path", question.path}, {"verb", question.verb}};
  } else {
    Json& resource = spec["resourceAttributes"] = {
        {"verb", question.verb}, {"group", question.group}, {"resource", question.resource}};
    if (!question.ns.empty()) resource["namespace"] = question.ns;
  }
  const Json review = {
      {"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", spec}};
  return ReviewRequest("/apis/authorization.k8s.io/v1/subjectaccessreviews", review, deadline);
}

absl::StatusOr<std::optional<ReviewedUser>> ReadTokenReview(
    const ApiAnswer& answer, const std::vector<std::string>& audiences) {
  absl::StatusOr<Json> status = StatusOf(answer, "TokenReview");
  if (!status.ok()) return status.status();
  if (!IsTrue(*status, "authenticated")) return std::nullopt;
  if (!audiences.empty()) {
    // A server that names none has not looked at what the token is for.
    const std::vector<std::string> found = TextsOf(status->value("audiences", Json()));
    const bool ours = std::ranges::any_of(found, [&audiences](const std::string& audience) {
      return std::ranges::count(audiences, audience) > 0;
    });
    if (!ours) return std::nullopt;
  }
  const Json user = status->value("user", Json());
  if (!user.is_object() || TextIn(user, "username").empty()) {
    return absl::UnavailableError("TokenReview: expected the name of a user, found none");
  }
  if (wire::Dump(user).size() > kMostUserBytes) {
    return absl::UnavailableError(
        fmt::format("TokenReview: expected a user of at most {} bytes with all groups, found more",
                    kMostUserBytes));
  }
  ReviewedUser reviewed;
  reviewed.name = TextIn(user, "username");
  reviewed.uid = TextIn(user, "uid");
  reviewed.groups = TextsOf(user.value("groups", Json()));
  if (const auto extra = user.find("extra"); extra != user.end() && extra->is_object()) {
    for (const auto& [key, values] : extra->items()) reviewed.extra[key] = TextsOf(values);
  }
  return reviewed;
}

absl::StatusOr<bool> ReadAccessReview(const ApiAnswer& answer) {
  const absl::StatusOr<Json> status = StatusOf(answer, "SubjectAccessReview");
  if (!status.ok()) return status.status();
  return IsTrue(*status, "allowed") && !IsTrue(*status, "denied");
}

}  // namespace tranche::kube
