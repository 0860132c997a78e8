#include "test/sim/check/fit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tranche::sim::check {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kRegister = "hami.io/node-nvidia-register";
constexpr const char* kAgentRegister = "tranche.dev/agent-register";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";

// A Kubernetes amount in thousandths: "2", "500m", "1Gi" as bytes x 1000.
int64_t MilliOf(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>() * 1000;
  if (!value.is_string()) return 0;
  const std::string& text = value.get_ref<const std::string&>();
  std::size_t end = 0;
  int64_t number = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9' && end < 15) {
    number = number * 10 + (text[end++] - '0');
  }
  const std::string unit = text.substr(end);
  if (unit == "m") return number;
  if (unit == "Ki") return number * 1024 * 1000;
  if (unit == "Mi") return number * 1024 * 1024 * 1000;
  if (unit == "Gi") return number * 1024 * 1024 * 1024 * 1000;
  return number * 1000;
}

int64_t CountOf(const Json& value) { return MilliOf(value) / 1000; }

// What the containers of a pod ask for, added up.
struct Wish {
  bool understood = true;
  std::map<std::string, int64_t> counts;  // nvidia.com/gpu and MIG by resource name
  int64_t cards = 0;                      // of shares
  int64_t milli = 0;                      // each
  int64_t mib = 0;                        // each; 0: by part
  int64_t part = 0;                       // thousandths of the card's memory
  int64_t cpu = 0;                        // thousandths
};

// What is asked for; a limit alone asks for as much.
const Json& Requested(const Json& container, const char* name) {
  const Json& request = At(container, {"resources", "requests", name});
  return request.is_null() ? At(container, {"resources", "limits", name}) : request;
}

// Thousandths of "0.25".
std::optional<int64_t> FractionOf(const std::string& text) {
  if (!text.starts_with("0.") || text.size() < 3 || text.size() > 5) return std::nullopt;
  std::string digits = text.substr(2);
  digits.resize(3, '0');
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(digits, is_digit)) return std::nullopt;
  return std::stoll(digits);
}

void AddContainer(const Json& container, Wish& wish) {
  wish.cpu += MilliOf(Requested(container, "cpu"));
  const Json& limits = At(container, {"resources", "limits"});
  if (!limits.is_object()) return;
  for (const auto& [name, amount] : limits.items()) {
    const std::string key = name;
    if (key == kGpu || key.starts_with(kMigPrefix)) {
      wish.counts[key] += CountOf(amount);
    } else if (key == "nvidia.com/gpumem") {
      wish.mib = CountOf(amount);
    } else if (key == "nvidia.com/gpucores") {
      wish.milli = CountOf(amount) * 10;
    } else if (key == "nvidia.com/gpumem-percentage") {
      wish.part = CountOf(amount) * 10;
    } else if (key != "cpu" && key != "memory" && key != "ephemeral-storage") {
      wish.understood = false;
    }
  }
}

// Annotations that say more than this model has a rule for.
bool HasOtherWishes(const Json& pod) {
  static const std::set<std::string> kRead = {"tranche.dev/gpu-fraction",
                                              "tranche.dev/gpu-memory",
                                              "tranche.dev/gpu-count",
                                              "tranche.dev/allocation",
                                              "tranche.dev/gang",
                                              "tranche.dev/gang-size",
                                              "tranche.dev/checkpointed-at",
                                              "tranche.dev/expected-runtime"};
  const Json& annotations = At(pod, {"metadata", "annotations"});
  if (!annotations.is_object()) return false;
  for (const auto& [key, value] : annotations.items()) {
    const bool of_gpus = std::ranges::any_of(
        std::initializer_list<std::string_view>{"tranche", "nvidia", "hami"},
        [&name = key](std::string_view word) { return name.find(word) != std::string::npos; });
    if (of_gpus && !kRead.contains(key)) return true;
  }
  return false;
}

