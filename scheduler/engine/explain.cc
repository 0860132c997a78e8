// Why: the verdict of every node in words.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/eligibility.h"
#include "topology/gpu_model.h"

namespace tranche {
namespace {

std::string DescribeMemory(const MemoryNeed& need) {
  switch (need.kind) {
    case MemoryNeed::Kind::kNone:
      return "no memory";
    case MemoryNeed::Kind::kWholeCard:
      return "all memory";
    case MemoryNeed::Kind::kMib:
      return fmt::format("{} MiB", need.value);
    case MemoryNeed::Kind::kMilliOfCard:
      return fmt::format("{}/1000 of the memory", need.value);
    case MemoryNeed::Kind::kPercentOfCard:
      return fmt::format("{} % of the memory", need.value);
    case MemoryNeed::Kind::kAgentUnits:
      return fmt::format("{} units of memory", need.value);
  }
  return "";
}

std::string DescribeAsk(const Ask& ask) {
  switch (ask.resource) {
    case Resource::kGpu:
      return fmt::format("{} GPU", ask.count);
    case Resource::kGpuShared:
      return fmt::format("{} shared GPU", ask.count);
    case Resource::kMig:
      return fmt::format("{} x {}{}", ask.count, ask.mig.profile, ask.mig.shared ? " shared" : "");
    case Resource::kShare:
      return fmt::format("{} GPU with {} milli and {}{}", ask.count, ask.compute.count(),
                         DescribeMemory(ask.memory), ask.exclusive ? ", alone" : "");
  }
  return "";
}

std::string Join(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
  return joined;
}

// What is free on the node of the kind the pod asks for.
std::string DescribeFree(const NodeEntry& entry, const PodRequest& request) {
  const Inventory& inventory = entry.state.inventory();
  const Load& load = entry.state.hard();
  std::string found;
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = inventory.FindKey(need.key);
    if (key == nullptr) continue;
    const int64_t used = load.keys[static_cast<std::size_t>(key - inventory.keys.data())];
    found += fmt::format("{}{}: {} of {} in use", found.empty() ? "" : "; ", need.key, used,
                         key->allocatable);
  }
  int64_t idle = 0;
  MilliGpu most_milli = MilliGpu::Zero();
  Mebibytes most_memory = Mebibytes::Zero();
  int64_t cards = 0;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const Card& card = inventory.cards[i];
    if (card.mode == CardMode::kMig || !card.healthy || card.cordoned) continue;
    ++cards;
    idle += load.cards[i].slots == 0;
    most_milli = std::max(most_milli, card.capacity - load.cards[i].milli);
    most_memory = std::max(most_memory, card.memory - load.cards[i].memory);
  }
  if (cards > 0) {
    found += fmt::format("{}{} of {} cards idle, most free on one card {} milli and {} MiB",
                         found.empty() ? "" : "; ", idle, cards, most_milli.count(),
                         most_memory.count());
  }
  return found;
}

}  // namespace

std::string AdviceFor(Reason reason) {
  switch (reason) {
    case Reason::kMixedDialects:
      return "ask in one style only";
    case Reason::kBadAmount:
    case Reason::kUnknownProfile:
      return "correct the amount and create the pod again";
    case Reason::kDialectOff:
      return "ask an administrator to allow this style, or use another";
    case Reason::kNoAgent:
      return "share on nodes with an agent (HAMi, MPS), or allow unenforced sharing by policy";
    case Reason::kWrongModel:
      return "allow more GPU models";
    case Reason::kTooManyPerNode:
      return "ask for fewer GPUs per pod, or add larger nodes";
    case Reason::kTooLarge:
      return "ask for less memory per GPU, or add GPUs with more";
    case Reason::kNoRoom:
    case Reason::kNumaMismatch:
      return "a pod of this kind must end, or a node be added";
    case Reason::kBrokenSet:
      return "pods that hold GPUs of a connected set must end, a node be added, or "
             "tranche.dev/topology be preferred instead of required";
    case Reason::kNoSuchSet:
      return "ask for fewer GPUs, for nodes whose GPUs are connected, or say tranche.dev/topology: "
             "preferred";
    case Reason::kTopologyUnknown:
      return "an administrator must have the nodes tell how their GPUs are connected (tranche "
             "probe, or the annotation tranche.dev/topology)";
    case Reason::kGangIncomplete:
      return "the other pods of the gang must be created, and carry no scheduling gate";
    case Reason::kGangNoRoom:
      return "pods must end until the whole gang fits, or nodes be added";
    case Reason::kHeldForGang:
      return "declare a tranche.dev/expected-runtime that ends before the gang starts, or wait";
    case Reason::kNoLeaf:
      return "ask an administrator for a GPUQuota that owns the namespace";
    case Reason::kLeafConflict:
      return "an administrator must make the GPUQuotas' namespaceSelectors not overlap";
    case Reason::kLedgerClosed:
      return "an administrator must restore the ledger; see the server's log";
    case Reason::kBudgetExhausted:
      return "wait for the moment shown, declare a shorter tranche.dev/expected-runtime, or ask "
             "for a larger GPUBudget";
    case Reason::kExceedsMaxQuota:
      return "ask for fewer GPUs, or for a larger GPUQuota";
    case Reason::kBorrowLimit:
      return "work of the team must end, or its borrowLimit be raised";
    case Reason::kLenderLimit:
      return "work of the team must end, or a lendLimit be raised";
    case Reason::kWaitingForQuota:
      return "work of the team, or of those who borrow, must end";
    case Reason::kNamespaceQuota:
      return "work of the namespace must end, or its ResourceQuota be raised";
    case Reason::kPreemptionInProgress:
      return "the pods that make room leave within their grace period";
    case Reason::kYieldingTo:
      return "the workload named comes first and is placed in a moment";
    case Reason::kSharingMode:
      return "use a priority class whose GPUClass allows this sharing, or ask for devices of "
             "another kind";
    case Reason::kNodeNotReady:
    case Reason::kNodeCordoned:
    case Reason::kOperatorBusy:
    case Reason::kNodeUnstable:
    case Reason::kNodeRefusing:
    case Reason::kDevicesUnknown:
      return "the nodes must become usable again; see their state";
    default:
      return "";
  }
}

