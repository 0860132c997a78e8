#include "test/sim/cluster/pod_writes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tranche::sim {
namespace {

constexpr const char* kPods = "pods";
constexpr const char* kBudgets = "poddisruptionbudgets";

std::string TextAt(const Json& object, const char* part, const char* key) {
  const auto found = object.find(part);
  return found == object.end() ? std::string() : found->value(key, std::string());
}

bool IsWhole(const std::string& amount) {
  return !amount.empty() && std::all_of(amount.begin(), amount.end(),
                                        [](char byte) { return byte >= '0' && byte <= '9'; });
}

// Requests of extended resources are their limits, and both are whole numbers.
bool FillRequests(Json& container, std::string& problem) {
  const auto resources = container.find("resources");
  if (resources == container.end() || !resources->contains("limits")) return true;
  Json& requests = (*resources)["requests"];
  if (!requests.is_object()) requests = Json::object();
  const Json& limits = resources->at("limits");
  for (auto it = limits.begin(); it != limits.end(); ++it) {
    if (it.key().find('/') != std::string::npos && !IsWhole(it->get<std::string>())) {
      problem = it.key() + ": Invalid value: must be an integer";
      return false;
    }
    if (!requests.contains(it.key())) requests[it.key()] = *it;
  }
  return true;
}

Json Condition(const char* type, const char* reason, const std::string& when) {
  return {{"type", type}, {"status", "True"}, {"reason", reason}, {"lastTransitionTime", when}};
}

void SetCondition(Json& pod, Json condition) {
  Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (Json& present : conditions) {
    if (present.at("type") == condition.at("type")) {
      present = std::move(condition);
      return;
    }
  }
  conditions.push_back(std::move(condition));
}

Answer RefusedByBudget(const std::string& message, int retry_after) {
  Answer answer = Refuse(429, "TooManyRequests",
                         "Cannot evict pod as it would violate the pod's disruption budget.");
  answer.status["details"]["causes"] =
      Json::array({{{"reason", "DisruptionBudget"}, {"message", message}}});
  if (retry_after > 0) {
    answer.status["details"]["retryAfterSeconds"] = retry_after;
    answer.retry_after = retry_after;
  }
  return answer;
}

}  // namespace

bool Selects(const Json& selector, const Json& object) {
  const Json& metadata = object.at("metadata");
  const auto labels = metadata.find("labels");
  const auto wanted = selector.find("matchLabels");
  if (wanted == selector.end()) return true;
  if (labels == metadata.end()) return wanted->empty();
  return std::all_of(wanted->items().begin(), wanted->items().end(), [&](const auto& label) {
    const auto found = labels->find(label.key());
    return found != labels->end() && *found == label.value();
  });
}

std::string PhaseOf(const Json& pod) { return TextAt(pod, "status", "phase"); }
std::string NodeOf(const Json& pod) { return TextAt(pod, "spec", "nodeName"); }
bool IsTerminal(const Json& pod) {
  const std::string phase = PhaseOf(pod);
  return phase == "Succeeded" || phase == "Failed";
}

std::optional<Json> PodWrites::Defaulted(Json pod, Answer& refusal) const {
  Json& spec = pod["spec"];
  if (!spec.is_object() || !spec.contains("containers")) {
    refusal = Invalid("spec.containers: Required value");
    return std::nullopt;
  }
  std::string problem;
  for (Json& container : spec["containers"]) {
    if (FillRequests(container, problem)) continue;
    refusal = Invalid(problem);
    return std::nullopt;
  }
  if (!spec.contains("schedulerName")) spec["schedulerName"] = "default-scheduler";
  if (!spec.contains("terminationGracePeriodSeconds")) {
    spec["terminationGracePeriodSeconds"] = kDefaultGraceSeconds;
  }
  const std::string wanted = spec.value("priorityClassName", "");
  spec["priority"] = 0;
  spec["preemptionPolicy"] = "PreemptLowerPriority";
  if (!wanted.empty()) {
    const StoredPtr priority = store_.Find("priorityclasses", wanted);
    if (priority == nullptr) {
      refusal = Refuse(403, "Forbidden", "no PriorityClass with name " + wanted + " was found");
      return std::nullopt;
    }
    spec["priority"] = priority->object().at("value");
    spec["preemptionPolicy"] = priority->object().value("preemptionPolicy", "PreemptLowerPriority");
  }
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "Burstable"}};
  return pod;
}

Answer PodWrites::Bind(const Write& write) {
  const StoredPtr before = store_.Find(kPods, write.path.key());
  if (before == nullptr) return NotFound(kPods, write.path.key());
  const Json& metadata = write.body.at("metadata");
  if (metadata.value("name", "") != write.path.name) {
    return Refuse(400, "BadRequest", "name in URL does not match name in Binding object");
  }
  const std::string node = TextAt(write.body, "target", "name");
  if (node.empty()) return Invalid("target.name: Required value");
  if (metadata.contains("uid") && metadata.at("uid") != std::string(before->uid())) {
    return Conflict("Precondition failed: UID in precondition: " + metadata.value("uid", ""));
  }
  const Json& old = before->object();
  if (old.at("metadata").contains("deletionTimestamp")) {
    return Conflict("pod " + write.path.name + " is being deleted, cannot be assigned to a host");
  }
  if (!NodeOf(old).empty()) {
    return Conflict("pod " + write.path.name + " is already assigned to node \"" + NodeOf(old) +
                    "\"");
  }
  const auto gates = old.at("spec").find("schedulingGates");
  if (gates != old.at("spec").end() && !gates->empty()) {
    return Conflict("pod " + write.path.name + " has non-empty .spec.schedulingGates");
  }
  Json pod = old;
  pod["spec"]["nodeName"] = node;
  if (metadata.contains("annotations")) {
    Json& annotations = pod["metadata"]["annotations"];
    if (!annotations.is_object()) annotations = Json::object();
    annotations.update(metadata.at("annotations"));
  }
  if (clears_nominations_) pod["status"].erase("nominatedNodeName");
  SetCondition(pod, Condition("PodScheduled", "", TimeText(loop_.now())));
  store_.Put(kPods, std::move(pod), write.who);
  return Success(201);
}

