#include "test/sim/check/bindings.h"

#include <fmt/format.h>

namespace tranche::sim::check {
namespace {

constexpr SimTime kToSettle = std::chrono::minutes(2);
constexpr const char* kUnderWay = "a bind of the pod is under way";  // as kube-scheduler is told

}  // namespace

void BindingChecker::Hear(const Happening& happening) {
  if (happening.kind == Happening::Kind::kRefused) return Refused(happening);
  // The next leader begins with what the cluster shows.
  if (happening.kind == Happening::Kind::kLeads) refused_.clear();
  if (happening.kind == Happening::Kind::kAsked) return Asked(happening);
  if (happening.kind == Happening::Kind::kWritten && happening.resource == "pods") {
    Written(happening);
  }
}

void BindingChecker::Written(const Happening& happening) {
  if (happening.after.is_null() || happening.before.is_null()) return;
  if (TextAt(happening.before, {"metadata", "uid"}) !=
      TextAt(happening.after, {"metadata", "uid"})) {
    return;
  }
  const std::string before = TextAt(happening.before, {"spec", "nodeName"});
  const std::string after = TextAt(happening.after, {"spec", "nodeName"});
  if (!before.empty() && before != after) {
    Found(happening.at, happening.key,
          fmt::format("expected the pod to stay on {}, found it on \"{}\", written by {}", before,
                      after, happening.who));
  }
  if (!IsTranche(happening.who)) return;
  constexpr const char* kRecord = "tranche.dev/allocation";
  const std::string record = Annotation(happening.after, kRecord);
  if (before.empty() && !after.empty()) {
    // What its owner had written there before is none of ours.
    const bool ours = record != Annotation(happening.before, kRecord);
    if (ours && !record.empty() && !ReadRecord(record)) {
      Found(happening.at, happening.key, "expected an allocation record, found " + record);
    }
    if (!At(happening.before, {"metadata", "deletionTimestamp"}).is_null()) {
      Found(happening.at, happening.key, "expected no Binding of a pod that leaves, found one");
    }
  } else if (record != Annotation(happening.before, kRecord)) {
    Found(happening.at, happening.key,
          "expected the record to be written with the node, found it written by " + happening.who);
  }
}

void BindingChecker::Refused(const Happening& happening) {
  const bool is_proof = happening.number >= 400 && happening.number < 500;
  if (!is_proof || !IsTranche(happening.who) || !happening.text.starts_with("POST binding")) return;
  if (const PodLife* const pod = truth_.pod_of(happening.key)) refused_[pod->uid] = happening.at;
}

// "No error" is said of a pod that is bound, or has been.
void BindingChecker::Asked(const Happening& happening) {
  if (happening.text != "bind" || !happening.after.is_object()) return;
  const PodLife* const pod = truth_.pod_asked_about(happening);
  for (const char* const name : {"Error", "error"}) {
    const std::string error = TextAt(happening.after, {name});
    if (error.empty()) continue;
    const auto refused = pod == nullptr ? refused_.end() : refused_.find(pod->uid);
    if (error == kUnderWay && refused != refused_.end() &&
        refused->second + kToSettle < happening.at) {
      Found(happening.at, happening.key,
            fmt::format("expected the bind to be over that the API server refused at {} ms, found "
                        "it under way",
                        refused->second.count() / 1000));
    }
    return;
  }
  if (pod != nullptr && pod->waits()) {
    Found(happening.at, happening.key,
          "expected the pod bound that bind said is, found it waiting");
  }
}

}  // namespace tranche::sim::check