std::string DescribeRequest(const PodRequest& request) {
  std::string text;
  for (const Ask& ask : request.asks) text += (text.empty() ? "" : " + ") + DescribeAsk(ask);
  return text;
}

namespace {

// Which link stands in the way.
std::string DescribeLinks(const NodeEntry& entry, const PodRequest& request,
                          const GpuPolicy& policy) {
  const Inventory& inventory = entry.state.inventory();
  const PlaceRules rules{&policy, request.card_choice};
  CardQuestion question = Placer::CardQuestionOf(inventory, entry.state.hard(), request, rules);
  std::string links = DescribeBrokenSet(inventory, request, policy, question);
  return links.empty() ? links : "; " + links;
}

}  // namespace

std::string DescribeMisfit(const NodeEntry& entry, const PodRequest& request,
                           const GpuPolicy& policy, Reason reason, Instant now) {
  const std::string asks = "asks " + DescribeRequest(request);
  const Inventory& inventory = entry.state.inventory();
  switch (reason) {
    case Reason::kWrongModel:
      return fmt::format("asks model {}{}{}; the node has {}", Join(request.models_any),
                         request.models_none.empty() ? "" : " not ", Join(request.models_none),
                         inventory.product);
    case Reason::kWrongDevice:
      return fmt::format("asks uuid {}{}{}, mode '{}'; the node has other GPUs",
                         Join(request.uuids_any), request.uuids_none.empty() ? "" : " not ",
                         Join(request.uuids_none), request.vgpu_mode);
    case Reason::kTooManyPerNode:
      return fmt::format("{}; the node has {} cards{}", asks, inventory.cards.size(),
                         inventory.sharing == SharingMethod::kMps
                             ? ", and MPS gives a container one replica"
                             : "");
    case Reason::kTooLarge: {
      Mebibytes largest = Mebibytes::Zero();
      for (const Card& card : inventory.cards) largest = std::max(largest, card.memory);
      return fmt::format("{}, at least {} MiB a card; the largest card has {} MiB", asks,
                         request.min_gpu_memory.count(), largest.count());
    }
    case Reason::kNodeUnstable:
      return fmt::format("usable in {} s",
                         std::chrono::ceil<std::chrono::seconds>(*entry.stable_at - now).count());
    case Reason::kNodeRefusing:
      return fmt::format(
          "tried again in {} s",
          std::chrono::ceil<std::chrono::seconds>(*entry.refusing_until - now).count());
    case Reason::kOperatorBusy:
      return entry.state.facts().operator_busy;
    case Reason::kNoGpu:
    case Reason::kNoAgent:
    case Reason::kUnhealthy:
    case Reason::kNumaMismatch:
    case Reason::kNoRoom:
      return fmt::format("{}; {}", asks, DescribeFree(entry, request));
    case Reason::kBrokenSet:
    case Reason::kNoSuchSet:
      return fmt::format("{}; {}{}", asks, DescribeFree(entry, request),
                         DescribeLinks(entry, request, policy));
    case Reason::kTopologyUnknown:
      return fmt::format("{}; what is known of the links comes from: {}", asks,
                         MachineSourceName(inventory.links));
    default:
      return "";
  }
}

std::string Engine::Impl::DescribeSharing(const Question& question, const NodeEntry& entry) const {
  const Inventory& inventory = entry.state.inventory();
  for (const Ask& ask : question.request->asks) {
    for (const Card& card : inventory.cards) {
      const bool instance = PoolFor(inventory, ask) >= 0;
      if (!instance && !IsRightKind(inventory, ask, card)) continue;
      const SharingMode mode = ModeOf(inventory, ask, card);
      const auto at = std::ranges::find(*question.sharing, mode);
      if (at == question.sharing->end()) continue;
      return fmt::format("shared as {}, choice {} of {} of class {}", SharingModeName(mode),
                         at - question.sharing->begin() + 1, question.sharing->size(),
                         question.standing.gpu_class->name);
    }
  }
  return "";
}