std::optional<Answer> PodWrites::ChargeBudget(const Stored& pod, const std::string& who) {
  std::vector<StoredPtr> covering;
  for (const auto& [key, budget] : store_.All(kBudgets)) {
    if (budget->ns() == pod.ns() &&
        Selects(budget->object().at("spec").at("selector"), pod.object())) {
      covering.push_back(budget);
    }
  }
  if (covering.empty()) return std::nullopt;
  if (covering.size() > 1) {
    return Refuse(500, "",
                  "This pod has more than one PodDisruptionBudget, which the eviction "
                  "subresource does not support.");
  }
  Json budget = covering.front()->object();
  Json& status = budget["status"];
  if (!status.is_object()) status = Json::object();
  const std::string name(covering.front()->name());
  if (status.value("observedGeneration", int64_t{0}) < budget["metadata"].value("generation", 1)) {
    return RefusedByBudget("The disruption budget " + name + " is still being processed", 10);
  }
  const int64_t allowed = status.value("disruptionsAllowed", int64_t{0});
  if (allowed < 0) return Refuse(403, "Forbidden", "pdb disruptions allowed is negative");
  if (allowed == 0) {
    return RefusedByBudget("The disruption budget " + name + " needs more healthy pods", 0);
  }
  status["disruptionsAllowed"] = allowed - 1;
  status["disruptedPods"][std::string(pod.name())] = TimeText(loop_.now());
  store_.Put(kBudgets, std::move(budget), who);
  return std::nullopt;
}

Answer PodWrites::Evict(const Write& write) {
  const StoredPtr pod = store_.Find(kPods, write.path.key());
  if (pod == nullptr) return NotFound(kPods, write.path.key());
  if (write.body.value("kind", "") != "Eviction" ||
      TextAt(write.body, "metadata", "name") != write.path.name) {
    return Refuse(400, "BadRequest", "name in URL does not match name in Eviction object");
  }
  const Json options = write.body.value("deleteOptions", Json::object());
  if (std::optional<Answer> refusal = CheckPreconditions(options, *pod)) return *refusal;
  const bool leaving = pod->object().at("metadata").contains("deletionTimestamp");
  if (PhaseOf(pod->object()) == "Running" && !leaving) {
    if (std::optional<Answer> refusal = ChargeBudget(*pod, write.who)) return *refusal;
  }
  Json condition = Condition("DisruptionTarget", "EvictionByEvictionAPI", TimeText(loop_.now()));
  const Answer done = Begin(pod, options, condition, write.who);
  return done.done() ? Success(201) : done;
}

Answer PodWrites::Delete(const Write& write) {
  const StoredPtr pod = store_.Find(kPods, write.path.key());
  if (pod == nullptr) return NotFound(kPods, write.path.key());
  if (std::optional<Answer> refusal = CheckPreconditions(write.body, *pod)) return *refusal;
  return Begin(pod, write.body, nullptr, write.who);
}

Answer PodWrites::Begin(const StoredPtr& pod, const Json& options, const Json& condition,
                        const std::string& who) {
  const Json& old = pod->object();
  int64_t grace = old.at("spec").value("terminationGracePeriodSeconds", kDefaultGraceSeconds);
  if (options.is_object()) grace = options.value("gracePeriodSeconds", grace);
  if (NodeOf(old).empty() || IsTerminal(old)) grace = 0;
  if (grace <= 0) {
    store_.Remove(kPods, pod->key(), who);
    return {200, pod};
  }
  const Json& metadata = old.at("metadata");
  const bool leaving = metadata.contains("deletionTimestamp");
  if (leaving && metadata.value("deletionGracePeriodSeconds", grace) <= grace) return {200, pod};
  Json left = old;
  left["metadata"]["deletionTimestamp"] = TimeText(loop_.now() + std::chrono::seconds(grace));
  left["metadata"]["deletionGracePeriodSeconds"] = grace;
  if (!condition.is_null()) SetCondition(left, condition);
  return {200, store_.Put(kPods, std::move(left), who)};
}

Answer PodWrites::PatchStatus(const Write& write) {
  const StoredPtr before = store_.Find(kPods, write.path.key());
  if (before == nullptr) return NotFound(kPods, write.path.key());
  Answer refusal;
  std::optional<Json> pod = writes_.Patched(write, *before, refusal);
  if (!pod) return refusal;
  if (IsTerminal(before->object()) && PhaseOf(*pod) != PhaseOf(before->object())) {
    return Invalid("status.phase: may not leave a terminal phase");
  }
  return writes_.Save(write, before, std::move(*pod));
}

}  // namespace tranche::sim
