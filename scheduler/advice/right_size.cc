#include "scheduler/advice/right_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/advice/defrag_books.h"
#include "scheduler/advice/rules.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// What a card has of a process that does nothing with it.
constexpr Mebibytes kUntouched = Mebibytes::Of(1024);
constexpr int kNothing = 10;           // permille of an hour
constexpr int64_t kFractionStep = 50;  // thousandths
// Placements tried for one pod, and nodes of a kind that are looked at for it.
constexpr int kTriesOfAPod = 256;
constexpr int kNodesOfAKind = 24;

int64_t DivideUp(int64_t amount, int64_t by) { return (amount + by - 1) / by; }

// What one device must have.
struct Need {
  MilliGpu milli;
  Mebibytes memory;
};

// Work that might ask for less, and what is known of it.
struct Work {
  const AdvicePod* pod = nullptr;
  const AdviceNode* node = nullptr;
  const WorkHistory* history = nullptr;
  RightSize entry;
  // Where the best of what would do goes.
  std::size_t to = 0;
  PodRequest request;
  Picks picks;
  int64_t held = 0;   // milli
  int64_t whole = 0;  // whole cards, one ask of them alone; 0: something else
  bool memory_told = true;
  Need need;
  int64_t most_saved = 0;  // milli, if a device of just that size were to be had
};

SmallerAsk Gpus(int64_t count) { return {SmallerAsk::Form::kGpus, count, "", {}}; }
SmallerAsk Instance(const std::string& profile) {
  return {SmallerAsk::Form::kInstance, 0, profile, {}};
}
SmallerAsk Fraction(MilliGpu part) { return {SmallerAsk::Form::kFraction, 0, "", part}; }

