#include "scheduler/engine/views/explain_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/prices.h"
#include "scheduler/index/agent_cards.h"
#include "scheduler/index/card_sets.h"
#include "scheduler/index/eligibility.h"
#include "scheduler/index/placement.h"

namespace tranche {
namespace {

// "0.5" of 500 thousandths.
std::string Decimals(int64_t milli) { return FormatMicros(milli * 1000); }

// The memory of a card that a share is to have; empty: nobody says.
std::string DescribeMemory(const MemoryNeed& need) {
  switch (need.kind) {
    case MemoryNeed::Kind::kNone:
      return "";
    case MemoryNeed::Kind::kWholeCard:
      return "all memory";
    case MemoryNeed::Kind::kMib:
      return fmt::format("{} MiB", need.value);
    case MemoryNeed::Kind::kMilliOfCard:
      return fmt::format("{} of the memory", Decimals(need.value));
    case MemoryNeed::Kind::kPercentOfCard:
      return fmt::format("{} % of the memory", need.value);
    case MemoryNeed::Kind::kAgentUnits:
      return fmt::format("{} units of memory", need.value);
  }
  return "";
}

std::string Counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "0.5 GPU with 8192 MiB", "2 parts of a GPU with 3000 MiB each".
std::string DescribeShare(const Ask& ask) {
  const bool all = ask.compute == kWholeGpu;
  std::string text;
  if (all) {
    text = Counted(ask.count, "GPU");
  } else if (ask.compute == MilliGpu::Zero()) {
    text = ask.count == 1 ? "a part of a GPU" : fmt::format("{} parts of a GPU", ask.count);
  } else {
    const std::string part = Decimals(ask.compute.count()) + " GPU";
    text = ask.count == 1 ? part : fmt::format("{} x {}", ask.count, part);
  }
  const std::string memory = DescribeMemory(ask.memory);
  if (!memory.empty()) text += " with " + memory + (ask.count == 1 ? "" : " each");
  return text + (ask.exclusive ? ", alone" : "");
}

std::string DescribeAsk(const Ask& ask) {
  switch (ask.resource) {
    case Resource::kGpu:
      return Counted(ask.count, "GPU");
    case Resource::kGpuShared:
      return Counted(ask.count, "shared GPU");
    case Resource::kMig:
      return fmt::format("{} x {}{}", ask.count, ask.mig.profile, ask.mig.shared ? " shared" : "");
    case Resource::kShare:
      return DescribeShare(ask);
  }
  return "";
}

std::string Join(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
  return joined;
}

// What is free on the node of the kind the pod asks for.
// What tranche-node on the node would give the pod a part by; empty: it is not there.
std::string DescribeOwnAgent(const Inventory& inventory, const PodRequest& request) {
  if (inventory.agent != AgentKind::kTranche) return "";
  if (ServesWholeCardsOnly(inventory)) return "; tranche-node gives whole GPUs there (slots: 0)";
  if (CallsAgent(inventory.agent, request)) return "";
  return "; beside the annotation the container has to limit nvidia.com/gpu, or the kubelet asks "
         "tranche-node for nothing";
}

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
    found += fmt::format("{}{} of {} cards idle, most free on one card {} GPU and {} MiB",
                         found.empty() ? "" : "; ", idle, cards, Decimals(most_milli.count()),
                         most_memory.count());
  }
  return found;
}

