// A mig controller on a scripted cluster.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/emptying.h"
#include "scheduler/controllers/mig_controller.h"
#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"
#include "test/unit/scheduler/controllers/quiet_objects.h"

namespace tranche {

inline constexpr const char* kMigConfig = "tranche-7x1g";
inline constexpr const char* kMigEntry = "tranche-7x1g:\n  - devices: [0]\n    mig-enabled: true\n";

// Takes every write unless told otherwise, and keeps what it was asked.
class LabelApi : public NodeWrites, public ConfigMaps, public QuietObjects {
 public:
  std::deque<WriteResult> label_answers;  // empty: done
  bool label_held = false;                // no answer at all
  std::optional<WriteResult> put_answer;  // nullopt: done
  std::optional<ConfigMapLookup> map;     // nullopt: there is none
  std::vector<std::string> labels;        // "node=value"
  std::vector<std::string> notes;         // of events, warnings marked
  int reads = 0;
  std::function<void(WriteResult)> held;

  void LockNode(NodeLockWrite, std::function<void(NodeLockResult)>) override { FAIL(); }
  void UnlockNode(NodeLockWrite, std::function<void(NodeLockResult)>) override { FAIL(); }
  void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) override {
    EXPECT_EQ(write.key, "nvidia.com/mig.config");
    labels.push_back(write.node.str() + "=" + write.value);
    if (label_held) {
      held = std::move(done);
      return;
    }
    const WriteResult answer = label_answers.empty()
                                   ? WriteResult{WriteResult::Kind::kDone, 200, ""}
                                   : label_answers.front();
    if (!label_answers.empty()) label_answers.pop_front();
    done(answer);
  }
  void ReadConfigMap(NamespacedName which, std::string key,
                     std::function<void(ConfigMapLookup)> done) override {
    EXPECT_EQ(which.str() + "/" + key, "ops/mig/config.yaml");
    ++reads;
    done(map.value_or(ConfigMapLookup{ConfigMapLookup::Kind::kMissing, "", "", ""}));
  }
  void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) override {
    if (put_answer) return done(*put_answer);
    EXPECT_EQ(write.version, map ? map->version : "");
    map = {ConfigMapLookup::Kind::kFound, write.text, write.version + "1", ""};
    done({WriteResult::Kind::kDone, 201, ""});
  }
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override {
    EXPECT_EQ(event.kind, "Node");
    notes.push_back((event.warning ? "! " : "") + event.note);
    done({WriteResult::Kind::kDone, 201, ""});
  }
};

// One node of two GPUs, of which the first is to be cut into seven.
class MigControllerTest : public testing::Test {
 public:
  MigControllerTest() {
    AdviceNode node;
    node.name = NodeName("gpu-1");
    node.has_mig_manager = true;
    node.mig_config = "all-disabled";
    node.mig_config_state = "success";
    node.inventory.knowledge = Knowledge::kPredicted;
    node.inventory.cards.resize(2);
    node.inventory.cards[1].index = 1;
    node.load.Reset(node.inventory);
    fleet.nodes = {node};
    NodeRepartition change;
    change.node = node.name;
    change.config_name = kMigConfig;
    change.config_yaml = kMigEntry;
    change.steps = {{node.name, 0, {}, {{{"1g.10gb", 7}}}}};
    plan.nodes = {change};
  }

  AdviceNode& Node() { return fleet.nodes[0]; }
  // Is the case one where work that may be moved is on the first node?
  bool Works(const AdviceCase& given) const {
    return busy && !given.pods.empty() && given.pods.front().node == 0;
  }
  // A pod works on the node; another node has room for it, or not.
  void MakeBusy(bool room) {
    test::DefragCase made;
    made.Node(test::StockNode("gpu-1", 2));
    made.Node(test::StockNode("gpu-2", 2));
    AdvicePod& pod = made.Pod(test::WholePod("p", 1), "gpu-1", 0);
    pod.moves_for_layout = true;
    if (!room) made.Pod(test::WholePod("q", 2), "gpu-2", 0);
    fleet = made.Build();
    Node().has_mig_manager = true;
    Node().mig_strategy = MigStrategy::kMixed;
    Node().mig_config = "all-disabled";
    Node().mig_config_state = "success";
    plan.waiting_served = 1;
    busy = true;
  }
  void LeaveNode() {
    fleet = WithoutWorkOn(fleet, Node().name);
    Node().open = false;
    busy = false;
  }
  // Once a second, as the process does.
  void Pass(std::chrono::seconds time) {
    for (const Instant end = now + time; now < end; now += std::chrono::seconds(1))
      mig_controller.Tick(now);
  }
  // Until the layout is in the file and the label is set.
  void PassUntilLabelled() { Pass(std::chrono::seconds(130)); }
  // What mig-manager does with the label.
  void Say(const std::string& state) {
    if (!api.labels.empty()) Node().mig_config = kMigConfig;
    Node().mig_config_state = state;
  }
  void Cut(int instances) {
    Inventory& inventory = Node().inventory;
    inventory.cards[0].mode = CardMode::kMig;
    MigPool pool;
    pool.profile = "1g.10gb";
    for (int i = 0; i < instances; ++i) pool.slots.push_back({0, i, 1});
    inventory.pools = {pool};
    Node().load.Reset(inventory);
  }
  std::string Counted(const std::string& outcome) const {
    const std::string page = metrics.Render({});
    const std::string head = "tranche_mig_changes_total{outcome=\"" + outcome + "\"} ";
    const std::size_t at = page.find(head);
    return at == std::string::npos ? "none" : page.substr(at + head.size(), 1);
  }
  using Lines = std::vector<std::string>;

  bool busy = false;
  Instant now{std::chrono::hours(24)};
  bool fresh = true;
  MigMode mode = MigMode::kApply;
  AdviceCase fleet;
  RepartitionPlan plan;
  bool window_open = false;
  bool budgets_allow = true;
  Lines holds;
  std::function<void()> at_hold;
  LabelApi api;
  metrics::Metrics metrics;
  MigController mig_controller{
      api,
      api,
      api,
      metrics,
      {"ops", "mig"},
      {[this] { return fresh; }, [this] { return mode; }, [this] { return fleet; },
       // Only of GPUs that nobody uses.
       [this](const AdviceCase& given) {
         const bool idle = given.nodes.empty() || !Works(given);
         return idle ? plan : RepartitionPlan();
       },
       [this](const NodeName& node, const std::string& why) {
         holds.push_back(node.str() + (why.empty() ? " free" : " held"));
         if (at_hold) at_hold();
       },
       [this](Instant) { return window_open; },
       [this](const NodeName& node) {
         if (budgets_allow) holds.push_back(node.str() + " left");
         return budgets_allow;
       },
       [this](const NodeName& node) { holds.push_back(node.str() + " kept"); }}};
};

}  // namespace tranche
