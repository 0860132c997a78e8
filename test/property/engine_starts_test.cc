// Random streams in which the process is killed, the pods' owners change what they may, and the
// process starts again with the ledger and the objects as they are then. What it holds of every
// node equals what the process that lived on holds, or is more; quota holds exactly the same.
// One printed seed replays a run:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='EngineStarts*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/allocation_json.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::At;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

constexpr const char* kRecordKey = "tranche.dev/allocation";

// A pod as the API server stores it.
struct StoredPod {
  std::string name;
  std::string ns;
  std::map<std::string, std::string> limits;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> labels;
  std::string node;
  std::string nominated;
  std::string phase = "Pending";
  bool terminating = false;

  PodUid uid() const { return PodUid("uid-" + name); }
  PodFacts Facts() const {
    nlohmann::json object = {{"metadata",
                              {{"name", name},
                               {"namespace", ns},
                               {"uid", uid().str()},
                               {"annotations", annotations},
                               {"labels", labels}}},
                             {"spec", {{"containers", nlohmann::json::array()}}},
                             {"status", {{"phase", phase}, {"nominatedNodeName", nominated}}}};
    object["spec"]["containers"].push_back({{"name", "main"}, {"resources", {{"limits", limits}}}});
    if (!node.empty()) object["spec"]["nodeName"] = node;
    if (terminating) object["metadata"]["deletionTimestamp"] = wire::FormatTime(At(1'000'000));
    const std::string text = object.dump();
    wire::Parser parser;
    absl::StatusOr<PodFacts> facts = wire::DecodePod(parser.Parse(text).value());
    EXPECT_TRUE(facts.ok()) << facts.status() << " " << text;
    return *std::move(facts);
  }
};

class Starts {
 public:
  explicit Starts(uint64_t seed) : random_(seed), engine_(std::make_unique<Engine>(Options())) {
    nodes_ = {test::StockNode("stock", 4), test::HamiNode("hami-a", 4, 4),
              test::HamiNode("hami-b", 2, 4), test::SharedNode("sliced", 2, 3, false),
              test::MigNode("mig", 2, 0, {{"1g.10gb", 6}, {"3g.40gb", 1}})};
    engine_->SetPolicies(Policies(), Defaults(), now_);
    for (const NodeFacts& node : nodes_) engine_->UpsertNode(node, now_);
    engine_->FinishRestore(now_);
  }