constexpr std::string_view kCorrectAmount = "correct the amount and create the pod again";
constexpr std::string_view kMoreRoom = "a pod of this kind must end, or a node be added";
constexpr std::string_view kNodesBack = "the nodes must become usable again; see their state";
// What would change the answer; reasons that are not listed are nobody's to change.
constexpr std::pair<Reason, std::string_view> kAdvice[] = {
    {Reason::kMixedStyles, "ask in one style only"},
    {Reason::kBadAmount, kCorrectAmount},
    {Reason::kUnknownProfile, kCorrectAmount},
    {Reason::kStyleOff, "ask an administrator to allow this style, or use another"},
    {Reason::kNoAgent,
     "share on nodes with an agent (tranche-node, HAMi, MPS), or allow unenforced sharing by "
     "policy"},
    {Reason::kUnknownModel, "correct the model's name, or add a node that has it"},
    {Reason::kNotSelected,
     "correct the pod's nodeSelector or affinity, or label a node with what it wants"},
    {Reason::kTainted, "give the pod a toleration, or take the taint off a node"},
    {Reason::kNoNodeOffered,
     "its message says what each node lacks for the pod: CPU, memory, a port, a volume, a rule of "
     "spread or distance"},
    {Reason::kWrongModel, "allow more GPU models"},
    {Reason::kOneReplica,
     "ask for one replica, which is access to a GPU as well as several are, or for whole GPUs"},
    {Reason::kTooManyPerNode, "ask for fewer GPUs per pod, or add larger nodes"},
    {Reason::kTooLarge, "ask for less memory per GPU, or add GPUs with more"},
    {Reason::kNoRoom, kMoreRoom},
    {Reason::kNumaMismatch, kMoreRoom},
    {Reason::kBrokenSet,
     "pods that hold GPUs of a connected set must end, a node be added, or tranche.dev/topology be "
     "preferred instead of required"},
    {Reason::kNoSuchSet,
     "ask for fewer GPUs, for nodes whose GPUs are connected, or say tranche.dev/topology: "
     "preferred"},
    {Reason::kTopologyUnknown,
     "an administrator must have the nodes tell how their GPUs are connected (tranche probe, or "
     "the annotation tranche.dev/topology)"},
    {Reason::kGangIncomplete,
     "the other pods of the gang must be created, and carry no scheduling gate"},
    {Reason::kGangNoRoom, "pods must end until the whole gang fits, or nodes be added"},
    {Reason::kHeldForGang,
     "declare a tranche.dev/expected-runtime that ends before the gang starts, or wait"},
    {Reason::kNoLeaf, "ask an administrator for a GPUQuota that owns the namespace"},
    {Reason::kLeafConflict,
     "an administrator must make the GPUQuotas' namespaceSelectors not overlap"},
    {Reason::kLedgerClosed, "an administrator must restore the ledger; see the server's log"},
    {Reason::kBudgetExhausted,
     "wait for the moment shown, declare a shorter tranche.dev/expected-runtime, or ask for a "
     "larger GPUBudget"},
    {Reason::kExceedsMaxQuota, "ask for fewer GPUs, or for a larger GPUQuota"},
    {Reason::kBorrowLimit, "work of the team must end, or its borrowLimit be raised"},
    {Reason::kLenderLimit, "work of the team must end, or a lendLimit be raised"},
    {Reason::kWaitingForQuota, "work of the team, or of those who borrow, must end"},
    {Reason::kNamespaceQuota, "work of the namespace must end, or its ResourceQuota be raised"},
    {Reason::kPreemptionInProgress, "the pods that make room leave within their grace period"},
    {Reason::kYieldingTo, "the workload named comes first and is placed in a moment"},
    {Reason::kSharingMode,
     "use a priority class whose GPUClass allows this sharing, or ask for devices of another kind"},
    {Reason::kCapacity,
     "use a priority class whose GPUClass bears the capacity types there are, or add nodes of one "
     "that it bears"},
    {Reason::kNodeNotReady, kNodesBack},
    {Reason::kNodeCordoned, kNodesBack},
    {Reason::kInterrupted, "other nodes must have room, or one come in its place"},
    {Reason::kNodeUnreadable,
     "an administrator must mend the node's object; the server's log says what is wrong with it"},
    {Reason::kAgentUnreadable,
     "an administrator must mend the GPU agent of the node, or take away what is left of it"},
    {Reason::kOperatorBusy, kNodesBack},
    {Reason::kNodeUnstable, kNodesBack},
    {Reason::kNodeRefusing, kNodesBack},
    {Reason::kDevicesUnknown, kNodesBack},
    {Reason::kMaintenance,
     "declare a tranche.dev/expected-runtime that ends before the maintenance begins, or wait "
     "until it is over"},
};

}  // namespace