Wish WishOf(const Json& pod) {
  Wish wish;
  const Json& containers = At(pod, {"spec", "containers"});
  if (!containers.is_array()) return wish;
  for (const Json& container : containers) AddContainer(container, wish);
  for (const char* const part : {"initContainers", "affinity", "resourceClaims", "schedulingGates",
                                 "topologySpreadConstraints"}) {
    const Json& there = At(pod, {"spec", part});
    wish.understood = wish.understood && (there.is_null() || there.empty());
  }
  wish.understood = wish.understood && !HasOtherWishes(pod);
  const std::string fraction = Annotation(pod, "tranche.dev/gpu-fraction");
  const std::string memory = Annotation(pod, "tranche.dev/gpu-memory");
  const std::string count = Annotation(pod, "tranche.dev/gpu-count");
  const bool hami = wish.mib > 0 || wish.milli > 0 || wish.part > 0;
  if (!fraction.empty() || !memory.empty()) {
    wish.understood = wish.understood && !hami && (fraction.empty() || memory.empty());
    wish.cards = count.empty() ? 1 : CountOf(Json(count));
    wish.counts.erase(kGpu);
    if (!fraction.empty()) {
      const std::optional<int64_t> milli = FractionOf(fraction);
      wish.understood = wish.understood && milli.value_or(0) > 0;
      wish.milli = wish.part = milli.value_or(0);
    } else {
      wish.mib = CountOf(Json(memory));
      wish.understood = wish.understood && wish.mib > 0;
    }
  } else if (hami) {
    wish.cards = std::max<int64_t>(1, wish.counts[kGpu]);
    wish.counts.erase(kGpu);
    if (wish.mib == 0 && wish.part == 0) wish.part = 1000;
    if (wish.part >= 1000 && wish.milli == 0) wish.milli = 1000;
    wish.understood = wish.understood && containers.size() == 1;
  }
  return wish;
}

bool Tolerates(const Json& pod, const Json& taint) {
  const Json& tolerations = At(pod, {"spec", "tolerations"});
  if (!tolerations.is_array()) return false;
  return std::ranges::any_of(tolerations, [&](const Json& toleration) {
    const std::string key = TextAt(toleration, {"key"});
    const std::string effect = TextAt(toleration, {"effect"});
    const bool exists = TextAt(toleration, {"operator"}) == "Exists";
    return (key.empty() ? exists : key == TextAt(taint, {"key"})) &&
           (effect.empty() || effect == TextAt(taint, {"effect"})) &&
           (exists || At(toleration, {"value"}) == At(taint, {"value"}));
  });
}

// nullopt: open.
std::optional<Fit> Closed(const Json& pod, const Json& node) {
  if (At(node, {"spec", "unschedulable"}) == Json(true)) return Fit::kClosed;
  const Json& conditions = At(node, {"status", "conditions"});
  if (conditions.is_array()) {
    for (const Json& condition : conditions) {
      if (TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) != "True") {
        return Fit::kClosed;
      }
    }
  }
  const Json& taints = At(node, {"spec", "taints"});
  if (taints.is_array()) {
    for (const Json& taint : taints) {
      if (TextAt(taint, {"effect"}) != "PreferNoSchedule" && !Tolerates(pod, taint)) {
        return Fit::kClosed;
      }
    }
  }
  const Json& selector = At(pod, {"spec", "nodeSelector"});
  if (!selector.is_object()) return std::nullopt;
  for (const auto& [key, value] : selector.items()) {
    if (At(node, {"metadata", "labels", key.c_str()}) != value) return Fit::kNever;
  }
  return std::nullopt;
}

std::vector<const PodLife*> HoldersOf(const Truth& truth, const std::string& node, Leaving leaving,
                                      const PodLife* without) {
  std::vector<const PodLife*> pods;
  for (const PodLife* const pod : truth.on(node)) {
    if (pod == without) continue;
    if (!pod->leaving || leaving == Leaving::kHolds) pods.push_back(pod);
  }
  return pods;
}

struct Card {
  int64_t memory = 0;
  int64_t slots = 0;
  bool healthy = true;
  int64_t milli = 0;
  int64_t mib = 0;
  int64_t pods = 0;
};