// "0.5" of 500 thousandths.
std::string Decimals(int64_t milli) {
  std::string text = fmt::format("{}.{:03}", milli / 1000, milli % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// The pod with one ask of another kind in the place of its only one.
PodRequest Asking(const PodRequest& request, const SmallerAsk& smaller) {
  PodRequest other = request;
  Ask& ask = other.asks.front();
  ask.memory = {};
  ask.compute = {};
  ask.exclusive = false;
  ask.mig = {};
  ask.count = 1;
  std::string key(kGpuKey);
  other.style = RequestStyle::kNative;
  switch (smaller.form) {
    case SmallerAsk::Form::kGpus:
      ask.resource = Resource::kGpu;
      ask.count = smaller.gpus;
      break;
    case SmallerAsk::Form::kInstance:
      ask.resource = Resource::kMig;
      ask.mig = {smaller.profile, false};
      key = FormatMigResource(ask.mig);
      break;
    case SmallerAsk::Form::kFraction:
      other.style = RequestStyle::kTranche;
      ask.resource = Resource::kShare;
      ask.compute = smaller.fraction;
      ask.memory = {MemoryNeed::Kind::kMilliOfCard, smaller.fraction.count()};
      break;
  }
  other.containers[static_cast<std::size_t>(ask.container)].plugin_count = ask.count;
  other.pool_needs = {{std::move(key), ask.count}};
  return other;
}

// Nodes that treat a pod alike while nobody is on them, but for what the pod demands of nodes.
std::string NodeKindOf(const Inventory& inventory) {
  std::string kind =
      fmt::format("{}|{}|{}|{}|{}|{}", inventory.model, static_cast<int>(inventory.agent),
                  static_cast<int>(inventory.sharing), inventory.replicas,
                  static_cast<int>(inventory.gpu_unit), inventory.placeholders);
  const auto* const card = inventory.cards.empty() ? nullptr : &inventory.cards.front();
  if (card != nullptr) {
    kind += fmt::format("|{}|{}|{}|{}", static_cast<int>(card->mode), card->memory.count(),
                        card->planned(), card->cut != nullptr);
  }
  for (const MigPool& pool : inventory.pools) {
    kind += fmt::format("|{} {} {}", pool.key, pool.replicas, pool.slots.size());
  }
  return kind;
}

bool HasMemory(const DeviceHistory& device) { return device.most_memory.has_value(); }

class RightSizer {
 public:
  RightSizer(const AdviceCase& fleet, const UseHistory& history, const RightSizeLimits& limits)
      : fleet_(fleet), history_(history), limits_(limits) {
    for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
      const AdviceNode& node = fleet.nodes[n];
      places_.push_back({node.load, node.cpu_free});
      if (node.open && !node.inventory.cards.empty()) {
        kinds_[node.inventory.model][NodeKindOf(node.inventory)].push_back(n);
      }
    }
  }

  RightSizeAdvice Run() {
    RightSizeAdvice advice;
    std::vector<Work> works;
    bool memory_told = false;
    for (const AdvicePod& pod : fleet_.pods) {
      const WorkHistory* const history = history_.Find(pod.uid);
      if (history == nullptr) continue;
      ++advice.measuring;
      memory_told = memory_told || std::ranges::any_of(history->devices, HasMemory);
      if (history->hours < limits_.least_hours) continue;
      ++advice.measured;
      std::optional<Work> work = WorkOf(pod, *history);
      if (work && work->most_saved >= limits_.least_saved.count()) works.push_back(*work);
    }
    if (advice.measuring > 0 && !memory_told) {
      advice.notes.push_back(
          "nobody tells how much memory is in use: the query gives no such rows");
    }
    std::ranges::sort(works, {},
                      [](const Work& work) { return std::pair(-work.most_saved, work.entry.uid); });
    int looks = 0;
    for (Work& work : works) {
      if (looks == limits_.most_looks || std::ssize(advice.entries) == limits_.most_entries) {
        advice.notes.push_back(fmt::format(
            "{} more pods may ask for too much: the {} that could save most were looked at",
            std::ssize(works) - looks, looks));
        break;
      }
      ++looks;
      if (!Find(work)) continue;
      advice.saved += work.entry.saved;
      advice.entries.push_back(std::move(work.entry));
    }
    std::ranges::sort(advice.entries, {}, [](const RightSize& entry) {
      return std::pair(-entry.saved.count(), entry.uid);
    });
    return advice;
  }

 private:
  // Of a node, once all did what was said so far.
  struct Place {
    Load load;
    MilliCpu cpu_free;
  };

  // nullopt: nothing can be said of it.
  std::optional<Work> WorkOf(const AdvicePod& pod, const WorkHistory& history) const {
    const PodRequest& request = *pod.request;
    const bool plain = request.asks.size() == 1 && request.gang.empty() && pod.known &&
                       !pod.leaves && !pod.picks.empty();
    if (!plain) return std::nullopt;
    const auto container = static_cast<std::size_t>(request.asks.front().container);
    if (request.containers[container].role != ContainerRole::kApp) return std::nullopt;
    Work work;
    work.pod = &pod;
    work.node = &fleet_.nodes[pod.node];
    work.history = &history;
    const Inventory& inventory = work.node->inventory;
    work.held = MilliOf(pod, inventory);
    if (work.held == 0) return std::nullopt;
    const auto is_whole = [](const Pick& pick) { return pick.pool < 0 && pick.milli == kWholeGpu; };
    if (request.asks.front().resource == Resource::kGpu &&
        std::ranges::all_of(pod.picks, is_whole)) {
      work.whole = std::ssize(pod.picks);
    }
    RightSize& entry = work.entry;
    entry.pod = pod.name;
    entry.uid = pod.uid;
    entry.node = work.node->name;
    entry.leaf = pod.leaf;
    entry.hours = history.hours;
    entry.holds = HeldText(work, inventory);
    NoteUse(work);
    return work;
  }

  static std::string HeldText(const Work& work, const Inventory& inventory) {
    const Pick& first = work.pod->picks.front();
    const auto pool = static_cast<std::size_t>(std::max(first.pool, 0));
    if (work.whole > 0) return SizeText(Gpus(work.whole));
    if (work.pod->picks.size() == 1 && first.pool >= 0 && pool < inventory.pools.size()) {
      return inventory.pools[pool].profile;
    }
    return SizeText(Fraction(MilliGpu::Of(work.held)));
  }

  // What was measured of it, and what one device would need for that.
  static void NoteUse(Work& work) {
    RightSize& entry = work.entry;
    for (const DeviceHistory& device : work.history->devices) {
      entry.busiest_hour = std::max(entry.busiest_hour, device.busiest_hour);
      work.memory_told = work.memory_told && device.most_memory;
      if (device.most_memory) {
        entry.most_memory =
            std::max(entry.most_memory.value_or(*device.most_memory), *device.most_memory);
      }
      const bool untouched = device.most_memory && *device.most_memory <= kUntouched;
      if (device.busiest_hour <= kNothing && untouched) ++entry.unused;
    }
    // An instance is measured by itself, a share by the card that it is on.
    const Pick& first = work.pod->picks.front();
    const int64_t measured = first.pool >= 0 ? first.milli.count() : kWholeGpu.count();
    work.need.milli = MilliGpu::Of(entry.busiest_hour * measured * 10 / (7 * 1000));
    const int64_t most = entry.most_memory ? entry.most_memory->count() : 0;
    work.need.memory = Mebibytes::Of(DivideUp(most * 6, 5));
    const bool cards_told = std::ssize(work.history->devices) == work.whole;
    if (!cards_told) entry.unused = 0;
    if (work.whole > 1) {
      const int64_t used = std::max<int64_t>(work.whole - entry.unused, 1);
      work.most_saved = used > 1 ? (work.whole - used) * 1000 : work.held - Part(work);
    } else if (work.pod->picks.size() == 1) {
      work.most_saved = work.held - Part(work);
    }
  }

  // Of a card, that holds what one device needs; the whole where nothing tells.
  static int64_t Part(const Work& work) {
    const Inventory& inventory = work.node->inventory;
    const int64_t memory = inventory.cards.empty() ? 0 : inventory.cards.front().memory.count();
    if (!work.memory_told || memory == 0) return kWholeGpu.count();
    return std::max(work.need.milli.count(), DivideUp(work.need.memory.count() * 1000, memory));
  }

  // What takes the least of what there is room for; false: nothing that is worth it.
  bool Find(Work& work) {
    RightSize& entry = work.entry;
    const std::size_t own = work.pod->node;
    const Place before = places_[own];
    RemoveFrom(places_[own].load, work.node->inventory, *work.pod);
    places_[own].cpu_free += work.pod->request->cpu;
    tries_left_ = kTriesOfAPod;
    const int64_t used = std::max<int64_t>(work.whole - entry.unused, 1);
    // A node that takes nobody does not take it back.
    const bool open = work.node->open;
    if (open && work.whole > used) TryAsk(work, own, Gpus(used), Mebibytes::Zero());
    if (std::max<int64_t>(work.whole, 1) - entry.unused <= 1 && work.memory_told) {
      if (open) TrySizesOf(work, own);
      for (const auto& [kind, nodes] : kinds_[work.node->inventory.model]) TryKind(work, nodes);
    }
    if (entry.saved < limits_.least_saved) {
      places_[own] = before;
      return false;
    }
    Place& place = places_[work.to];
    DefragBooks::Add(place.load, fleet_.nodes[work.to].inventory, work.request, work.picks);
    place.cpu_free -= work.request.cpu;
    return true;
  }

  // The first nodes of this kind that the pod may be on.
  void TryKind(Work& work, const std::vector<std::size_t>& nodes) {
    const PodRequest& request = *work.pod->request;
    int nodes_left = kNodesOfAKind;
    for (const std::size_t n : nodes) {
      const AdviceNode& node = fleet_.nodes[n];
      const bool cpu_said = node.cpu_capacity > MilliCpu::Zero();
      if (n == work.pod->node || (cpu_said && places_[n].cpu_free < request.cpu) ||
          !SuitsNode(request, node)) {
        continue;
      }
      if (nodes_left-- == 0 || tries_left_ <= 0) return;
      TrySizesOf(work, n);
    }
  }

  // All sizes the node has.
  void TrySizesOf(Work& work, std::size_t n) {
    const Inventory& inventory = fleet_.nodes[n].inventory;
    for (const MigPool& pool : inventory.pools) {
      const bool holds = pool.key != kGpuKey && pool.replicas == 1 &&
                         pool.milli >= work.need.milli && pool.memory >= work.need.memory;
      if (holds) TryAsk(work, n, Instance(pool.profile), work.need.memory);
    }
    // Where whole cards are handed out a part of one is one all the same.
    if (inventory.cards.empty() || inventory.cards.front().mode == CardMode::kWhole) return;
    const int64_t part = std::max<int64_t>(Part(work), 1);
    const MilliGpu rounded = MilliGpu::Of(DivideUp(part, kFractionStep) * kFractionStep);
    if (rounded < kWholeGpu) TryAsk(work, n, Fraction(rounded), work.need.memory);
  }

  void TryAsk(Work& work, std::size_t n, SmallerAsk ask, Mebibytes memory) {
    if (--tries_left_ < 0) return;
    PodRequest request = Asking(*work.pod->request, ask);
    const PlaceRules rules = RulesIn(fleet_, request, work.pod->workload_class);
    const Inventory& inventory = fleet_.nodes[n].inventory;
    if (placer_.Place(inventory, places_[n].load, request, rules, picks_) != Reason::kNone) return;
    MilliGpu taken;
    for (const Pick& pick : picks_) {
      // A card of its own is no share, whatever was asked of it.
      taken += pick.exclusive > 0 ? kWholeGpu : pick.milli;
      if (pick.memory < memory) return;
    }
    const MilliGpu saved = MilliGpu::Of(work.held) - taken;
    if (saved <= work.entry.saved) return;
    work.entry.saved = saved;
    work.entry.would_do = std::move(ask);
    work.to = n;
    work.request = std::move(request);
    work.picks = picks_;
  }

  const AdviceCase& fleet_;
  const UseHistory& history_;
  const RightSizeLimits& limits_;
  std::vector<Place> places_;                                                     // by node
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> kinds_;  // by model
  int tries_left_ = 0;
  Placer placer_;
  Picks picks_;
};

}  // namespace