std::string AdviceFor(Reason reason) {
  const auto* advice =
      std::ranges::find(kAdvice, reason, &std::pair<Reason, std::string_view>::first);
  return std::string(advice == std::end(kAdvice) ? "" : advice->second);
}

std::string WhyNobodyGoes(const RequestContext& context) {
  const QuotaMembership& membership = context.membership;
  if (context.policy->actor == PreemptionActor::kOff) {
    return fmt::format("GPUPolicy {} has nobody evicted for it", context.policy->name);
  }
  if (membership.leaf != kNoQuota) {
    return membership.mode == QuotaMode::kEnforce
               ? ""
               : "nobody is evicted for it: the mode of its GPUQuota is not Enforce";
  }
  return fmt::format(
      "no GPUQuota owns its namespace: by rule R0 only pods of a class rank below {} are evicted "
      "for it, and none of those would make room",
      RankOf(membership.gpu_class));
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
  CardQuestion context = Placer::CardQuestionOf(inventory, entry.state.hard(), request, rules);
  std::string links = DescribeBrokenSet(inventory, request, policy, context);
  return links.empty() ? links : "; " + links;
}

std::string DescribeReplicaRule(const Inventory& inventory, const GpuPolicy& policy) {
  const bool told = inventory.rules.several_replicas || policy.several_replicas;
  return told ? "by sharing.requestsGreaterThanOne of a GPUPolicy a container has one replica there"
              : "under MPS NVIDIA's device plugin gives a container one replica";
}

std::string DescribeOwnVariables(const PodRequest& request) {
  if (request.own_limits.empty()) return "";
  const auto container = static_cast<std::size_t>(request.own_limits.front().container);
  return fmt::format(
      "container {} sets limits of MPS itself (CUDA_MPS_...), which would replace those "
      "tranche-node "
      "gives it: take them out of the pod",
      request.containers[container].name);
}

// What the policy has contexts take; empty: nothing, or not of this pod.
std::string DescribeContexts(const Inventory& inventory, const PodRequest& request,
                             const GpuPolicy& policy) {
  const Mebibytes beside = LimitsOf(policy, inventory).beside;
  if (beside == Mebibytes::Zero() || std::ranges::none_of(request.asks, TakesBeside)) return "";
  return fmt::format(
      "; by GPUPolicy the context of each container that asks an amount of memory "
      "takes {} MiB more",
      beside.count());
}

// What becomes of a limit of `asked`, where an MPS server gives each container `given`; in words.
std::string AgainstServer(int64_t asked, int64_t given, std::string_view unit) {
  if (asked > given) {
    return fmt::format("without effect, since the MPS server gives each container {} {}",
                       unit == "%" ? Decimals(given * 100) : fmt::format("{}", given), unit);
  }
  return asked == given ? "as the MPS server does by itself"
                        : "it is held to less than its part, and charged for the part";
}

}  // namespace

std::vector<std::string> DescribeOwnLimits(const PodRequest& request, const Inventory* inventory) {
  std::vector<std::string> sentences;
  const bool replica = inventory != nullptr && inventory->sharing == SharingMethod::kMps &&
                       inventory->gpu_unit == GpuUnit::kReplica && !inventory->cards.empty();
  const auto add = [&](const OwnLimits& own, std::string_view what, const std::string& here) {
    std::string where = "its MPS server, if the node has one, holds it to that; it is no request";
    if (replica) {
      where = here;
    } else if (inventory != nullptr && !inventory->has_agent()) {
      where = "without effect, since nobody says that an MPS server is on the node";
    }
    sentences.push_back(
        fmt::format("container {} sets {} itself: {}",
                    request.containers[static_cast<std::size_t>(own.container)].name, what, where));
  };
  for (const OwnLimits& own : request.own_limits) {
    if (!own.problem.empty()) {
      sentences.push_back(fmt::format(
          "container {}: {}: no limit",
          request.containers[static_cast<std::size_t>(own.container)].name, own.problem));
    }
    if (own.threads) {
      const int64_t given = replica ? 100 / inventory->replicas * 10 : 0;
      add(own, fmt::format("{} % of the threads", Decimals(own.threads->count() * 100)),
          AgainstServer(own.threads->count(), given, "%"));
    }
    if (own.memory) {
      const int64_t given =
          replica ? inventory->cards.front().memory.count() / inventory->replicas : 0;
      add(own, fmt::format("a limit of {} MiB", own.memory->count()),
          AgainstServer(own.memory->count(), given, "MiB"));
    }
  }
  return sentences;
}