  void Step() {
    now_ += Millis(1'000 + Below(3'000));
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
        return Create();
      case 3:
      case 4:
      case 5:
        return Settle(Bind(), Chance(80));
      case 6:
        return End();
      case 7:
        return Nominate();
      case 8:
        renamed_ = Chance(50);
        return engine_->SetPolicies(Policies(), Defaults(), now_);
      default:
        return Edit();
    }
  }

  // Killed perhaps between the charge of a bind and its Binding, and started.
  void Restart() {
    const std::string writing = Chance(50) ? Bind() : "";
    const bool written = !writing.empty() && Chance(50);
    TakeLedger();
    if (written) Write(pods_.at(writing));
    if (!writing.empty()) Answer(writing, written);  // as the one that lives on hears it
    for (int64_t edits = Below(4); edits > 0; --edits) Edit();
    Engine fresh(Options());
    fresh.Restore(Remembered());
    fresh.SetPolicies(Policies(), Defaults(), now_);
    for (const NodeFacts& node : nodes_) fresh.UpsertNode(node, now_);
    std::vector<std::string> order;
    for (const auto& [name, pod] : pods_) order.push_back(name);
    std::ranges::shuffle(order, random_);
    for (const std::string& name : order) fresh.UpsertPod(pods_.at(name).Facts(), now_);
    fresh.FinishRestore(now_);
    Compare(fresh);
    ++starts_;
  }

  std::vector<std::string> Faults() const { return engine_->Audit(); }
  int64_t starts() const { return starts_; }
  int64_t bound() const { return bound_; }
  int64_t busier() const { return busier_; }

 private:
  static EngineOptions Options() { return {}; }
  static GpuPolicy Defaults() {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    return policy;
  }
  std::shared_ptr<const PolicySet> Policies() const {
    return test::Declare(
        {.quotas = {
             test::Quota("org").Line("any", "0"),
             test::Quota(renamed_ ? "team-a2" : "team-a").Under("org").Owns("a").Line("any", "100"),
             test::Quota("team-b").Under("org").Owns("b").Line("any", "100")}});
  }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  bool Chance(int64_t percent) { return Below(100) < percent; }
  template <typename Values>
  auto OneOf(const Values& values) {
    return *std::next(std::begin(values), Below(static_cast<int64_t>(std::size(values))));
  }

  void Create() {
    if (pods_.size() > 30) return End();
    StoredPod pod;
    pod.name = fmt::format("p{}", next_++);
    pod.ns = Chance(50) ? "a" : "b";
    switch (Below(6)) {
      case 0:
        pod.limits = {{"nvidia.com/gpu", std::to_string(1 + Below(2))}};
        break;
      case 1:
        pod.annotations = {{"tranche.dev/gpu-fraction", fmt::format("0.{}", 1 + Below(9))}};
        break;
      case 2:
        pod.limits = {{"nvidia.com/gpu", "1"}};
        pod.annotations = {{"tranche.dev/gpu-memory", std::to_string(1'000 * (1 + Below(9)))}};
        break;
      case 3:
        pod.limits = {{"nvidia.com/gpu", std::to_string(1 + Below(2))},
                      {"nvidia.com/gpumem", std::to_string(1'000 * (1 + Below(9)))},
                      {"nvidia.com/gpucores", std::to_string(10 * Below(11))}};
        break;
      case 4:
        pod.limits = {{Chance(50) ? "nvidia.com/mig-1g.10gb" : "nvidia.com/mig-3g.40gb", "1"}};
        break;
      default:
        pod.annotations = {{"gpu-fraction", fmt::format("0.{}", 1 + Below(9))}};
    }
    engine_->UpsertPod(pod.Facts(), now_);
    pods_.emplace(pod.name, std::move(pod));
  }

  // Begins a bind of some pod that waits; its name, empty: none fits.
  std::string Bind() {
    if (pods_.empty()) return "";
    StoredPod& pod = std::next(pods_.begin(), Below(std::ssize(pods_)))->second;
    if (!pod.node.empty() || pod.phase != "Pending") return "";
    const PodFacts facts = pod.Facts();
    if (!facts.request.asks_gpu()) return "";
    std::vector<std::string_view> names;
    for (const NodeFacts& node : nodes_) names.push_back(node.name.str());
    engine_->Filter(facts.request, names, now_, answer_);
    if (answer_.chosen.empty()) return "";
    const NodeName node(std::string(names[answer_.chosen[0]]));
    BindPlan plan = engine_->Bind(facts.request.name, pod.uid(), node, now_);
    if (plan.kind != BindPlan::Kind::kWrite || !plan.asks_gpu) return "";
    plan_node_ = node;
    plan_texts_ = wire::AgentAnnotations({plan.agent, plan.agent_minor, node.str(),
                                          plan.memory_unit, plan.card_memory, now_, plan.stamp},
                                         *plan.request, plan.allocation);
    plan_texts_[kRecordKey] = wire::EncodeAllocation(plan.allocation);
    return pod.name;
  }
  void Write(StoredPod& pod) {
    pod.node = plan_node_.str();
    pod.nominated.clear();
    pod.phase = "Running";
    for (const auto& [key, text] : plan_texts_) pod.annotations[key] = text;
  }
  void Answer(const std::string& name, bool written) {
    engine_->SettleBind(pods_.at(name).uid(), plan_node_,
                        written ? BindOutcome::kBound : BindOutcome::kNotBound, now_);
    bound_ += written;
  }
  void Settle(const std::string& name, bool written) {
    if (name.empty()) return;
    if (written) Write(pods_.at(name));
    Answer(name, written);
    // Their agents are done at once: nobody waits in line here.
    if (written) pods_.at(name).annotations["hami.io/bind-phase"] = "success";
    engine_->UpsertPod(pods_.at(name).Facts(), now_);
  }

  void End() {
    if (pods_.empty()) return;
    const auto at = std::next(pods_.begin(), Below(std::ssize(pods_)));
    if (at->second.node.empty() || Chance(50)) {
      engine_->DeletePod(at->second.uid(), now_);
      pods_.erase(at);
    } else {
      at->second.phase = Chance(50) ? "Succeeded" : "Failed";
      engine_->UpsertPod(at->second.Facts(), now_);
    }
  }

  // kube-scheduler makes room: somebody leaves where another is nominated.
  void Nominate() {
    if (pods_.size() < 2) return;
    StoredPod& waits = std::next(pods_.begin(), Below(std::ssize(pods_)))->second;
    StoredPod& leaves = std::next(pods_.begin(), Below(std::ssize(pods_)))->second;
    if (!waits.node.empty() || leaves.node.empty()) return;
    leaves.terminating = true;
    waits.nominated = leaves.node;
    engine_->UpsertPod(leaves.Facts(), now_);
    engine_->UpsertPod(waits.Facts(), now_);
  }

  // What its owner may change of a pod, sane or not.
  void Edit() {
    if (pods_.empty()) return;
    StoredPod& pod = std::next(pods_.begin(), Below(std::ssize(pods_)))->second;
    static const std::vector<std::string> kKeys = {"tranche.dev/gpu-fraction",
                                                   "tranche.dev/gpu-memory",
                                                   "tranche.dev/gpu-count",
                                                   "gpu-fraction",
                                                   "gpu-memory",
                                                   "nvidia.com/use-gputype",
                                                   "tranche.dev/gang",
                                                   "tranche.dev/gang-size",
                                                   "tranche.dev/topology",
                                                   "nvidia.com/vgpu-mode",
                                                   "tranche.dev/checkpointed-at"};
    static const std::vector<std::string> kTexts = {"0.1", "0.9",  "2",  "abc", "",
                                                    "-1",  "4000", "1E", "mig", "required"};
    // What was written on a pod that waits is the webhook's business.
    const bool placed = !pod.node.empty();
    switch (Below(placed ? 9 : 3)) {
      case 0: {
        const std::string key = OneOf(kKeys);
        // A gang that waits is seated, which is no holding.
        if (placed || !key.starts_with("tranche.dev/gang")) pod.annotations[key] = OneOf(kTexts);
        break;
      }
      case 1:
        pod.annotations.erase(OneOf(kKeys));
        break;
      case 2:
        pod.labels["kueue.x-k8s.io/queue-name"] = OneOf(kTexts);
        break;
      case 3:
        pod.annotations.erase(kRecordKey);
        break;
      case 4:
        pod.annotations[kRecordKey] = OneOf(kTexts);
        break;
      case 5:
        EditRecord(pod);
        break;
      case 6:
        std::erase_if(pod.annotations,
                      [](const auto& entry) { return entry.first.starts_with("hami.io/"); });
        break;
      case 7:
        EditAgentKeys(pod);
        break;
      default:
        pod.annotations.clear();
    }
    engine_->UpsertPod(pod.Facts(), now_);
  }
  void EditRecord(StoredPod& pod) {
    nlohmann::json record = nlohmann::json::parse(pod.annotations[kRecordKey], nullptr, false);
    if (!record.is_object() || !record.contains("containers")) return;
    record["epoch"] = OneOf(std::vector<int64_t>{0, 1, 900, 2'000, INT32_MAX});
    record["leaf"] = OneOf(std::vector<std::string>{"team-b", "nobody", "", "\x1b[2J"});
    for (auto& container : record["containers"]) {
      for (auto& device : container["devices"]) {
        const int64_t card = Below(4);
        if (Chance(50)) device["milli"] = 1 + Below(1'000);
        if (Chance(50)) device["mib"] = 1 + Below(1'000);
        if (!device["slot"].is_null() && Chance(50)) device["slot"] = card;
        if (device["uuid"].is_null() || Chance(50)) continue;
        device["uuid"] = fmt::format("GPU-{}-{}", pod.node, card);
        device["index"] = card;
      }
      if (Chance(20)) container["devices"].push_back(container["devices"][0]);
    }
    pod.annotations[kRecordKey] = record.dump();
  }
  void EditAgentKeys(StoredPod& pod) {
    for (auto& [key, text] : pod.annotations) {
      const std::size_t at = text.find("GPU-");
      if (!key.starts_with("hami.io/") || at == std::string::npos) continue;
      const std::size_t end = text.find(',', at);
      if (end == std::string::npos) continue;
      text.replace(at, end - at, fmt::format("GPU-{}-{}", pod.node, Below(4)));
    }
  }

  // ---- the ledger
  void TakeLedger() {
    for (MeterEvent& event : std::exchange(engine_->effects().metering, {})) {
      const std::pair key(event.uid, event.interval);
      switch (event.kind) {
        case MeterKind::kOpen: {
          OpenInterval open{event.uid,   event.interval, event.pod,
                            event.node,  event.leaf,     event.workload_class,
                            event.parts, event.at,       std::nullopt};
          if (event.allocation) {
            open.allocation =
                wire::DecodeAllocation(wire::EncodeAllocation(*event.allocation)).value();
          }
          open_[key] = std::move(open);
          break;
        }
        case MeterKind::kRunning:
          open_.at(key).running = event.at;
          break;
        case MeterKind::kClose:
        case MeterKind::kVoid:
          open_.erase(key);
          break;
        case MeterKind::kRefund:
          break;
      }
    }
  }
  MeterHistory Remembered() const {
    MeterHistory history;
    history.heartbeat = now_;
    for (const auto& [key, open] : open_) history.open.push_back(open);
    return history;
  }

  // ---- the comparison
  void Compare(Engine& fresh) {
    EXPECT_EQ(fresh.Audit(), std::vector<std::string>{});
    TakeLedger();
    EXPECT_EQ(fresh.HeldQuanta().compute, engine_->HeldQuanta().compute);
    EXPECT_EQ(fresh.HeldQuanta().memory, engine_->HeldQuanta().memory);
    EXPECT_EQ(Leaves(fresh), Leaves(*engine_));
    const Held lived = HeldOf(*engine_), began = HeldOf(fresh);
    if (lived == began) return;
    ++busier_;
    std::map<std::string, Reason> closed;
    for (const NodeView& node : fresh.Nodes(NodeName(), 100, now_)) {
      closed[node.name.str()] = node.closed;
    }
    for (const auto& [place, amounts] : lived) {
      const auto& [node, uid, device] = place;
      if (closed.at(node) == Reason::kDevicesUnknown) continue;
      const auto found = began.find(place);
      ASSERT_NE(found, began.end()) << node << " " << uid << " " << device;
      EXPECT_GE(found->second, amounts) << node << " " << uid << " " << device;
      EXPECT_GE(found->second.second, amounts.second) << node << " " << uid << " " << device;
    }
  }
  // By node, pod and device: thousandths and MiB. Of pods that are bound: what is kept for others
  // may be planned anew.
  using Held = std::map<std::array<std::string, 3>, std::pair<int64_t, int64_t>>;
  Held HeldOf(Engine& engine) const {
    Held held;
    std::string node, line;
    std::istringstream lines(engine.Digest());
    while (std::getline(lines, line)) {
      if (!line.starts_with("  ")) {
        node = line;
        continue;
      }
      std::istringstream words(line);
      std::string uid, word;
      words >> uid;
      const auto pod = pods_.find(uid.substr(sizeof("uid-") - 1));
      if (pod == pods_.end() || pod->second.node.empty()) continue;
      while (words >> word) {
        const std::size_t colon = word.find(':');
        auto& amounts = held[{node, uid, word.substr(0, colon)}];
        if (colon == std::string::npos) continue;
        amounts = {std::stoll(word.substr(colon + 1)), std::stoll(word.substr(word.find('/') + 1))};
      }
    }
    return held;
  }
  // The leaf each pod is charged to.
  static std::map<std::string, std::string> Leaves(Engine& engine) {
    std::map<std::string, std::string> leaves;
    for (const PodView& pod : engine.Pods({}, {}, 100)) {
      if (pod.state == PodState::kBound) leaves[pod.name.str()] = pod.leaf;
    }
    return leaves;
  }

  std::mt19937_64 random_;
  std::unique_ptr<Engine> engine_;
  Instant now_ = At(0);
  std::vector<NodeFacts> nodes_;
  std::map<std::string, StoredPod> pods_;
  std::map<std::pair<PodUid, int>, OpenInterval> open_;
  FilterAnswer answer_;
  NodeName plan_node_;
  std::map<std::string, std::string> plan_texts_;
  bool renamed_ = false;
  int next_ = 0;
  int64_t starts_ = 0;
  int64_t bound_ = 0;
  int64_t busier_ = 0;
};

TEST(EngineStarts, HoldWhatTheProcessThatLivedOnHoldsOrMore) {
  const auto first = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  const bool replay = std::getenv("TRANCHE_SEED") != nullptr;
  const int64_t steps = FromEnvironment("TRANCHE_STEPS", 300);
  int64_t starts = 0, bound = 0, busier = 0;
  for (uint64_t seed = first; seed < first + (replay ? 1U : 8U); ++seed) {
    SCOPED_TRACE(fmt::format("TRANCHE_SEED={} TRANCHE_STEPS={}", seed, steps));
    Starts stream(seed);
    for (int64_t step = 0; step < steps; ++step) {
      stream.Step();
      if (step % 3 == 2) stream.Restart();
      ASSERT_EQ(stream.Faults(), std::vector<std::string>{}) << "after step " << step;
      ASSERT_FALSE(testing::Test::HasFailure()) << "after step " << step;
    }
    starts += stream.starts();
    bound += stream.bound();
    busier += stream.busier();
  }
  EXPECT_GT(bound, starts / 20);
  EXPECT_LT(busier, starts) << "edits change something, now and then";
  RecordProperty("starts", static_cast<int>(starts));
}

}  // namespace THIS_FILE
}  // namespace tranche
