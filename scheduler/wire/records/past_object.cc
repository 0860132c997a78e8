#include "scheduler/wire/records/past_object.h"

#include <simdjson.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

namespace tranche::wire {
namespace {

// Of these domains annotations are read by somebody who decides where pods go; of others some hold
// secrets, and many change all the time.
constexpr std::string_view kDomains[] = {
    "tranche.dev",
    "hami.io",
    "4pd.io",
    "nvidia.com",
    "volcano.sh",
    "scheduling.volcano.sh",
    "alibabacloud.com",
    "hivedscheduler.microsoft.com",
    "kubernetes.io",
    "batch.kubernetes.io",
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
    "gang.scheduling.koordinator.sh",
    "leaderworkerset.sigs.k8s.io",
    "jobset.sigs.k8s.io",
    "training.kubeflow.org",
};
// KAI's annotations have no domain.
constexpr std::string_view kWithoutDomain[] = {"gpu-", "mps"};

// Annotations that change by the clock, and those that are written when a pod is bound or later.
constexpr std::string_view kFleeting[] = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "hami.io/node-handshake",
    "hami.io/mutex.lock",
    "hami.io/node-handshake-dcu",
    "4pd.io/node-handshake",
    "nvidia.com/node-device-heartbeat",
    "nvidia.com/device-plugin-heartbeat",
    "volcano.sh/node-vgpu-handshake",
    "volcano.sh/node-lock",
    "tranche.dev/probe",
    "tranche.dev/allocation",
    "tranche.dev/visible-devices",
    "tranche.dev/checkpointed-at",
    "hami.io/vgpu-time",
    "hami.io/vgpu-node",
    "hami.io/bind-time",
    "hami.io/bind-phase",
    "hami.io/vgpu-devices-to-allocate",
    "hami.io/vgpu-devices-allocated",
};
// Labels that tell pods of one template apart and decide nothing.
constexpr std::string_view kPersonal[] = {
    "statefulset.kubernetes.io/pod-name",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
};

// Writes an object member by member.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  void End() { out_ += '}'; }
  std::string& Name(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    AppendQuoted(out_, name);
    return out_ += ':';
  }
  void Copy(std::string_view name, Element value) { Name(name) += simdjson::minify(value); }
  void CopyFrom(Object object, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const auto value = Find(object, name)) Copy(name, *value);
    }
  }

 private:
  std::string& out_;
  bool first_ = true;
};

bool IsRead(std::string_view annotation) {
  const auto among = [](std::string_view text, const auto& texts) {
    return std::ranges::find(texts, text) != std::end(texts);
  };
  const std::size_t slash = annotation.find('/');
  if (slash != std::string_view::npos) {
    return among(annotation.substr(0, slash), kDomains) && !among(annotation, kFleeting);
  }
  return std::ranges::any_of(kWithoutDomain, [annotation](std::string_view start) {
    return annotation.starts_with(start);
  });
}

bool IsShared(std::string_view label) {
  return std::ranges::find(kPersonal, label) == std::end(kPersonal);
}

// The entries of the map whose names are kept.
void CopySome(Members& members, Object object, std::string_view name,
              bool (*keeps)(std::string_view)) {
  const std::optional<Object> map = FindObject(object, name);
  if (!map) return;
  std::string text;
  Members inner(text);
  bool any = false;
  for (const auto member : *map) {
    if (!keeps(member.key)) continue;
    inner.Copy(member.key, member.value);
    any = true;
  }
  inner.End();
  if (any) members.Name(name) += text;
}

void CopyContainers(Members& members, Object spec, std::string_view name) {
  const std::optional<Array> containers = FindArray(spec, name);
  if (!containers) return;
  std::string& out = members.Name(name);
  char before = '[';
  for (const Element element : *containers) {
    Object container;
    if (element.get(container) != simdjson::SUCCESS) continue;
    out += std::exchange(before, ',');
    Members inner(out);
    inner.CopyFrom(container, {"name", "resources", "restartPolicy"});
    inner.End();
  }
  if (before == '[') out += before;
  out += ']';
}

