#include "scheduler/api/api_json.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "quota/tree/charge.h"
#include "scheduler/api/asks_json.h"
#include "scheduler/api/json_members.h"
#include "scheduler/api/links_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/controllers/scaling/provisioning_plan.h"

namespace tranche {
namespace {

void AppendMig(std::string& out, const MigView& mig) {
  out += '{';
  AppendMember(out, "profile", mig.profile);
  AppendMember(out, "start", mig.start);
  AppendMember(out, "size", mig.size);
  AppendTextOrNull(out, "pod", mig.pods.empty() ? std::string_view() : mig.pods.front());
  // Instances shared by replicas can hold several.
  AppendList(out, "pods", mig.pods,
             [](std::string& text, const std::string& pod) { AppendQuoted(text, pod); });
  out += '}';
}

std::optional<int64_t> Percent(std::optional<int64_t> permille) {
  return permille ? std::optional((*permille + 9) / 10) : std::nullopt;
}

// "reading": null where nothing was measured.
void AppendReading(std::string& out, const CardReading* reading, Instant at) {
  if (reading == nullptr) return AppendNull(out, "reading");
  AppendKey(out, "reading");
  out += '{';
  AppendMember(out, "percent", Percent(reading->permille));
  AppendMember(out, "memoryMiB", reading->memory);
  AppendMember(out, "celsius", reading->celsius);
  AppendMember(out, "watts", reading->watts);
  AppendMember(out, "measuredAt", wire::FormatTime(at));
  out += '}';
}

// What is told of a node's GPUs beside what the engine knows.
struct NodeReadings {
  const CardReadings* readings = nullptr;  // null: nobody measures them
  Instant now;
};

// `measured` null: not asked for.
void AppendGpu(std::string& out, const GpuView& gpu, const NodeReadings* measured) {
  out += '{';
  AppendMember(out, "index", gpu.index);
  AppendTextOrNull(out, "uuid", gpu.uuid.str());
  AppendMember(out, "memoryMiB", gpu.memory.count());
  AppendMember(out, "freeMilli", gpu.free_milli.count());
  AppendMember(out, "freeMiB", gpu.free_memory.count());
  AppendFlag(out, "healthy", gpu.healthy);
  AppendMember(out, "numa", gpu.numa);
  if (gpu.is_mig) {
    AppendList(out, "mig", gpu.mig, AppendMig);
  } else {
    AppendNull(out, "mig");
  }
  AppendMember(out, "replicas", gpu.replicas);
  AppendTextOrNull(out, "enforcedBy", gpu.enforced_by);
  AppendList(out, "pods", gpu.pods, [](std::string& text, const GpuPodView& pod) {
    text += '{';
    AppendMember(text, "pod", pod.pod.str());
    AppendMember(text, "uid", pod.uid.str());
    AppendMember(text, "milli", pod.milli.count());
    AppendMember(text, "mib", pod.memory.count());
    text += '}';
  });
  if (measured != nullptr) {
    const CardReadings* const readings = measured->readings;
    const CardReading* const own =
        readings == nullptr ? nullptr : readings->Find(gpu.uuid, measured->now);
    AppendReading(out, own, readings == nullptr ? Instant() : readings->at);
  }
  out += '}';
}

// `place` and `measured` null: not asked for.
void AppendNode(std::string& out, const NodeView& node, const NodePlace* place, LinksJson& links,
                const NodeReadings* measured = nullptr) {
  out += '{';
  AppendMember(out, "name", node.name.str());
  AppendMember(out, "model", node.model);
  if (place != nullptr) {
    AppendTextOrNull(out, "nvlinkDomain", place->nvlink_domain);
    AppendTextOrNull(out, "rack", place->rack);
    AppendTextOrNull(out, "zone", place->zone);
    AppendTextOrNull(out, "pool", node.traits.pool);
    AppendTextOrNull(out, "capacity",
                     node.traits.capacity ? CapacityTypeName(*node.traits.capacity) : "");
    AppendTextOrNull(out, "pricePerHour",
                     place->micros_per_hour ? FormatMicros(*place->micros_per_hour) : "");
    AppendTextOrNull(out, "currency", place->currency);
  }
  AppendFlag(out, "ready", node.ready);
  AppendReason(out, "closed", node.closed, node.closed_detail, SaidOf::kNode);
  AppendMember(out, "knowledge", KnowledgeName(node.knowledge));
  links.Append(out, node);
  AppendList(out, "gpus", node.gpus,
             [measured](std::string& text, const GpuView& gpu) { AppendGpu(text, gpu, measured); });
  AppendList(out, "problems", node.problems,
             [](std::string& text, const std::string& problem) { AppendQuoted(text, problem); });
  out += '}';
}

// "devices":[...], flat over the containers.
void AppendDevices(std::string& out, const std::optional<Allocation>& allocation) {
  AppendKey(out, "devices");
  out += '[';
  bool first = true;
  if (allocation) {
    const bool known = allocation->knowledge != Knowledge::kCounts;
    for (const ContainerDevices& container : allocation->containers) {
      for (const Device& device : container.devices) {
        out += first ? "{" : ",{";
        first = false;
        AppendMember(out, "container", container.container);
        AppendMember(out, "index",
                     known && !device.slot ? std::optional<int>(device.card) : std::nullopt);
        AppendTextOrNull(out, "uuid", known ? device.uuid.str() : std::string_view());
        AppendMember(out, "milli", device.milli.count());
        AppendMember(out, "mib", device.memory.count());
        AppendTextOrNull(out, "migProfile",
                         device.mig ? std::string_view(device.mig->profile) : std::string_view());
        AppendMember(out, "migStart",
                     device.mig ? std::optional<int>(device.mig->start) : std::nullopt);
        out += '}';
      }
    }
  }
  out += ']';
}

std::string_view StateName(PodState state) {
  switch (state) {
    case PodState::kPending:
      return "pending";
    case PodState::kClaimed:
      return "claimed";
    case PodState::kReserved:
      return "reserved";
    case PodState::kBound:
      return "bound";
  }
  TRANCHE_CHECK(false);
}

// The members of a pod's entry, without the braces.
void AppendPodMembers(std::string& out, const PodView& pod) {
  AppendMember(out, "namespace", pod.name.ns);
  AppendMember(out, "name", pod.name.name);
  AppendMember(out, "uid", pod.uid.str());
  AppendMember(out, "state", StateName(pod.state));
  AppendTextOrNull(out, "node", pod.node.str());
  AppendTextOrNull(out, "gang", pod.gang);
  AppendTextOrNull(out, "leaf", pod.leaf);
  AppendTextOrNull(out, "class", pod.workload_class);
  AppendTextOrNull(out, "priorityClass", pod.priority_class);
  AppendTextOrNull(out, "quotaState",
                   pod.quota_state ? QuotaStateName(*pod.quota_state) : std::string_view());
  AppendDevices(out, pod.allocation);
  if (pod.allocation) {
    AppendMember(out, "epoch", pod.allocation->epoch);
    AppendMember(out, "knowledge", KnowledgeName(pod.allocation->knowledge));
  } else {
    AppendNull(out, "epoch");
    AppendNull(out, "knowledge");
  }
  AppendFlag(out, "devicesUnknown", pod.devices_unknown);
  AppendAsks(out, pod.request.get());
  AppendTimeOrNull(out, "waitsSince", pod.waits_since);
  AppendReason(out, "reason", pod.reason, pod.detail, SaidOf::kPod, pod.eligible_at);
  // What a quota in mode Observe would have said.
  AppendTextOrNull(
      out, "observed",
      pod.observed == Reason::kNone ? std::string_view() : Describe(pod.observed).code);
}

// What the GPUs of a pod that runs did, where somebody tells.
void AppendUse(std::string& out, const PodView& pod, UseShown shown) {
  if (!pod.use || (shown == UseShown::kOfIdle && !pod.use->idle_since)) return;
  constexpr int kPerPercent = 10;
  AppendKey(out, "use");
  out += '{';
  if (shown == UseShown::kAll) {
    AppendMember(out, "percent", (pod.use->permille + kPerPercent - 1) / kPerPercent);
    AppendTimeOrNull(out, "measuredAt", pod.use->measured);
  }
  AppendTimeOrNull(out, "idleSince", pod.use->idle_since);
  out += '}';
}

// When a pod that waits is expected to start, where that was foretold.
void AppendForecast(std::string& out, const PodView& pod, const Forecasts* forecasts) {
  const bool waits = pod.state == PodState::kPending || pod.state == PodState::kClaimed;
  if (forecasts == nullptr || !waits) return;
  const auto found = forecasts->pods.find(pod.name);
  if (found == forecasts->pods.end() || found->second.uid != pod.uid) return;
  AppendKey(out, "forecast");
  out += EncodeForecast(found->second);
}

void AppendRightSize(std::string& out, const PodNotes& notes) {
  if (notes.right_size == nullptr) return;
  AppendKey(out, "rightSize");
  out += EncodeRightSize(*notes.right_size);
}

void AppendProvisioning(std::string& out, const PodNotes& notes) {
  if (!notes.provisioning) return;
  const ProvisioningFound& found = *notes.provisioning;
  AppendKey(out, "provisioning");
  out += '{';
  AppendMember(out, "request", found.name.name);
  AppendMember(out, "state", std::string_view(NameOf(found.state)));
  AppendTimeOrNull(out, "since", found.since);
  AppendMember(out, "text", SaidOf(found));
  out += '}';
}

std::string_view StateName(GangView::State state) {
  switch (state) {
    case GangView::State::kGathering:
      return "gathering";
    case GangView::State::kWaiting:
      return "waiting";
    case GangView::State::kSeated:
      return "seated";
    case GangView::State::kRunning:
      return "running";
    case GangView::State::kLeaving:
      return "leaving";
  }
  TRANCHE_CHECK(false);
}

void AppendGang(std::string& out, const GangView& gang) {
  out += '{';
  AppendMember(out, "namespace", gang.name.ns);
  AppendMember(out, "name", gang.name.name);
  AppendMember(out, "state", StateName(gang.state));
  AppendTextOrNull(out, "leaf", gang.leaf);
  AppendMember(out, "size", gang.size > 0 ? std::optional<int>(gang.size) : std::nullopt);
  AppendMember(out, "bound", gang.bound);
  AppendMember(out, "binding", gang.binding);
  AppendMember(out, "waiting", gang.waiting);
  AppendMember(out, "gated", gang.gated);
  AppendMember(out, "withoutGpus", gang.plain);
  AppendList(out, "nodes", gang.nodes,
             [](std::string& text, const NodeName& node) { AppendQuoted(text, node.str()); });
  AppendTimeOrNull(out, "waitsSince", gang.waits_since);
  AppendTextOrNull(out, "text", gang.detail);
  out += '}';
}

void AppendVerdict(std::string& out, const NodeVerdict& verdict) {
  out += '{';
  AppendMember(out, "name", verdict.node.str());
  AppendFlag(out, "fits", verdict.fits);
  AppendMember(out, "rank", verdict.rank < 0 ? std::nullopt : std::optional<int>(verdict.rank));
  AppendReason(out, "reason", verdict.reason, verdict.detail, SaidOf::kNode);
  AppendMember(out, "detail", verdict.detail);
  out += '}';
}

void AppendClaim(std::string& out, const ResourceClaimView& claim) {
  int64_t quanta = 0;
  for (const ModelCharge& part : claim.charge) quanta += GpuEquivalents(part.charge);
  const auto append_text = [](std::string& text, const std::string& item) {
    wire::AppendQuoted(text, item);
  };
  std::vector<std::string> pods;
  for (const PodName& pod : claim.pods) pods.push_back(pod.str());
  out += '{';
  AppendMember(out, "name", claim.name);
  AppendFlag(out, "allocated", claim.allocated);
  AppendTextOrNull(out, "node", claim.node.str());
  AppendList(out, "devices", claim.devices, append_text);
  const int64_t milli = MilliGpuRoundedUp(quanta).count();
  AppendMember(out, "gpus", fmt::format("{}.{:03}", milli / 1000, milli % 1000));
  AppendList(out, "pods", pods, append_text);
  AppendList(out, "sharing", claim.sharing, append_text);
  out += '}';
}

void AppendWhatIf(std::string& out, const WhatIfResult& result) {
  out += '{';
  AppendMember(out, "namespace", result.name.ns);
  AppendMember(out, "name", result.name.name);
  AppendFlag(out, "fits", result.fits);
  AppendTextOrNull(out, "node", result.node.str());
  AppendDevices(out, result.allocation);
  const wire::Json evictions = EvictionsJson(result);
  for (const auto& [key, value] : evictions.items()) {
    AppendKey(out, key);
    out += wire::Dump(value);
  }
  AppendReason(out, "reason", result.reason, result.detail, SaidOf::kPod);
  out += '}';
}

// {"key":[...]} with room for about `item_bytes` each.
template <typename Items, typename Append>
std::string Document(std::string_view key, const Items& items, std::size_t item_bytes,
                     Append append) {
  std::string out;
  out.reserve(items.size() * item_bytes + 64);
  out += '{';
  AppendList(out, key, items, append);
  out += '}';
  return out;
}

// {"key":[...] of entries as they are, and room for the rest.
std::string WithEntries(std::string_view key, std::span<const std::string_view> entries) {
  std::size_t size = 256;
  for (const std::string_view entry : entries) size += entry.size() + 1;
  std::string out;
  out.reserve(size);
  out += '{';
  AppendList(out, key, entries, [](std::string& text, std::string_view entry) { text += entry; });
  return out;
}

}  // namespace

std::string EncodeNodes(std::span<const NodeView> nodes) {
  LinksJson links;
  return Document("nodes", nodes, 2048, [&links](std::string& out, const NodeView& node) {
    AppendNode(out, node, nullptr, links);
  });
}

std::vector<std::string> EncodeEach(std::span<const NodeView> nodes,
                                    std::span<const NodePlace> places) {
  LinksJson links;
  std::vector<std::string> entries(nodes.size());
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    AppendNode(entries[at], nodes[at], &places[at], links);
  }
  return entries;
}

