#include "bench/fill/engine_placer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/fill/csv.h"
#include "bench/fill/objects.h"
#include "scheduler/engine/engine.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "topology/gpu_model.h"

namespace tranche::bench::fill {
namespace {

class EnginePlacer final : public Placer {
 public:
  explicit EnginePlacer(const Variant& variant) : variant_(variant), engine_(EngineOptions{}) {}

  absl::Status Load(const Books& books, const MoneyRules& money) {
    GpuPolicy defaults;
    defaults.unenforced_sharing = Permission::kAllow;
    defaults.plain_pods = PlainPods::kRank;
    defaults.money_rate = money.rate;
    auto set = std::make_shared<PolicySet>();
    set->prices = money.prices;
    engine_.SetPolicies(std::move(set), defaults, Instant());
    for (int id = 0; id < books.size(); ++id) {
      const auto json = parser_.Parse(NodeObject(id, books.node(id), variant_.models));
      if (!json.ok()) return json.status();
      absl::StatusOr<NodeFacts> facts = wire::DecodeNode(*json);
      if (!facts.ok()) return facts.status();
      engine_.UpsertNode(*std::move(facts), Instant());
      names_.push_back(NodeNameOf(id));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Placement>> Place(const Books& books,
                                                 const Arrival& arrival) override {
    const TaskType& task = variant_.types[static_cast<std::size_t>(arrival.type)];
    absl::StatusOr<PodFacts> pod = Decode(arrival.serial, task);
    if (!pod.ok()) return pod.status();
    engine_.UpsertPod(*pod, arrival.when);
    const std::optional<int> node = Choose(books, task, pod->request, arrival.when);
    if (!node) {
      engine_.DeletePod(pod->request.uid, arrival.when);
      Drain();
      return std::nullopt;
    }
    auto placement = Bind(*std::move(pod), task, *node, arrival.when);
    Drain();
    if (!placement.ok()) return placement.status();
    return *placement;
  }

  absl::Status Leave(const Arrival& task, Instant now) override {
    engine_.DeletePod(PodUid(UidOf(task.serial)), now);
    Drain();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<PodFacts> Decode(int64_t serial, const TaskType& task) {
    const auto json = parser_.Parse(PodObject(serial, task, variant_.models));
    if (!json.ok()) return json.status();
    absl::StatusOr<PodFacts> pod = wire::DecodePod(*json);
    if (pod.ok() && pod->request.refusal) {
      return absl::InternalError(pod->request.refusal->detail);
    }
    return pod;
  }

  std::optional<int> Choose(const Books& books, const TaskType& task, const PodRequest& request,
                            Instant now) {
    candidates_.clear();
    ids_.clear();
    for (int id = 0; id < books.size(); ++id) {
      if (!books.node(id).HasHostRoom(task)) continue;
      candidates_.push_back(names_[static_cast<std::size_t>(id)]);
      ids_.push_back(id);
    }
    engine_.Filter(request, candidates_, now, answer_);
    if (task.gpus > 0) {
      if (answer_.chosen.empty()) return std::nullopt;
      return ids_[answer_.chosen.front()];
    }
    if (candidates_.empty()) return std::nullopt;
    engine_.Prioritize(request, candidates_, now, ranks_);
    const auto best = std::ranges::max_element(ranks_);
    return ids_[static_cast<std::size_t>(best - ranks_.begin())];
  }

  absl::StatusOr<Placement> Bind(PodFacts pod, const TaskType& task, int id, Instant now) {
    const NodeName node(names_[static_cast<std::size_t>(id)]);
    BindPlan plan = engine_.Bind(pod.request.name, pod.request.uid, node, now);
    if (plan.kind != BindPlan::Kind::kWrite) {
      return absl::InternalError(fmt::format("expected to bind {} to {}, found {} {}",
                                             pod.request.name.str(), node.str(),
                                             Describe(plan.reason).code, plan.detail));
    }
    engine_.SettleBind(pod.request.uid, node, BindOutcome::kBound, now);
    pod.node = node;
    pod.phase = PodPhase::kRunning;
    pod.bound_at = pod.running_at = now;
    if (plan.asks_gpu) pod.allocation = plan.allocation;
    engine_.UpsertPod(std::move(pod), now);
    return PlacementOf(task, id, plan.allocation);
  }

  // What the server would hand on: pods to be tried again, and the ledger's entries.
  void Drain() { engine_.effects() = {}; }

  const Variant& variant_;
  Engine engine_;
  wire::Parser parser_;
  std::vector<std::string> names_;  // of all nodes
  // Of the last choice.
  std::vector<std::string_view> candidates_;
  std::vector<int> ids_;  // parallel to candidates_
  FilterAnswer answer_;
  std::vector<int> ranks_;
};

}  // namespace

absl::StatusOr<std::vector<GpuPrice>> ReadModelPrices(const std::string& path) {
  Csv csv(path);
  const std::size_t model = csv.Column("model", /*required=*/true);
  const std::size_t per_hour = csv.Column("per_gpu_hour", /*required=*/true);
  std::vector<GpuPrice> prices;
  while (csv.Next()) {
    GpuPrice& price = prices.emplace_back();
    price.name = fmt::format("price-{:03}", prices.size());
    price.currency = "USD";
    price.model = GpuModelName(csv.Text(model));
    price.micros_per_gpu_hour = csv.Micros(per_hour);
  }
  if (!csv.status().ok()) return csv.status();
  return prices;
}

absl::StatusOr<std::unique_ptr<Placer>> MakeEnginePlacer(const Variant& variant, const Books& books,
                                                         const MoneyRules& money) {
  auto placer = std::make_unique<EnginePlacer>(variant);
  if (absl::Status loaded = placer->Load(books, money); !loaded.ok()) return loaded;
  return std::unique_ptr<Placer>(std::move(placer));
}

}  // namespace tranche::bench::fill