std::string SizeText(const SmallerAsk& ask) {
  switch (ask.form) {
    case SmallerAsk::Form::kGpus:
      return fmt::format("{} GPU{}", ask.gpus, ask.gpus == 1 ? "" : "s");
    case SmallerAsk::Form::kInstance:
      return ask.profile;
    case SmallerAsk::Form::kFraction:
      return fmt::format("{} of a GPU", Decimals(ask.fraction.count()));
  }
  TRANCHE_CHECK(false);
}

AskText RequestText(const SmallerAsk& ask) {
  switch (ask.form) {
    case SmallerAsk::Form::kGpus:
      return {std::string(kGpuKey), std::to_string(ask.gpus)};
    case SmallerAsk::Form::kInstance:
      return {FormatMigResource({ask.profile, false}), "1"};
    case SmallerAsk::Form::kFraction:
      return {"tranche.dev/gpu-fraction", Decimals(ask.fraction.count())};
  }
  TRANCHE_CHECK(false);
}

std::string WordsOf(const RightSize& entry) {
  constexpr int64_t kDay = 24;
  const bool days = entry.hours >= 2 * kDay;
  std::string text = fmt::format("holds {}; in {} {} ", entry.holds,
                                 days ? entry.hours / kDay : entry.hours, days ? "days" : "hours");
  if (entry.unused > 0 && entry.would_do.form == SmallerAsk::Form::kGpus) {
    text += fmt::format("{} of them never did anything", entry.unused);
  } else {
    text += fmt::format("its busiest hour was {} %", DivideUp(entry.busiest_hour, 10));
    if (entry.most_memory) {
      text += fmt::format(" and the most memory {}.{} GiB", entry.most_memory->count() / 1024,
                          entry.most_memory->count() % 1024 * 10 / 1024);
    }
  }
  return text + fmt::format(": {} would do, and leave {} GPU{} to others", SizeText(entry.would_do),
                            Decimals((entry.saved.count() + 5) / 10 * 10),
                            entry.saved == kWholeGpu ? "" : "s");
}

const RightSize* FindRightSize(const RightSizeAdvice& advice, const PodUid& uid) {
  const auto found = std::ranges::find(advice.entries, uid, &RightSize::uid);
  return found == advice.entries.end() ? nullptr : &*found;
}

RightSizeAdvice AdviseRightSizes(const AdviceCase& fleet, const UseHistory& history,
                                 const RightSizeLimits& limits) {
  return RightSizer(fleet, history, limits).Run();
}

}  // namespace tranche