using Cards = std::map<std::string, Card>;

// By HAMi's register; nullopt: by rules that this model does not have.
std::optional<Cards> RegisteredCards(const Json& node) {
  const Json read = Json::parse(Annotation(node, kRegister), nullptr, /*allow_exceptions=*/false);
  if (!read.is_array()) return std::nullopt;
  Cards cards;
  for (const Json& said : read) {
    Card& card = cards[TextAt(said, {"id"})];
    card.memory = CountOf(At(said, {"devmem"}));
    card.slots = CountOf(At(said, {"count"}));
    card.healthy = At(said, {"health"}) != Json(false);
    const std::string mode = TextAt(said, {"mode"});
    if (!mode.empty() && mode != "hami-core") return std::nullopt;
    if (CountOf(At(said, {"devcore"})) != 100) return std::nullopt;
  }
  return cards;
}

// By tranche-node's register.
std::optional<Cards> CardsOfAgent(const Json& node) {
  const Json read =
      Json::parse(Annotation(node, kAgentRegister), nullptr, /*allow_exceptions=*/false);
  const Json& devices = At(read, {"devices"});
  if (!devices.is_array()) return std::nullopt;
  Cards cards;
  for (const Json& said : devices) {
    Card& card = cards[TextAt(said, {"uuid"})];
    card.memory = CountOf(At(said, {"mib"}));
    card.slots = CountOf(At(said, {"mps", "slots"}));
    card.healthy = At(said, {"healthy"}) == Json(true);
  }
  return cards;
}

// Adds what pods hold; nullopt: somebody's is not known.
std::optional<Cards> CardsOf(const std::vector<const PodLife*>& pods, std::optional<Cards> cards) {
  if (!cards) return std::nullopt;
  for (const PodLife* const pod : pods) {
    if (!pod->record) {
      if (AsksGpu(pod->object)) return std::nullopt;
      continue;
    }
    for (const RecordDevice& device : pod->record->devices) {
      const auto card = cards->find(device.id);
      if (card == cards->end() || !device.profile.empty()) return std::nullopt;
      card->second.milli += device.milli;
      card->second.mib += device.mib;
      ++card->second.pods;
    }
  }
  return cards;
}

int64_t CardsFor(const Wish& wish, const Cards& cards, bool when_empty) {
  int64_t fitting = 0;
  for (const auto& [id, card] : cards) {
    const int64_t mib = wish.mib > 0 ? wish.mib : card.memory * wish.part / 1000;
    const int64_t milli = when_empty ? 0 : card.milli;
    const int64_t taken = when_empty ? 0 : card.mib;
    const int64_t pods = when_empty ? 0 : card.pods;
    const bool whole = wish.milli == 1000;
    if (card.healthy && milli + wish.milli <= 1000 && taken + mib <= card.memory &&
        pods < card.slots && (!whole || pods == 0)) {
      ++fitting;
    }
  }
  return fitting;
}

Fit FitShare(const std::vector<const PodLife*>& pods, const Wish& wish, const Json& node) {
  if (Annotation(node, kRegister).empty()) return Fit::kUnknown;
  const auto cards = CardsOf(pods, RegisteredCards(node));
  if (!cards) return Fit::kUnknown;
  if (CardsFor(wish, *cards, false) >= wish.cards) return Fit::kYes;
  return CardsFor(wish, *cards, true) >= wish.cards ? Fit::kFull : Fit::kNever;
}

Fit FitCounts(const std::vector<const PodLife*>& pods, const Wish& wish, const Json& node) {
  bool full = false;
  for (const auto& [key, count] : wish.counts) {
    if (count == 0) continue;
    const int64_t most = CountOf(At(node, {"status", "allocatable", key.c_str()}));
    if (count > most) return Fit::kNever;
    int64_t taken = 0;
    for (const PodLife* const pod : pods) {
      const Wish other = WishOf(pod->object);
      if (other.cards > 0) return Fit::kUnknown;
      const auto same = other.counts.find(key);
      if (same != other.counts.end()) taken += same->second;
    }
    full = full || taken + count > most;
  }
  return full ? Fit::kFull : Fit::kYes;
}