std::string DescribeMaintenance(const NodeEntry& entry) {
  if (!entry.window) return "";
  const auto seconds = [](Instant at) { return std::chrono::floor<std::chrono::seconds>(at); };
  return fmt::format("maintenance of GPUPool {} from {:%FT%TZ} to {:%FT%TZ}", entry.window->pool,
                     seconds(entry.window->from), seconds(entry.window->to));
}

std::string DescribeInterruption(const NodeEntry& entry) {
  if (!entry.interruption) return "";
  return fmt::format("taint {}", entry.interruption->notice->taint);
}

std::string DescribeCapacity(const NodeEntry& entry, const GpuClass& gpu_class) {
  std::string bears;
  for (const CapacityType type : gpu_class.capacity) {
    bears += fmt::format("{}{}", bears.empty() ? "" : ", ", CapacityTypeName(type));
  }
  return fmt::format("GPUClass {} runs on {}; the node is {}{}", gpu_class.name,
                     gpu_class.capacity.empty() ? "all but Spot" : bears,
                     CapacityTypeName(entry.counts_as()),
                     entry.capacity ? "" : ", since nobody says what it is");
}

std::string DescribeBusy(const NodeEntry& entry) {
  return entry.held.empty() ? entry.state.facts().operator_busy : entry.held;
}

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
      return fmt::format("{}; the node has {} cards", asks, inventory.cards.size());
    case Reason::kOneReplica:
      return fmt::format("{}; {}", asks, DescribeReplicaRule(inventory, policy));
    case Reason::kAgentCannotServe:
      return DescribeOwnVariables(request);
    case Reason::kTooLarge: {
      Mebibytes largest = Mebibytes::Zero();
      for (const Card& card : inventory.cards) largest = std::max(largest, card.memory);
      return fmt::format("{}, at least {} MiB a card; the largest card has {} MiB{}", asks,
                         request.min_gpu_memory.count(), largest.count(),
                         DescribeContexts(inventory, request, policy));
    }
    case Reason::kNodeUnstable:
      return fmt::format("usable in {} s",
                         std::chrono::ceil<std::chrono::seconds>(*entry.stable_at - now).count());
    case Reason::kNodeRefusing:
      return fmt::format(
          "tried again in {} s",
          std::chrono::ceil<std::chrono::seconds>(*entry.refusing_until - now).count());
    case Reason::kMaintenance:
      return DescribeMaintenance(entry);
    case Reason::kInterrupted:
      return DescribeInterruption(entry);
    case Reason::kNodeUnreadable:
      return entry.unreadable;
    case Reason::kAgentUnreadable:
      return entry.state.facts().agent_unreadable;
    case Reason::kOperatorBusy:
      return DescribeBusy(entry);
    case Reason::kNoAgent:
      return fmt::format("{}; {}{}", asks, DescribeFree(entry, request),
                         DescribeOwnAgent(inventory, request));
    case Reason::kNoGpu:
    case Reason::kUnhealthy:
    case Reason::kNumaMismatch:
    case Reason::kNoRoom:
      return fmt::format("{}; {}{}", asks, DescribeFree(entry, request),
                         DescribeContexts(inventory, request, policy));
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

}  // namespace tranche