std::string EncodeNodes(std::span<const std::string_view> entries, const NodeListNotes& notes) {
  std::string out = WithEntries("nodes", entries);
  if (!notes.complete) {
    AppendList(out, "gone", notes.gone, [](std::string& text, const NodeName& name) {
      wire::AppendQuoted(text, name.str());
    });
  }
  AppendMember(out, "version", notes.version);
  AppendFlag(out, "complete", notes.complete);
  out += '}';
  return out;
}

std::string EncodePods(std::span<const PodView> pods, std::optional<std::size_t> total,
                       const Forecasts* forecasts) {
  const auto append = [forecasts](std::string& text, const PodView& pod) {
    text += '{';
    AppendPodMembers(text, pod);
    AppendUse(text, pod, UseShown::kOfIdle);
    AppendForecast(text, pod, forecasts);
    text += '}';
  };
  std::string out = Document("pods", pods, 512, append);
  if (total) {
    out.pop_back();
    AppendMember(out, "total", static_cast<int64_t>(*total));
    out += '}';
  }
  return out;
}

std::string EncodePods(std::span<const std::string_view> entries, const PodListNotes& notes) {
  std::string out = WithEntries("pods", entries);
  if (!notes.complete) {
    AppendList(out, "gone", notes.gone, [](std::string& text, const PodKey& key) {
      text += '{';
      AppendMember(text, "namespace", key.name.ns);
      AppendMember(text, "name", key.name.name);
      AppendMember(text, "uid", key.uid.str());
      text += '}';
    });
  }
  if (notes.total) AppendMember(out, "total", static_cast<int64_t>(*notes.total));
  AppendMember(out, "version", notes.version);
  AppendFlag(out, "complete", notes.complete);
  out += '}';
  return out;
}

