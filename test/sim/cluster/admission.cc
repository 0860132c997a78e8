#include "test/sim/cluster/admission.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/escaping.h"

namespace tranche::sim {
namespace {

constexpr SimTime kPatience = std::chrono::seconds(5);

std::string LabelOf(const Json& object, const char* label) {
  const Json& metadata = object.at("metadata");
  const auto labels = metadata.find("labels");
  return labels == metadata.end() ? std::string() : labels->value(label, std::string());
}

// The users behind those who write, by whom the webhook tells agents from people.
Json UserOf(const std::string& who) {
  const std::string sort = who.substr(0, who.find('/'));
  const std::string name = who.substr(std::min(who.find('/') + 1, who.size()));
  if (sort == "kubelet") {
    return {{"username", "system:node:" + name},
            {"groups", {"system:nodes", "system:authenticated"}}};
  }
  std::string account = "system:serviceaccount:kube-system:" + sort;
  if (sort == "agent") account = "system:serviceaccount:kube-system:hami-device-plugin";
  if (sort.starts_with("tranche")) account = "system:serviceaccount:tranche-system:tranche";
  if (sort.starts_with("kube-scheduler")) account = "system:kube-scheduler";
  if (sort == "user") account = "somebody";
  return {{"username", account}, {"groups", {"system:authenticated"}}};
}

Admission::Verdict Read(const Reply& reply) {
  Admission::Verdict verdict;
  if (reply.code != 200) return verdict;
  const Json review = Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (!review.is_object() || !review.contains("response")) return verdict;
  const Json& response = review.at("response");
  verdict.allowed = response.value("allowed", true);
  if (!verdict.allowed) {
    verdict.message = response.value("status", Json::object()).value("message", "denied");
  }
  std::string patch;
  if (absl::Base64Unescape(response.value("patch", ""), &patch) && !patch.empty()) {
    verdict.patch = Json::parse(patch, nullptr, /*allow_exceptions=*/false);
  }
  return verdict;
}

}  // namespace

Admission::Admission(Loop& loop, const Store& store, Network& network)
    : loop_(loop), store_(store), network_(network), self_(loop.NewActor("apiserver")) {}

void Admission::Mutate(const std::string& who, const std::string& ns, const Json& pod, Done done) {
  const StoredPtr space = store_.Find("namespaces", ns);
  const std::string wanted =
      space == nullptr ? "" : LabelOf(space->object(), "tranche.dev/schedule");
  const bool ours = wanted == "true" || wanted == "hami";
  if (tranche_ == nullptr || !ours || LabelOf(pod, "tranche.dev/admission") == "ignore") {
    return done({});
  }
  Ask(wanted == "hami" ? "/admission/mutate/hami" : "/admission/mutate", who, ns, pod, nullptr,
      std::move(done));
}

void Admission::Validate(const std::string& who, const std::string& ns, const Json& pod,
                         const Json& before, Done done) {
  const StoredPtr space = store_.Find("namespaces", ns);
  const bool left_out =
      ns == "kube-system" ||
      (space != nullptr && LabelOf(space->object(), "tranche.dev/admission") == "ignore");
  if (tranche_ == nullptr || left_out) return done({});
  Ask("/admission/validate", who, ns, pod, before, std::move(done));
}

void Admission::Ask(const std::string& path, const std::string& who, const std::string& ns,
                    const Json& pod, const Json& before, Done done) {
  Json ask = {{"uid", fmt::format("review-{}", ++asked_)},
              {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
              {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
              {"operation", before.is_null() ? "CREATE" : "UPDATE"},
              {"namespace", ns},
              {"name", pod.at("metadata").value("name", "")},
              {"userInfo", UserOf(who)},
              {"dryRun", false},
              {"object", pod},
              {"oldObject", before}};
  Request request;
  request.method = "POST";
  request.target = path;
  request.body = Json({{"apiVersion", "admission.k8s.io/v1"},
                       {"kind", "AdmissionReview"},
                       {"request", std::move(ask)}})
                     .dump();
  network_.Carry(
      self_, std::move(request), kPatience,
      [done = std::move(done)](const Reply& reply) { done(Read(reply)); },
      [this](Actor from, Request carried, SimTime timeout, std::function<void(Reply)> heard) {
        tranche_->Send(from, std::move(carried), timeout, std::move(heard));
      });
}

}  // namespace tranche::sim