// On a node of tranche-node: the kubelet counts slots, a whole card is one of them.
Fit FitAgent(const std::vector<const PodLife*>& pods, const Wish& asked, const Json& node) {
  Wish wish = asked;
  const bool shares = wish.cards > 0;
  for (const auto& [key, count] : wish.counts) {
    if (key != kGpu && count > 0) return Fit::kNever;
  }
  if (!shares) {
    wish.cards = wish.counts[kGpu];
    wish.milli = wish.part = 1000;
  }
  std::optional<Cards> cards = CardsOf(pods, CardsOfAgent(node));
  if (!cards) return Fit::kUnknown;
  for (auto& [id, card] : *cards) {
    if (shares && card.slots == 0) return Fit::kNever;
    card.slots = std::max<int64_t>(1, card.slots);
  }
  const int64_t most = CountOf(At(node, {"status", "allocatable", kGpu}));
  int64_t taken = wish.cards;
  for (const PodLife* const pod : pods) taken += GpusOf(*pod);
  if (wish.cards > most || CardsFor(wish, *cards, true) < wish.cards) return Fit::kNever;
  return taken > most || CardsFor(wish, *cards, false) < wish.cards ? Fit::kFull : Fit::kYes;
}

// Among the cards of this node's own kind, or by what its kubelet counts.
Fit FitGpus(const std::vector<const PodLife*>& pods, const Wish& wish, const Json& node) {
  const bool asks = wish.cards > 0 || std::ranges::any_of(wish.counts, [](const auto& count) {
                      return count.second > 0;
                    });
  if (asks && Label(node, "tranche.dev/agent") == "true") return FitAgent(pods, wish, node);
  return wish.cards > 0 ? FitShare(pods, wish, node) : FitCounts(pods, wish, node);
}

bool HasCpu(const std::vector<const PodLife*>& pods, const Wish& wish, const Json& node) {
  const Json& most = At(node, {"status", "allocatable", "cpu"});
  if (most.is_null()) return true;
  int64_t taken = wish.cpu;
  for (const PodLife* const pod : pods) taken += WishOf(pod->object).cpu;
  return taken <= MilliOf(most);
}

}  // namespace

bool AsksGpu(const Json& pod) {
  const Wish wish = WishOf(pod);
  return wish.cards > 0 || !wish.understood ||
         std::ranges::any_of(wish.counts, [](const auto& count) { return count.second > 0; });
}

int64_t GpusOf(const PodLife& pod) {
  const Wish wish = WishOf(pod.object);
  int64_t sum = wish.cards;
  for (const auto& [key, count] : wish.counts) sum += count;
  return sum;
}

std::string GangOf(const PodLife& pod) {
  const std::string gang = Annotation(pod.object, "tranche.dev/gang");
  return gang.empty() ? "" : pod.ns() + "/" + gang;
}

int64_t GangSizeOf(const PodLife& pod) {
  return CountOf(Json(Annotation(pod.object, "tranche.dev/gang-size")));
}

Fit FitOn(const Truth& truth, const PodLife& pod, const std::string& name, Leaving leaving,
          const PodLife* without) {
  const Json* const node = truth.object("nodes", name);
  if (node == nullptr) return Fit::kClosed;
  const Wish wish = WishOf(pod.object);
  if (!wish.understood) return Fit::kUnknown;
  if (const std::optional<Fit> closed = Closed(pod.object, *node)) return *closed;
  const bool hami = !Annotation(*node, kRegister).empty();
  if (wish.cards == 0 && hami) return Fit::kUnknown;  // a whole card, in HAMi's words
  const std::vector<const PodLife*> pods = HoldersOf(truth, name, leaving, without);
  const Fit fit = FitGpus(pods, wish, *node);
  if (fit == Fit::kYes && !HasCpu(pods, wish, *node)) return Fit::kFull;
  return fit;
}

}  // namespace tranche::sim::check