std::string EncodeNode(const NodeView& node, const NodePlace& place, const CardReadings* readings,
                       Instant now) {
  LinksJson links;
  std::string out;
  const NodeReadings measured{readings, now};
  AppendNode(out, node, &place, links, &measured);
  return out;
}

std::string EncodePod(const PodView& pod, const PodNotes& notes, UseShown use) {
  std::string out = "{";
  AppendPodMembers(out, pod);
  AppendUse(out, pod, use);
  AppendForecast(out, pod, notes.forecasts);
  AppendRightSize(out, notes);
  AppendProvisioning(out, notes);
  out += '}';
  return out;
}

std::string EncodeGang(const GangView& gang) {
  std::string out;
  AppendGang(out, gang);
  return out;
}

std::string EncodeGangs(std::span<const GangView> gangs) {
  return Document("gangs", gangs, 300, AppendGang);
}

std::string EncodeEvents(const RecentEvents::Answer& answer) {
  std::string out = "{";
  out.reserve(answer.events.size() * 200 + 64);
  AppendList(out, "events", answer.events, [](std::string& text, const RecentEvent& event) {
    text += '{';
    AppendMember(text, "id", static_cast<int64_t>(event.id));
    AppendTimeOrNull(text, "at", event.at);
    AppendMember(text, "kind", RecentKindName(event.kind));
    AppendTextOrNull(text, "namespace", event.pod.ns);
    AppendTextOrNull(text, "name", event.pod.name);
    AppendTextOrNull(text, "node", event.node.str());
    AppendTextOrNull(text, "leaf", event.leaf);
    AppendMember(text, "text", event.text);
    text += '}';
  });
  AppendMember(out, "newest", static_cast<int64_t>(answer.newest));
  AppendFlag(out, "forgotten", answer.forgotten);
  out += '}';
  return out;
}