// What kind of controller made the pod: one of a DaemonSet is never evicted.
void CopyOwners(Members& members, Object metadata) {
  const std::optional<Array> owners = FindArray(metadata, "ownerReferences");
  if (!owners) return;
  std::string& out = members.Name("ownerReferences");
  char before = '[';
  for (const Element element : *owners) {
    Object owner;
    if (element.get(owner) != simdjson::SUCCESS) continue;
    out += std::exchange(before, ',');
    Members inner(out);
    inner.CopyFrom(owner, {"kind", "controller"});
    inner.End();
  }
  if (before == '[') out += before;
  out += ']';
}

std::string Bounded(std::string text, std::size_t most) {
  return text.size() <= most ? std::move(text) : std::string();
}

// The Ready condition's two members that are no times.
void CopyReady(Members& members, Object status) {
  const std::optional<Array> conditions = FindArray(status, "conditions");
  if (!conditions) return;
  for (const Element element : *conditions) {
    Object condition;
    if (element.get(condition) != simdjson::SUCCESS) continue;
    if (FindText(condition, "type") != "Ready") continue;
    std::string& out = members.Name("conditions");
    out += '[';
    Members inner(out);
    inner.CopyFrom(condition, {"type", "status"});
    inner.End();
    out += ']';
    return;
  }
}

}  // namespace

std::string PastPodText(Element pod) {
  Object root;
  if (pod.get(root) != simdjson::SUCCESS) return "";
  std::string out;
  Members members(out);
  if (const auto metadata = FindObject(root, "metadata")) {
    Members inner(members.Name("metadata"));
    // Its name is in the row it is kept for.
    inner.Name("name") += "\"pod\"";
    CopyOwners(inner, *metadata);
    CopySome(inner, *metadata, "labels", IsShared);
    CopySome(inner, *metadata, "annotations", IsRead);
    inner.End();
  }
  if (const auto spec = FindObject(root, "spec")) {
    Members inner(members.Name("spec"));
    CopyContainers(inner, *spec, "initContainers");
    CopyContainers(inner, *spec, "containers");
    inner.CopyFrom(*spec, {"affinity", "nodeSelector", "overhead", "preemptionPolicy", "priority",
                           "priorityClassName", "resources", "runtimeClassName", "schedulerName",
                           "schedulingGroup", "terminationGracePeriodSeconds", "tolerations",
                           "topologySpreadConstraints"});
    inner.End();
  }
  members.End();
  return Bounded(std::move(out), kMostPastText);
}

std::string PastNodeText(Element node) {
  Object root;
  if (node.get(root) != simdjson::SUCCESS) return "";
  std::string out;
  Members members(out);
  if (const auto metadata = FindObject(root, "metadata")) {
    Members inner(members.Name("metadata"));
    inner.CopyFrom(*metadata, {"name", "uid", "labels"});
    CopySome(inner, *metadata, "annotations", IsRead);
    inner.End();
  }
  if (const auto spec = FindObject(root, "spec")) {
    Members inner(members.Name("spec"));
    inner.CopyFrom(*spec, {"taints", "unschedulable"});
    inner.End();
  }
  if (const auto status = FindObject(root, "status")) {
    Members inner(members.Name("status"));
    inner.CopyFrom(*status, {"allocatable", "capacity"});
    CopyReady(inner, *status);
    inner.End();
  }
  members.End();
  return Bounded(std::move(out), kMostPastObject);
}

std::string PastPolicyText(std::string_view json) {
  Parser parser;
  const absl::StatusOr<Element> element = parser.Parse(json);
  Object root;
  if (!element.ok() || element->get(root) != simdjson::SUCCESS) return "";
  std::string out;
  Members members(out);
  for (const auto member : root) {
    if (member.key == "status") continue;
    if (member.key == "metadata") {
      Object metadata;
      if (member.value.get(metadata) != simdjson::SUCCESS) continue;
      Members inner(members.Name("metadata"));
      inner.CopyFrom(metadata, {"name", "namespace", "labels"});
      inner.End();
      continue;
    }
    members.Copy(member.key, member.value);
  }
  members.End();
  return Bounded(std::move(out), kMostPastObject);
}

}  // namespace tranche::wire