std::optional<Explanation> Engine::Explain(const PodName& pod, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  // The newest of several pods of one name has the record that is not terminal.
  const PodRecord* record = nullptr;
  PodUid uid;
  for (auto at = impl.pods_by_name.lower_bound({pod, PodUid()});
       at != impl.pods_by_name.end() && at->first == pod; ++at) {
    const PodRecord& found = impl.pods.at(at->second);
    if (record != nullptr && found.terminal) continue;
    record = &found;
    uid = at->second;
  }
  if (record == nullptr) return DraDesk(impl).Explain(pod, now);
  Explanation explanation;
  explanation.pod = impl.ViewPod(uid, *record);
  const PodRequest request = *record->request;
  const Impl::Lift lift(impl, uid, now);
  const Question question = impl.QuestionOf(request);
  const Reason whole = question.whole;
  impl.ForgetKindAnswers();
  const bool pending = impl.IsPending(*record);
  std::vector<NodeId> ids;
  for (const NodeId id : impl.names.ascending()) {
    if (impl.nodes[id] != nullptr && impl.nodes[id]->state.present()) ids.push_back(id);
  }
  for (const NodeId id : ids) {
    NodeVerdict verdict;
    verdict.node = impl.names.name(id);
    verdict.reason = whole != Reason::kNone ? whole : impl.hot[id].closed;
    if (whole != Reason::kNone && request.refusal) verdict.detail = request.refusal->detail;
    const NodeEntry& entry = *impl.nodes[id];
    if (verdict.reason == Reason::kNone) {
      // Judged as if the pod itself held nothing, so that a placed pod's own node fits too.
      const Load load =
          entry.state.LoadWithout([&uid](const PodUid& other) { return other == uid; });
      Worth worth;
      verdict.reason = impl.scorer.Evaluate(RoomOf(entry.state, load), request, *question.policy,
                                            impl.picks, worth, question.sharing);
      const bool suits = verdict.reason == Reason::kNone || verdict.reason == Reason::kNoRoom ||
                         verdict.reason == Reason::kNumaMismatch ||
                         verdict.reason == Reason::kBrokenSet;
      if (suits && pending && question.metered && question.standing.mode != QuotaMode::kObserve) {
        const Reason quota = impl.AskQuota(question, id, now).reason;
        if (quota != Reason::kNone) verdict.reason = quota;
      }
      if (suits && pending && impl.CapsRefuse(question, id)) {
        verdict.reason = Reason::kNamespaceQuota;
      }
      if (verdict.reason == Reason::kNone && question.sharing != nullptr) {
        verdict.detail = impl.DescribeSharing(question, entry);
      }
    }
    verdict.fits = verdict.reason == Reason::kNone;
    if (!verdict.fits && pending && impl.AwaitedNode(uid) == id) {
      verdict.reason = Reason::kPreemptionInProgress;
    }
    const bool by_quota =
        verdict.reason >= Reason::kNoLeaf && verdict.reason <= Reason::kNamespaceQuota;
    if (!verdict.fits && whole == Reason::kNone && !by_quota) {
      verdict.detail = DescribeMisfit(entry, request, *question.policy, verdict.reason, now);
    }
    if (verdict.reason == Reason::kNamespaceQuota) verdict.detail = impl.DescribeCaps(request, id);
    explanation.nodes.push_back(std::move(verdict));
  }
  if (whole == Reason::kNone) {
    impl.Select(question, ids, ids.size(), now, nullptr);
    for (std::size_t i = 0; i < impl.best.size(); ++i) {
      explanation.nodes[impl.best[i].position].rank = static_cast<int>(i);
    }
  }
  if (explanation.pod.state == PodState::kPending) {
    Reason reason = whole;
    if (reason == Reason::kNone && impl.best.empty()) {
      reason = impl.NearestReason();
    }
    // It may fit by itself, and waits for others.
    if (whole == Reason::kNone && record->last_reason >= Reason::kGangIncomplete &&
        record->last_reason <= Reason::kGangNoRoom) {
      reason = record->last_reason;
    }
    if (impl.AwaitedNode(uid) != kNoNode) reason = Reason::kPreemptionInProgress;
    explanation.advice = AdviceFor(reason);
  }
  if (const std::optional<int64_t> ahead = impl.agents.Ahead(uid)) {
    explanation.advice = fmt::format("the agent of {} serves one pod at a time, {} before this one",
                                     record->reserved.str(), *ahead);
  }
  impl.ExplainReclaim(uid, explanation);
  return explanation;
}

}  // namespace tranche