std::string EncodeForecast(const Forecast& forecast) {
  std::string out = "{";
  AppendTimeOrNull(out, "earliest", forecast.earliest);
  AppendTimeOrNull(out, "p10", forecast.p10);
  AppendTimeOrNull(out, "p50", forecast.p50);
  AppendTimeOrNull(out, "p90", forecast.p90);
  AppendMember(out, "because", forecast.because);
  return out + "}";
}

std::string EncodeExplanation(const Explanation& explanation, const PodNotes& notes) {
  std::string out;
  out.reserve(explanation.nodes.size() * 192 + 1024);
  out += '{';
  AppendPodMembers(out, explanation.pod);
  AppendUse(out, explanation.pod, UseShown::kAll);
  AppendKey(out, "plan");
  out += wire::Dump(PlanJson(explanation));
  AppendList(out, "nodes", explanation.nodes, AppendVerdict);
  AppendList(out, "claims", explanation.claims, AppendClaim);
  AppendMember(out, "advice", explanation.advice);
  if (!explanation.pod.scheduler_says.empty())
    AppendMember(out, "schedulerSays", explanation.pod.scheduler_says);
  if (!explanation.pod.own_limits.empty()) {
    AppendList(
        out, "ownLimits", explanation.pod.own_limits,
        [](std::string& text, const std::string& sentence) { wire::AppendQuoted(text, sentence); });
  }
  AppendForecast(out, explanation.pod, notes.forecasts);
  AppendRightSize(out, notes);
  AppendProvisioning(out, notes);
  out += '}';
  return out;
}

std::string EncodeWhatIf(std::span<const WhatIfResult> results) {
  return Document("pods", results, 512, AppendWhatIf);
}

}  // namespace tranche
