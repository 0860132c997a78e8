#include "scheduler/wire/pod_decode.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "scheduler/wire/allocation_json.h"
#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/hami.h"
#include "scheduler/wire/pod_dialects.h"
#include "scheduler/wire/pod_planning.h"
#include "scheduler/wire/pod_requests.h"
#include "scheduler/wire/pod_times.h"

namespace tranche::wire {
namespace {

PodPhase ParsePhase(std::string_view phase) {
  if (phase.empty() || phase == "Pending") return PodPhase::kPending;
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

void ReadMetadata(Object metadata, FieldReader& reader, PodFacts& pod,
                  PodAnnotations& annotations) {
  constexpr std::string_view kWhere = "metadata";
  pod.request.name.name = reader.ReadText(metadata, "name", kWhere);
  if (pod.request.name.name.empty()) reader.Fail("expected a name, found none, in metadata.name");
  const std::string_view ns = reader.ReadText(metadata, "namespace", kWhere);
  pod.request.name.ns = ns.empty() ? "default" : ns;
  pod.request.uid = PodUid(reader.ReadText(metadata, "uid", kWhere));
  const std::string_view deletion = reader.ReadText(metadata, "deletionTimestamp", kWhere);
  pod.terminating = !deletion.empty();
  pod.deletion_at = ParseTime(deletion);
  pod.created = ParseTime(reader.ReadText(metadata, "creationTimestamp", kWhere));
  const std::optional<Object> all = reader.ReadObject(metadata, "annotations", kWhere);
  if (!all) return;
  for (const auto field : *all) {
    std::optional<std::string_view> value;
    if (!field.value.is_null()) value = reader.AsText(field.value, "metadata.annotations");
    annotations.Set(field.key, value);
  }
}

// One list of containers, and what its resources name.
void ReadContainers(Object spec, std::string_view list, FieldReader& reader, PodRequest& request,
                    std::vector<Amount>& amounts, CpuSum& cpu) {
  const bool init = list == "initContainers";
  const std::optional<Array> containers = reader.ReadArray(spec, list, "spec");
  if (!containers) return;
  for (const Element element : *containers) {
    const std::optional<Object> container = reader.AsObject(element, list);
    if (!container) return;
    ContainerInfo info;
    const std::string_view name = reader.ReadText(*container, "name", list);
    info.name = name;
    if (init) {
      const bool sidecar = reader.ReadText(*container, "restartPolicy", list) == "Always";
      info.role = sidecar ? ContainerRole::kSidecar : ContainerRole::kInit;
    }
    const auto index = static_cast<int>(request.containers.size());
    const std::size_t first = amounts.size();
    if (const std::optional<Object> resources = reader.ReadObject(*container, "resources", list)) {
      ReadAmounts(*resources, index, name, reader, amounts);
      cpu.AddContainer(*resources, info.role, reader);
    }
    for (std::size_t i = first; i < amounts.size(); ++i) {
      if (amounts[i].kind == AmountKind::kGpu) info.plugin_count = amounts[i].value;
    }
    request.containers.push_back(std::move(info));
  }
}

void ReadSpec(Object spec, FieldReader& reader, PodFacts& pod, std::vector<Amount>& amounts) {
  constexpr std::string_view kWhere = "spec";
  pod.node = NodeName(reader.ReadText(spec, "nodeName", kWhere));
  pod.request.priority_class = reader.ReadText(spec, "priorityClassName", kWhere);
  constexpr IntegerRange kPriorities = {std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max()};
  pod.request.priority =
      static_cast<int32_t>(reader.ReadInteger(spec, "priority", kWhere, kPriorities).value_or(0));
  if (const std::optional<Array> gates = reader.ReadArray(spec, "schedulingGates", kWhere)) {
    pod.gated = gates->begin() != gates->end();
  }
  CpuSum cpu;
  ReadContainers(spec, "initContainers", reader, pod.request, amounts, cpu);
  ReadContainers(spec, "containers", reader, pod.request, amounts, cpu);
  if (const std::optional<Object> resources = reader.ReadObject(spec, "resources", kWhere)) {
    cpu.SetPod(*resources, reader);
  }
  if (const std::optional<Object> overhead = reader.ReadObject(spec, "overhead", kWhere)) {
    ReadOverhead(*overhead, reader, amounts);
    cpu.AddOverhead(*overhead);
  }
  pod.request.cpu = cpu.Total();
}

void ReadStatus(Object status, FieldReader& reader, PodFacts& pod) {
  constexpr std::string_view kWhere = "status";
  pod.nominated = NodeName(reader.ReadText(status, "nominatedNodeName", kWhere));
  pod.phase = ParsePhase(reader.ReadText(status, "phase", kWhere));
  const std::string_view reason = reader.ReadText(status, "reason", kWhere);
  pod.refused_by_kubelet = pod.phase == PodPhase::kFailed &&
                           (reason.starts_with("OutOf") || reason == "UnexpectedAdmissionError");
  // Nothing of a pod without a node has begun, and those are the ones kube-scheduler asks about.
  if (!pod.node.empty()) ReadPodTimes(status, reader, pod);
}

// What each request style has in the pod: its first key, empty where it has none.
struct Triggers {
  std::string_view tranche;
  std::string_view hami;
  std::string_view partition;  // nvidia.com/gpu.shared, nvidia.com/mig-...
  std::string_view gpu;        // nvidia.com/gpu belongs to every style
  std::string_view foreign;

  Dialect dialect() const {
    if (!tranche.empty()) return Dialect::kTranche;
    if (!hami.empty()) return Dialect::kHami;
    return partition.empty() && gpu.empty() ? Dialect::kNone : Dialect::kNative;
  }
};

// The trigger an amount of this kind belongs to.
std::string_view& TriggerOf(AmountKind kind, Triggers& triggers) {
  switch (kind) {
    case AmountKind::kGpu:
      return triggers.gpu;
    case AmountKind::kGpuShared:
    case AmountKind::kMig:
      return triggers.partition;
    case AmountKind::kHamiMemory:
    case AmountKind::kHamiPercent:
    case AmountKind::kHamiCores:
      return triggers.hami;
    case AmountKind::kForeign:
      break;
  }
  return triggers.foreign;
}

Triggers FindTriggers(const PodText& text) {
  Triggers triggers;
  triggers.tranche = TrancheTrigger(text.annotations);
  triggers.foreign = text.annotations.foreign();
  for (const Amount& amount : text.amounts) {
    if (amount.container == kOverhead || !amount.is_present()) continue;
    std::string_view& trigger = TriggerOf(amount.kind, triggers);
    if (trigger.empty()) trigger = amount.key;
  }
  return triggers;
}

std::optional<Refusal> FindMix(const Triggers& triggers) {
  std::string_view ours;
  for (const std::string_view trigger :
       {triggers.tranche, triggers.hami, triggers.partition, triggers.gpu}) {
    if (ours.empty()) ours = trigger;
  }
  // nvidia.com/gpu belongs to every style; the others exclude each other.
  const bool shares = !triggers.tranche.empty() || !triggers.hami.empty();
  if (!triggers.foreign.empty()) return MixedDialects(ours, triggers.foreign);
  if (!triggers.tranche.empty() && !triggers.hami.empty()) {
    return MixedDialects(triggers.tranche, triggers.hami);
  }
  if (shares && !triggers.partition.empty()) return MixedDialects(ours, triggers.partition);
  return std::nullopt;
}

std::optional<Refusal> FindBadAmount(const std::vector<Amount>& amounts) {
  for (const Amount& amount : amounts) {
    if (amount.kind != AmountKind::kForeign && !amount.problem.empty()) {
      return Refusal{Reason::kBadAmount, amount.problem};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ReadAsks(const PodText& text, const Triggers& triggers,
                                PodRequest& request) {
  if (std::optional<Refusal> refusal = FindMix(triggers)) return refusal;
  if (std::optional<Refusal> refusal = FindBadAmount(text.amounts)) return refusal;
  std::optional<Refusal> refusal;
  switch (request.dialect) {
    case Dialect::kTranche:
      refusal = ReadTranche(text, request);
      break;
    case Dialect::kHami:
      refusal = ReadHami(text, request);
      break;
    case Dialect::kNative:
      refusal = ReadNative(text, request);
      break;
    case Dialect::kNone:
      break;
  }
  return refusal ? refusal : ReadSelection(text.annotations, request);
}

void ReadRequest(const PodText& text, PodRequest& request) {
  if (!text.amounts.empty()) {
    request.pool_needs = EffectiveRequests(text.amounts, request.containers);
  }
  const Triggers triggers = FindTriggers(text);
  request.dialect = triggers.dialect();
  if (request.dialect == Dialect::kNone) return;
  request.refusal = ReadAsks(text, triggers, request);
  if (request.refusal) {
    request.asks.clear();
  } else if (request.asks.empty()) {
    request.dialect = Dialect::kNone;  // HAMi amounts beside a count of zero
  }
}

// The devices an agent or we wrote on the pod. A pod without a node has none yet, so what stands
// there is a copy or a forgery (hazards row 57).
void ReadAllocation(const PodAnnotations& annotations, PodFacts& pod) {
  if (pod.node.empty()) return;
  const std::optional<std::string_view> ours = annotations.Get(PodKey::kAllocation);
  const std::optional<std::string_view> hami = annotations.Get(PodKey::kHamiAllocated);
  if (!ours && !hami) return;
  absl::StatusOr<Allocation> allocation =
      ours ? DecodeAllocation(*ours) : ParseHamiDevices(*hami, pod.request.containers);
  if (allocation.ok()) {
    pod.allocation = *std::move(allocation);
  } else {
    const PodKey key = ours ? PodKey::kAllocation : PodKey::kHamiAllocated;
    const absl::string_view why = allocation.status().message();
    pod.allocation_problem =
        fmt::format("{}, in annotation {}", std::string_view(why.data(), why.size()),
                    PodAnnotations::KeyName(key));
  }
}

}  // namespace

absl::StatusOr<PodFacts> DecodePod(Element pod, PodDetail detail) {
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(pod, "pod");
  if (!object) return reader.status();
  const std::optional<Object> metadata = reader.ReadObject(*object, "metadata", "pod");
  if (!metadata) {
    reader.Fail("expected object, found nothing, in pod.metadata");
    return reader.status();
  }
  PodFacts facts;
  PodText text;
  ReadMetadata(*metadata, reader, facts, text.annotations);
  const std::optional<Object> spec = reader.ReadObject(*object, "spec", "pod");
  if (spec) ReadSpec(*spec, reader, facts, text.amounts);
  const std::optional<Object> status = reader.ReadObject(*object, "status", "pod");
  if (status) ReadStatus(*status, reader, facts);
  if (!reader.ok()) return reader.status();
  ReadRequest(text, facts.request);
  ReadAllocation(text.annotations, facts);
  if (!facts.request.asks_gpu()) return facts;
  if (spec) facts.request.constraints = ReadConstraints(*spec, reader);
  if (detail == PodDetail::kAll) {
    if (status) facts.unschedulable = ReadUnschedulable(*status, reader);
    ReadEvictionFacts(*metadata, text.annotations, reader, facts);
  }
  if (!reader.ok()) return reader.status();
  return facts;
}

}  // namespace tranche::wire
