#include "scheduler/wire/pods/pod_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/node_selector.h"
#include "scheduler/wire/pods/pod_gang.h"
#include "scheduler/wire/pods/pod_pinned.h"
#include "scheduler/wire/pods/pod_planning.h"
#include "scheduler/wire/pods/pod_requests.h"
#include "scheduler/wire/pods/pod_times.h"
#include "scheduler/wire/pods/request_styles.h"
#include "scheduler/wire/records/allocation_json.h"
#include "scheduler/wire/records/placeholder_pod.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

PodPhase ParsePhase(std::string_view phase) {
  if (phase.empty() || phase == "Pending") return PodPhase::kPending;
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

void ReadMetadata(Object metadata, FieldReader& reader, PodFacts& pod, PodAnnotations& annotations,
                  GangText& gang, AgentText& agent) {
  constexpr std::string_view kWhere = "metadata";
  pod.request.name.name = reader.ReadText(metadata, "name", kWhere);
  // At admission the name may not be made yet.
  if (pod.request.name.name.empty()) {
    pod.request.name.name = reader.ReadText(metadata, "generateName", kWhere);
  }
  if (pod.request.name.name.empty()) reader.Fail("expected a name, found none, in metadata.name");
  const std::string_view ns = reader.ReadText(metadata, "namespace", kWhere);
  pod.request.name.ns = ns.empty() ? "default" : ns;
  pod.request.uid = PodUid(reader.ReadText(metadata, "uid", kWhere));
  const std::string_view deletion = reader.ReadText(metadata, "deletionTimestamp", kWhere);
  pod.terminating = !deletion.empty();
  pod.deletion_at = ParseTime(deletion);
  pod.created = ParseTime(reader.ReadText(metadata, "creationTimestamp", kWhere));
  if (const auto all = reader.ReadObject(metadata, "annotations", kWhere)) {
    for (const auto field : *all) {
      std::optional<std::string_view> value;
      if (!field.value.is_null()) value = reader.AsText(field.value, "metadata.annotations");
      annotations.Set(field.key, value);
      gang.SetAnnotation(field.key, value);
      agent.Set(field.key, value);
    }
  }
  if (const auto all = reader.ReadObject(metadata, "labels", kWhere)) {
    for (const auto field : *all) {
      if (field.value.is_null()) gang.SetLabel(field.key, std::nullopt);
      if (field.value.is_string()) gang.SetLabel(field.key, std::string_view(field.value));
    }
  }
}

// Kubelet will ask a plugin that an agent may stand behind: not those of replicas and instances.
bool CallsPlugin(const Amount& amount) {
  return IsPluginKey(amount.kind) && amount.kind != AmountKind::kGpuShared &&
         amount.kind != AmountKind::kMig && amount.value > 0;
}

// One list of containers, and what its resources name.
void ReadContainers(Object spec, std::string_view list, FieldReader& reader, PodRequest& request,
                    std::vector<Amount>& amounts, CpuSum& cpu, bool& guaranteed) {
  const bool init = list == "initContainers";
  for (const Object container : reader.Objects(reader.ReadArray(spec, list, "spec"), list)) {
    ContainerInfo info;
    const std::string_view name = reader.ReadText(container, "name", list);
    info.name = name;
    if (init) {
      const bool sidecar = reader.ReadText(container, "restartPolicy", list) == "Always";
      info.role = sidecar ? ContainerRole::kSidecar : ContainerRole::kInit;
    }
    const auto index = static_cast<int>(request.containers.size());
    const std::size_t first = amounts.size();
    const std::optional<Object> resources = reader.ReadObject(container, "resources", list);
    if (resources) {
      ReadAmounts(*resources, index, name, reader, amounts);
      cpu.AddContainer(*resources, info.role, reader);
    }
    info.pinned_cpu = PinnedCpu(resources, reader, guaranteed);
    for (std::size_t i = first; i < amounts.size(); ++i) {
      if (CallsPlugin(amounts[i])) info.plugin_count = amounts[i].value;
    }
    request.containers.push_back(std::move(info));
  }
}

void ReadGates(Object spec, FieldReader& reader, PodFacts& pod) {
  constexpr std::string_view kList = "schedulingGates";
  const std::optional<Array> gates = reader.ReadArray(spec, kList, "spec");
  if (!gates) return;
  for (const Element element : *gates) {
    pod.gated = true;
    const std::optional<Object> gate = reader.AsObject(element, kList);
    if (!gate) return;
    const std::string_view name = reader.ReadText(*gate, "name", kList);
    pod.our_gates.quota |= name == GateName(Gate::kQuota);
    pod.our_gates.gang |= name == GateName(Gate::kGang);
    pod.foreign_gates |= name != GateName(Gate::kQuota) && name != GateName(Gate::kGang);
  }
}

void ReadSpec(Object spec, FieldReader& reader, PodFacts& pod, PodText& text) {
  constexpr std::string_view kWhere = "spec";
  pod.node = NodeName(reader.ReadText(spec, "nodeName", kWhere));
  pod.request.priority_class = reader.ReadText(spec, "priorityClassName", kWhere);
  pod.request.scheduler = reader.ReadText(spec, "schedulerName", kWhere);
  if (pod.request.scheduler == "default-scheduler") pod.request.scheduler.clear();
  constexpr IntegerRange kPriorities = {std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max()};
  pod.request.priority =
      static_cast<int32_t>(reader.ReadInteger(spec, "priority", kWhere, kPriorities).value_or(0));
  ReadGates(spec, reader, pod);
  CpuSum cpu;
  bool guaranteed = true;
  std::vector<Amount>& amounts = text.amounts;
  ReadContainers(spec, "initContainers", reader, pod.request, amounts, cpu, guaranteed);
  ReadContainers(spec, "containers", reader, pod.request, amounts, cpu, guaranteed);
  if (const auto moved = text.annotations.Get(PodKey::kHamiLimits)) {
    AddMovedAmounts(*moved, pod.request.containers, amounts);
  }
  if (!guaranteed) {
    for (ContainerInfo& container : pod.request.containers) container.pinned_cpu = MilliCpu::Zero();
  }
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
  // By RequestStyle; native: what is not nvidia.com/gpu.
  std::array<std::string_view, kRequestStyles> styles;
  std::string_view gpu;  // nvidia.com/gpu, which several styles build on
  std::string_view foreign;

  std::string_view& of(RequestStyle style) { return styles[static_cast<std::size_t>(style)]; }
  std::string_view of(RequestStyle style) const { return styles[static_cast<std::size_t>(style)]; }
  std::string_view& of(AmountKind kind) {
    if (kind == AmountKind::kGpu) return gpu;
    return kind == AmountKind::kForeign ? foreign : of(StyleOf(kind));
  }
  RequestStyle style() const;
};

// The order in which a mix is reported; a pod that mixes nothing has one of them.
constexpr std::array kStyles = {
    RequestStyle::kTranche,  RequestStyle::kHami,        RequestStyle::kNative,
    RequestStyle::kVolcano,  RequestStyle::kVolcanoOld,  RequestStyle::kGpushare,
    RequestStyle::kTkestack, RequestStyle::kElastic,     RequestStyle::kVgpuManager,
    RequestStyle::kKai,      RequestStyle::kKoordinator, RequestStyle::kOpenGpuShare,
    RequestStyle::kHived};
static_assert(kStyles.size() + 1 == kRequestStyles);

RequestStyle Triggers::style() const {
  for (const RequestStyle style : kStyles) {
    if (!of(style).empty()) return style;
  }
  return gpu.empty() ? RequestStyle::kNone : RequestStyle::kNative;
}

// Tranche's and HAMi's agents are called through it, and to Koordinator it is a whole GPU.
bool BuildsOnGpuKey(RequestStyle style) {
  return style == RequestStyle::kNative || style == RequestStyle::kTranche ||
         style == RequestStyle::kHami || style == RequestStyle::kKoordinator;
}

Triggers FindTriggers(const PodText& text) {
  Triggers triggers;
  for (const auto& [style, key] : kStyleKeys) {
    std::string_view& trigger = triggers.of(style);
    if (trigger.empty() && text.annotations.Get(key)) trigger = PodAnnotations::KeyName(key);
  }
  for (const Amount& amount : text.amounts) {
    if (amount.container == kOverhead || !amount.is_present()) continue;
    std::string_view& trigger = triggers.of(amount.kind);
    if (trigger.empty()) trigger = amount.key;
  }
  return triggers;
}

// Styles exclude each other, but for those that build on nvidia.com/gpu.
std::optional<Refusal> FindMix(const Triggers& triggers) {
  std::string_view first;
  for (const RequestStyle style : kStyles) {
    const std::string_view trigger = triggers.of(style);
    if (trigger.empty()) continue;
    if (!triggers.gpu.empty() && !BuildsOnGpuKey(style)) {
      return MixedStyles(triggers.gpu, trigger);
    }
    if (!first.empty()) return MixedStyles(first, trigger);
    first = trigger;
  }
  if (triggers.foreign.empty()) return std::nullopt;
  return MixedStyles(first.empty() ? triggers.gpu : first, triggers.foreign);
}

std::optional<Refusal> FindBadAmount(const std::vector<Amount>& amounts) {
  for (const Amount& amount : amounts) {
    if (amount.kind != AmountKind::kForeign && !amount.problem.empty()) {
      return Refusal{Reason::kBadAmount, amount.problem};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ReadStyle(const PodText& text, PodRequest& request) {
  switch (request.style) {
    case RequestStyle::kNative:
      return ReadNative(text, request);
    case RequestStyle::kTranche:
      return ReadTranche(text, request);
    case RequestStyle::kHami:
      return ReadHami(text, request);
    case RequestStyle::kVolcano:
      return ReadVolcano(text, request);
    case RequestStyle::kVolcanoOld:
      return ReadVolcanoOld(text, request);
    case RequestStyle::kGpushare:
      return ReadGpushare(text, request);
    case RequestStyle::kTkestack:
      return ReadTkestack(text, request);
    case RequestStyle::kElastic:
      return ReadElastic(text, request);
    case RequestStyle::kVgpuManager:
      return ReadVgpuManager(text, request);
    case RequestStyle::kKai:
      return ReadKai(text, request);
    case RequestStyle::kKoordinator:
      return ReadKoordinator(text, request);
    case RequestStyle::kOpenGpuShare:
      return ReadOpenGpuShare(text, request);
    case RequestStyle::kHived:
      return ReadHived(text, request);
    case RequestStyle::kNone:
      break;
  }
  return std::nullopt;
}

std::optional<Refusal> ReadAsks(const PodText& text, const Triggers& triggers,
                                PodRequest& request) {
  if (std::optional<Refusal> refusal = FindMix(triggers)) return refusal;
  if (std::optional<Refusal> refusal = FindBadAmount(text.amounts)) return refusal;
  std::optional<Refusal> refusal = ReadStyle(text, request);
  return refusal ? refusal : ReadSelection(text.annotations, request);
}

void ReadRequest(const PodText& text, PodRequest& request) {
  if (!text.amounts.empty()) {
    request.pool_needs = EffectiveRequests(text.amounts, request.containers);
  }
  const Triggers triggers = FindTriggers(text);
  request.style = triggers.style();
  if (request.style == RequestStyle::kNone) return;
  request.refusal = ReadAsks(text, triggers, request);
  if (request.refusal) {
    request.asks.clear();
  } else if (request.asks.empty()) {
    request.style = RequestStyle::kNone;  // amounts beside a count of zero
  }
}

// Styles that divide a card without an agent. Where the kubelet is asked for a GPU, its plugin says
// what is seen.
void ReadFollowing(Object spec, PodRequest& request) {
  const bool style = request.style == RequestStyle::kTranche || request.style == RequestStyle::kKai;
  if (!style || request.asks.size() != 1 || request.asks[0].resource != Resource::kShare) return;
  const auto index = static_cast<std::size_t>(request.asks[0].container);
  const ContainerInfo& info = request.containers[index];
  if (info.plugin_count > 0) return;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const std::optional<Array> containers = FindArray(spec, list);
    if (!containers) continue;
    for (const Element element : *containers) {
      Object container;
      if (element.get(container) != simdjson::SUCCESS) continue;
      if (FindText(container, "name").value_or("") != info.name) continue;
      request.follows_placeholder = SeesWrittenDevices(container);
    }
  }
}

// A pod that holds what we gave it, and no longer says that it wants any.
void NoteTakenBack(PodRequest& request) {
  if (request.style != RequestStyle::kNone) return;
  request.style = RequestStyle::kTranche;
  request.refusal = Refusal{Reason::kBadAmount,
                            "expected the wishes the pod was bound with, found none, beside "
                            "annotation tranche.dev/allocation"};
}

// What an agent or we wrote on the pod. A pod without a node has no devices yet, so what stands
// there is a copy or a forgery (hazards row 57).
void ReadAllocation(const PodAnnotations& annotations, const AgentText& agent, PodFacts& pod) {
  const std::optional<std::string_view> ours = annotations.Get(PodKey::kAllocation);
  if (pod.node.empty()) {
    if (ours) pod.allocation_problem = "expected no record on a pod without a node, found one";
    return;
  }
  absl::Status problem;
  std::string_view where;
  absl::StatusOr<Allocation> allocation;
  if (ours) allocation = DecodeAllocation(*ours);
  // So we wrote over what a user had written on a pod that asks for nothing.
  const bool nothing = ours && allocation.ok() && allocation->containers.empty() &&
                       pod.request.style == RequestStyle::kNone;
  if (ours && !nothing) {
    problem = allocation.status();
    where = ", in annotation tranche.dev/allocation";
    if (allocation.ok()) pod.allocation = *std::move(allocation);
    NoteTakenBack(pod.request);
  }
  if (!agent.empty()) {
    pod.progress = agent.Progress(pod.request);
    absl::StatusOr<std::optional<Allocation>> devices = agent.Devices(pod.request, pod.node);
    if (pod.allocation) {
      const bool differs = devices.ok() && *devices && !NamesNoOther(*pod.allocation, **devices);
      if (differs) pod.disputed = **std::move(devices);
    } else if (where.empty()) {
      problem = devices.status();
      if (devices.ok()) pod.allocation = *std::move(devices);
    }
  }
  if (pod.allocation) {
    for (const ContainerDevices& container : pod.allocation->containers) {
      // It has a card that a placeholder holds, whatever it asks now.
      pod.request.follows_placeholder |= std::ranges::any_of(container.devices, &Device::slot);
    }
  }
  if (problem.ok()) return;
  const absl::string_view why = problem.message();
  pod.allocation_problem = fmt::format("{}{}", std::string_view(why.data(), why.size()), where);
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
  GangText gang;
  AgentText agent;
  ReadMetadata(*metadata, reader, facts, text.annotations, gang, agent);
  const std::optional<Object> spec = reader.ReadObject(*object, "spec", "pod");
  if (spec) ReadSpec(*spec, reader, facts, text);
  if (spec) gang.SetSpec(*spec, reader);
  const std::optional<Object> status = reader.ReadObject(*object, "status", "pod");
  if (status) ReadStatus(*status, reader, facts);
  if (!reader.ok()) return reader.status();
  gang.Read(facts.request);
  ReadRequest(text, facts.request);
  if (spec) ReadFollowing(*spec, facts.request);
  if (facts.request.name.ns == kPlaceholderNamespace) facts.placeholder = ReadPlaceholder(*object);
  ReadAllocation(text.annotations, agent, facts);
  if (detail == PodDetail::kAll || (spec && FindArray(*spec, "resourceClaims"))) {
    TRANCHE_ASSIGN_OR_RETURN(dra::PodClaims claims, DecodePodClaims(pod));
    if (!claims.empty()) {
      facts.claims = std::make_shared<const dra::PodClaims>(std::move(claims));
    }
  }
  if (!facts.request.asks_gpu()) {
    // Its gang counts it. What is wrong with its annotations matters to nobody.
    static_cast<void>(ReadGang(text.annotations, facts.request));
    if (!facts.claims) return facts;
  }
  if (spec) {
    ReadOwnLimits(*spec, facts.request);
    facts.request.constraints = ReadConstraints(*spec, reader);
    facts.request.judged_elsewhere = IsJudgedElsewhere(*spec, reader);
  }
  if (detail == PodDetail::kAll) {
    if (status) ReadUnschedulable(*status, reader, facts);
    ReadEvictionFacts(*metadata, spec, text.annotations, reader, facts);
  }
  if (!reader.ok()) return reader.status();
  return facts;
}

}  // namespace tranche::wire
