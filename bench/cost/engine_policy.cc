// The engine, fed and called as the server does. Offers are nodes for the length of one question:
// what a what-if with templates of machines would answer to an autoscaler.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bench/cost/policies.h"
#include "bench/fill/draws.h"
#include "scheduler/engine/engine.h"

namespace tranche::bench::cost {
namespace {

constexpr std::string_view kBearsSpot = "batch";
constexpr std::string_view kStays = "steady";
constexpr std::string_view kNamespace = "work";
// Divisible by 1000, so that a share's memory is exact and never binds before its compute does.
constexpr int64_t kCardMib = 16'000;

Instant At(int64_t seconds) { return Instant(std::chrono::seconds(1'700'000'000 + seconds)); }

std::string NodeNameOf(int id) { return fmt::format("node-{:06}", id); }
std::string OfferNameOf(std::size_t offer) { return fmt::format("offer-{:03}", offer); }
std::string UidOf(const Pod& pod) {
  return fmt::format("task-{}-{}-{}", pod.task, pod.number, pod.round);
}

NodeFacts FactsOf(const Offer& offer, const std::string& name) {
  NodeFacts node;
  node.name = NodeName(name);
  node.uid = NodeUid("uid-" + name);
  node.product = offer.model;
  node.memory = Mebibytes::Of(kCardMib);
  node.count = offer.gpus;
  node.replicas = 1;
  node.gpu = ResourceCount{offer.gpus, offer.gpus};
  node.cpu = MilliCpu::Of(offer.cpu);
  const char* paid = offer.capacity == CapacityType::kSpot ? "spot" : "on-demand";
  node.labels = LabelText(Labels{{"karpenter.sh/capacity-type", paid},
                                 {"node.kubernetes.io/instance-type", offer.instance_type}});
  return node;
}

std::shared_ptr<const PolicySet> Declared(const std::vector<Offer>& offers) {
  auto set = std::make_shared<PolicySet>();
  for (const std::string_view name : {kBearsSpot, kStays}) {
    GpuClass& added = set->classes.emplace_back(DefaultClass(""));
    added.name = name;
    added.priority_classes = {std::string(name)};
    added.interruptible = name == kBearsSpot;
  }
  for (std::size_t i = 0; i < offers.size(); ++i) {
    GpuPrice& price = set->prices.emplace_back();
    price.name = OfferNameOf(i);
    price.currency = "USD";
    price.micros_per_gpu_hour = offers[i].micros_per_gpu();
    price.instance_type = offers[i].instance_type;
    price.capacity = offers[i].capacity;
  }
  set->FindOwners();
  return set;
}

class EnginePolicy final : public Policy {
 public:
  EnginePolicy(const Told& told, const std::vector<Task>& tasks, const std::vector<Offer>& offers)
      : tasks_(tasks), offers_(offers), engine_(Options()) {
    GpuPolicy defaults;
    defaults.unenforced_sharing = Permission::kAllow;
    defaults.money_rate = told.money_rate;
    engine_.SetPolicies(Declared(offers), defaults, At(0));
    engine_.FinishRestore(At(0));
    engine_.effects() = {};
    if (!told.runtimes) return;
    fill::Draws draws(~told.seed);
    for (const Task& task : tasks) {
      const auto percent = static_cast<int64_t>(50 + draws.Below(101));
      declared_.push_back(std::max<int64_t>(1, task.duration * percent / 100));
    }
  }

  absl::StatusOr<std::optional<Seat>> Place(const Fleet& fleet, const Pod& pod,
                                            int64_t now) override {
    std::vector<int> ids;
    std::vector<std::string> names;
    for (const int id : fleet.open) {
      if (fleet.node(id).cpu < pod.cpu) continue;
      ids.push_back(id);
      names.push_back(NodeNameOf(id));
    }
    PodFacts facts = FactsOfPod(pod);
    const std::optional<std::size_t> best = BestOf(facts, names, now);
    if (!best) return std::nullopt;
    const NodeName node(names[*best]);
    const BindPlan plan = engine_.Bind(facts.request.name, facts.request.uid, node, At(now));
    if (plan.kind != BindPlan::Kind::kWrite) {
      return absl::InternalError(fmt::format("expected to bind {} to {}, found {} {}", UidOf(pod),
                                             node.str(), Describe(plan.reason).code, plan.detail));
    }
    engine_.SettleBind(facts.request.uid, node, BindOutcome::kBound, At(now));
    facts.node = node;
    facts.phase = PodPhase::kRunning;
    facts.bound_at = facts.running_at = At(std::max(now, fleet.node(ids[*best]).ready));
    facts.allocation = plan.allocation;
    engine_.UpsertPod(std::move(facts), At(now));
    engine_.effects() = {};
    return SeatOf(ids[*best], plan.allocation);
  }

  absl::StatusOr<std::optional<int>> Rent(const Fleet& /*fleet*/, const Pod& pod,
                                          int64_t now) override {
    std::vector<int> numbers;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < offers_.size(); ++i) {
      if (offers_[i].cpu < pod.cpu) continue;
      numbers.push_back(static_cast<int>(i));
      names.push_back(OfferNameOf(i));
      engine_.UpsertNode(FactsOf(offers_[i], names.back()), At(now));
    }
    const std::optional<std::size_t> best = BestOf(FactsOfPod(pod), names, now);
    for (const std::string& name : names) engine_.DeleteNode(NodeName(name), At(now));
    engine_.effects() = {};
    return best ? std::optional(numbers[*best]) : std::nullopt;
  }

  void Rented(const Fleet& fleet, int node, int64_t now) override {
    engine_.UpsertNode(FactsOf(fleet.offer(fleet.node(node)), NodeNameOf(node)), At(now));
  }
  void Returned(int node, int64_t now) override {
    engine_.DeleteNode(NodeName(NodeNameOf(node)), At(now));
    engine_.effects() = {};
  }
  void Left(const Pod& pod, int64_t now) override {
    engine_.DeletePod(PodUid(UidOf(pod)), At(now));
    engine_.effects() = {};
  }

 private:
  static EngineOptions Options() {
    EngineOptions options;
    options.name_seed = 0x9e3779b97f4a7c15;
    options.tentative_lifetime = Millis(0);
    return options;
  }

  PodFacts FactsOfPod(const Pod& pod) const {
    const Task& task = tasks_[static_cast<std::size_t>(pod.task)];
    PodFacts facts;
    PodRequest& request = facts.request;
    request.uid = PodUid(UidOf(pod));
    request.name = {std::string(kNamespace), UidOf(pod)};
    request.priority_class = task.interruptible ? kBearsSpot : kStays;
    request.cpu = MilliCpu::Of(pod.cpu);
    for (std::size_t from = 0; from < task.models.size();) {
      const std::size_t comma = std::min(task.models.find(',', from), task.models.size());
      request.models_any.push_back(task.models.substr(from, comma - from));
      from = comma + 1;
    }
    Ask ask;
    ask.count = pod.gpus;
    if (pod.milli < kWholeMilli) {
      request.style = RequestStyle::kTranche;
      ask.resource = Resource::kShare;
      ask.compute = MilliGpu::Of(pod.milli);
      ask.memory = {MemoryNeed::Kind::kMilliOfCard, pod.milli};
      request.containers.push_back({"main", ContainerRole::kApp, 0});
    } else {
      request.style = RequestStyle::kNative;
      ask.resource = Resource::kGpu;
      request.containers.push_back({"main", ContainerRole::kApp, pod.gpus});
      request.pool_needs.push_back({"nvidia.com/gpu", pod.gpus});
    }
    request.asks.push_back(ask);
    if (!declared_.empty()) {
      request.expected_runtime =
          std::chrono::seconds(declared_[static_cast<std::size_t>(pod.task)]);
    }
    return facts;
  }

  // The best of these nodes; nullopt: none.
  std::optional<std::size_t> BestOf(const PodFacts& pod, const std::vector<std::string>& names,
                                    int64_t now) {
    engine_.UpsertPod(pod, At(now));
    if (names.empty()) return std::nullopt;
    const std::vector<std::string_view> views(names.begin(), names.end());
    engine_.Filter(pod.request, views, At(now), answer_);
    return answer_.chosen.empty() ? std::nullopt
                                  : std::optional<std::size_t>(answer_.chosen.front());
  }

  static Seat SeatOf(int node, const Allocation& allocation) {
    Seat seat{node, 0};
    for (const ContainerDevices& container : allocation.containers) {
      for (const Device& device : container.devices) seat.cards |= uint32_t{1} << device.card;
    }
    return seat;
  }

  const std::vector<Task>& tasks_;
  const std::vector<Offer>& offers_;
  Engine engine_;
  std::vector<int64_t> declared_;  // s, by task; empty: nobody says
  FilterAnswer answer_;
};

}  // namespace

std::unique_ptr<Policy> MakeEnginePolicy(const Told& told, const std::vector<Task>& tasks,
                                         const std::vector<Offer>& offers) {
  return std::make_unique<EnginePolicy>(told, tasks, offers);
}

}  // namespace tranche::bench::cost
