// Random streams of teams' pods against a pretend API server and a pretend ledger, over the ends of
// budget windows, lost binds, edits, clock steps and restarts. Numbers in brackets are the quota
// model's invariants (section 9). After every step:
//   (1) no node holds more than its GPUs   (2) no team is charged more GPUs than it touches
//   (4) open rows of the journal = what the engine holds = a recount from pods
//   (5) no pod has two open rows           (13) no closed row changes   (14) no row is negative
// at every bind (6, 7), at every refusal (29), at every budget's word (31), at restarts (3, 32).
//   TRANCHE_SEED=7 TRANCHE_STEPS=1000 property_tests --gtest_filter='EngineQuotaStream*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/replica.h"
#include "test/builders/budget_history.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"
#include "test/property/quota_journal.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::FromEnvironment;
using test::Quota;

constexpr int64_t kStepsPerSeed = 1000;

struct ServerPod {
  PodFacts facts;
  bool writing = false;  // a bind call without an answer yet
  NodeName target;       // of the last bind that is not known to have failed
  Allocation planned;
};

class QuotaStream {
 public:
  explicit QuotaStream(uint64_t seed) : random_(seed) {
    for (const NodeFacts& node :
         {test::StockNode("h1", 8), test::StockNode("h2", 4),
          test::StockNode("t4", 4, "Tesla-T4", 15109), test::SharedNode("sliced", 2, 4, true),
          test::MigNode("mig", 3, 0, {{"1g.10gb", 7}, {"2g.20gb", 2}, {"3g.40gb", 2}})}) {
      nodes_[node.name] = node;
    }
    nodes_[NodeName("h2")].labels = nodes_[NodeName("mig")].labels = in_pool_;
    Edit();
    engine_ = Start(objects_);
  }

  void Step() {
    // Binds are quick; now and then much of a day goes by.
    Pass(Below(12) == 0 ? Millis(Below(3 * 3'600'000)) : Millis(Below(20'000)));
    const int64_t dice = Below(16);
    if (dice < 3) Create();
    if (dice >= 3 && dice < 8) TryToBind();
    if (dice >= 8 && dice < 11) EndBind();
    if (dice == 11) Finish();
    if (dice == 12) Delete();
    if (dice == 13) TouchNode();
    if (dice == 14) Deliver();
    if (dice == 15) Rarely();
    journal_.Take(*engine_);
    Check();
  }

  // A new process: the old one sees what it missed, and both must agree.
  void Restart() {
    journal_.Take(*engine_);
    const MeterHistory history = journal_.History(now_);
    for (auto& [uid, pod] : pods_) pod.writing = false;
    std::unique_ptr<Engine> next = Start(objects_, history);
    test::Objects watching = objects_;
    for (GpuQuota& quota : watching.quotas) quota.mode = QuotaMode::kObserve;
    const std::unique_ptr<Engine> twin = Start(watching, history);
    for (const PodUid& uid : gone_unseen_) engine_->DeletePod(uid, now_);
    gone_unseen_.clear();
    for (auto& [uid, pod] : pods_) {
      engine_->UpsertPod(pod.facts, now_);
      if (!pod.target.empty()) engine_->SettleBind(uid, pod.target, BindOutcome::kNotBound, now_);
      pod.target = NodeName();
    }
    ReplicaWalk walk;
    while (!walk.done()) engine_->CopySlice(walk, now_);
    const std::unique_ptr<Engine> replica = MakeReplica(walk.Take());
    EXPECT_EQ(replica->HeldQuanta(), engine_->HeldQuanta());
    // Whether a budget is used up is judged as time goes on: what was refunded in this millisecond
    // counts for the replica, which is new, and for the others in the next.
    now_ += Millis(1);
    for (Engine* each : {engine_.get(), next.get(), replica.get(), twin.get()}) each->Tick(now_);
    const std::set<std::string> corrected = journal_.CorrectedBy(*engine_);
    faults_ = RestartFaults(*next, *engine_, corrected, now_);
    EXPECT_EQ(Numbers(*replica, now_), Numbers(*engine_, now_)) << "a replica has other numbers";
    EXPECT_EQ(replica->Digest(), engine_->Digest());
    EXPECT_EQ(next->Digest(), engine_->Digest());
    engine_ = std::move(next);
    journal_.Take(*engine_);
    CompareWithTwin(*twin);
    ++restarts_;
  }

  std::vector<std::string> TakeFaults() { return std::exchange(faults_, {}); }
  int64_t binds() const { return binds_; }
  int64_t refusals() const { return refusals_; }
  int64_t promises() const { return promises_; }
  int64_t compared() const { return compared_; }
  int64_t restarts() const { return restarts_; }

 private:
  using Pods = std::map<PodUid, ServerPod>;

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  void Fault(std::string text) { faults_.push_back(std::move(text)); }
  void Pass(Millis time) {
    now_ += time;
    engine_->Tick(now_);
  }
  Pods::iterator AnyPod() {
    return std::next(pods_.begin(), Below(static_cast<int64_t>(pods_.size())));
  }

  static GpuPolicy Defaults() {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    return policy;
  }
  // An engine that has heard everything there is to hear.
  std::unique_ptr<Engine> Start(const test::Objects& objects, MeterHistory history = {}) {
    auto engine = std::make_unique<Engine>(EngineOptions{});
    engine->Restore(std::move(history));
    engine->SetPolicies(test::Declare(objects), Defaults(), now_);
    for (const auto& [uid, pod] : pods_) engine->UpsertPod(pod.facts, now_);
    for (const auto& [name, node] : nodes_) engine->UpsertNode(node, now_);
    engine->FinishRestore(now_);
    return engine;
  }

  // Amounts and owners change; nobody moves in the tree.
  void Edit() {
    const auto some = [this](int64_t most) { return std::to_string(Below(most + 1)); };
    Quota a("team-a"), b("team-b"), c("team-c"), org("org"), lab("lab");
    org.Line("h100", some(3)).Line("any", some(4));
    lab.Under("org").Line("h100", some(2), some(6));
    a.Under("lab").Owns("a").Line("h100", some(6), some(4), some(6)).Line("t4", some(3));
    b.Under("lab").Owns("b").Line("h100", some(6)).Line("a100-80gb", some(2));
    c.Under("org").Owns(Below(2) ? "c" : "d").Line("any", some(6), some(4)).Weight(Below(4));
    if (Below(4) == 0) c.Mode(QuotaMode::kObserve);
    if (Below(2) == 0) a.PoolLine("h100", "spot", some(4));
    if (Below(3) == 0) org.PoolLine("any", "spot", some(4));
    test::Objects objects;
    objects.quotas = {org, lab, a, b, c};
    objects.budgets = {test::DayBudget("team-a", 20 + Below(60)),
                       test::DayBudget("lab", 60 + Below(100)),
                       test::DayBudget("team-b", 20 + Below(60), OnExhaustion::kDemote)};
    objects.budgets[1].meter_from = MeterFrom::kRunning;
    objects.budgets[1].rollover_max_percent = 50;
    objects.budgets[1].rollover_max_windows = 1;
    objects.budgets[1].max_debt_percent = 20;
    if (Below(2) == 0) objects.budgets[0].rates = {{"any@spot", 500}, {"h100", 2000}};
    if (Below(3) != 0) objects.pools = {test::Pool("spot")};
    objects.classes = {test::Class("serve", 3, Preemptible::kNever), test::Class("train"),
                       test::Class("scavenge", 0)};
    objects.classes[2].charge_factor = 250;
    objects_ = std::move(objects);
    if (engine_) engine_->SetPolicies(test::Declare(objects_), Defaults(), now_);
  }

  PodRequest RandomRequest(const std::string& name) {
    PodRequest request;
    switch (Below(6)) {
      case 0:
        request = test::FractionPod(name, 100 * (1 + Below(9)));
        break;
      case 1:
        request = test::SharedPod(name, 1);
        break;
      case 2:
        request = test::MigPod(name, Below(2) ? "1g.10gb" : "3g.40gb", 1);
        break;
      default:
        request = test::WholePod(name, 1 + Below(4));
    }
    static constexpr const char* kNamespaces[] = {"a", "a", "b", "b", "c", "d"};
    static constexpr const char* kClasses[] = {"", "train", "train", "serve", "scavenge"};
    request.name.ns = kNamespaces[Below(6)];
    request.priority_class = kClasses[Below(5)];
    if (Below(3) == 0) request.expected_runtime = Millis(Below(8 * 3'600'000));
    return request;
  }

  void Create() {
    if (pods_.size() > 40) return Delete();
    ServerPod pod;
    pod.facts = test::Pending(RandomRequest(fmt::format("p{}", next_++)));
    pod.facts.created = now_;
    engine_->UpsertPod(pod.facts, now_);
    pods_.emplace(pod.facts.request.uid, std::move(pod));
  }

  void TryToBind() {
    if (pods_.empty()) return;
    ServerPod& pod = AnyPod()->second;
    const PodRequest& request = pod.facts.request;
    if (pod.writing || !pod.target.empty() || pod.facts.phase != PodPhase::kPending) return;
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) names.push_back(name.str());
    engine_->Filter(request, names, now_, answer_);
    if (answer_.chosen.empty()) return CheckRefusal(request, answer_.reason);
    const NodeName node(names[answer_.chosen[0]]);
    // Another pod may come between filter and bind; the quota is asked again.
    if (Below(3) == 0) TryToBind();
    if (pod.writing) return;
    const BindPlan plan = engine_->Bind(request.name, request.uid, node, now_);
    if (plan.kind != BindPlan::Kind::kWrite) return CheckRefusal(request, plan.reason);
    pod.writing = true;
    pod.target = node;
    pod.planned = plan.allocation;
    CheckCommit(request.uid);
  }

  void EndBind() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.writing) continue;
      pod.writing = false;
      const int64_t fate = Below(5);
      if (fate <= 2) {  // written
        pod.facts.node = pod.target;
        pod.facts.bound_at = now_;
        pod.facts.phase = PodPhase::kRunning;
        pod.facts.allocation = pod.planned;
        ++binds_;
      }
      if (fate == 2 || fate == 3) {  // the answer is lost
        return engine_->SettleBind(uid, pod.target, BindOutcome::kUnknown, now_);
      }
      const bool ours = !pod.facts.node.empty();
      engine_->SettleBind(uid, pod.target, ours ? BindOutcome::kBound : BindOutcome::kNotBound,
                          now_);
      if (!ours) pod.target = NodeName();
      return;
    }
  }

  void Finish() {
    if (pods_.empty()) return;
    ServerPod& pod = AnyPod()->second;
    if (!pod.facts.holds_devices()) return;
    if (!pod.facts.running_at) {
      pod.facts.running_at = now_;
    } else {
      pod.facts.phase = PodPhase::kSucceeded;
      pod.facts.finished_at = now_;
    }
    engine_->UpsertPod(pod.facts, now_);
  }

  void Delete() {
    if (pods_.empty()) return;
    const auto at = AnyPod();
    // Of a bind that nobody knows the end of, a restart could not tell that it never was.
    if (at->second.writing || (!at->second.target.empty() && at->second.facts.node.empty())) return;
    engine_->UpsertPod(at->second.facts, now_);
    if (Below(3) > 0) {
      engine_->DeletePod(at->first, now_);
    } else {
      gone_unseen_.push_back(at->first);  // the DELETED event is late
    }
    pods_.erase(at);
  }

  void Deliver() {
    for (const PodUid& uid : gone_unseen_) engine_->DeletePod(uid, now_);
    gone_unseen_.clear();
    for (int i = 0; i < 4 && !pods_.empty(); ++i) {
      const auto at = AnyPod();
      engine_->UpsertPod(at->second.facts, now_);
      journal_.Take(*engine_);
      const std::size_t told = journal_.size();
      engine_->UpsertPod(at->second.facts, now_);
      journal_.Take(*engine_);
      if (journal_.size() != told) Fault("the same news twice was told twice");
    }
  }

  void TouchNode() {
    NodeFacts& node = std::next(nodes_.begin(), Below(5))->second;
    if (Below(6) == 0) {
      node.labels = node.labels == in_pool_ ? LabelText() : in_pool_;
    } else if (Below(2) == 0) {
      node.cordoned = !node.cordoned && Below(3) == 0;
    } else if (node.lost_since) {
      node.lost_since.reset();
      node.ready = true;
    } else if (Below(3) == 0) {
      node.lost_since = now_ - Millis(Below(60'000));
      node.ready = false;
    }
    engine_->UpsertNode(node, now_);
  }

  void Rarely() {
    switch (Below(6)) {
      case 0:
      case 1:
        return Edit();
      case 2: {
        const Instant to = now_ + Millis(Below(7'200'000));
        engine_->StepClock(now_, to);
        now_ = to;
        return;
      }
      case 3:
        return Restart();
      default:
        return WaitForBudget();
    }
  }

  // (31) Nothing is let in before the moment its budget named.
  void WaitForBudget() {
    for (const auto& [uid, pod] : pods_) {
      const std::optional<PodView> view = engine_->Pod(uid);
      if (!view || view->reason != Reason::kBudgetExhausted || !view->eligible_at) continue;
      if (view->state != PodState::kPending) continue;
      const PodRequest request = pod.facts.request;
      std::vector<std::string_view> names;
      for (const auto& [name, node] : nodes_) names.push_back(name.str());
      engine_->Filter(request, names, now_, answer_);
      const std::optional<Instant> eligible = engine_->Pod(uid)->eligible_at;
      if (answer_.reason != Reason::kBudgetExhausted || !eligible) continue;
      for (int i = 0; i < 3 && now_ + Millis(1) < *eligible; ++i) {
        Pass(Millis(1 + Below((*eligible - now_).count() - 1)));
        if (engine_->WhatIf({&request, 1}, now_)[0].fits) {
          Fault(fmt::format("(31) {} fits {} ms before it was said to", uid.str(),
                            (*eligible - now_).count()));
        }
      }
      ++promises_;
      return;
    }
  }

  // ---- invariants

  void Check() {
    for (std::string& fault : journal_.TakeFaults()) Fault(std::move(fault));
    for (std::string& fault : engine_->Audit()) Fault(std::move(fault));
    Charge open, recount;
    for (const auto& [uid, row] : journal_.open()) {
      for (const ModelCharge& part : row.opened.parts) open = Plus(open, part.charge);
    }
    for (const PodView& pod : engine_->Pods({}, {}, 1000)) {
      if (pod.state != PodState::kBound && pod.state != PodState::kReserved) continue;
      const auto known = requests_.try_emplace(pod.uid).first;
      if (const auto at = pods_.find(pod.uid); at != pods_.end()) {
        known->second = at->second.facts.request;
      }
      recount = Plus(recount, Recount(known->second));
    }
    const Charge held = engine_->HeldQuanta();
    if (open != held || recount != held) {
      Fault(fmt::format("(4) journal {}/{}, engine {}/{}, pods {}/{}", open.compute, open.memory,
                        held.compute, held.memory, recount.compute, recount.memory));
    }
    for (std::string& fault : DeviceFaults(journal_, nodes_)) Fault(std::move(fault));
    for (const auto& [uid, reason] : engine_->Waiting()) {
      const auto at = pods_.find(uid);
      if (at != pods_.end() && !at->second.target.empty() && at->second.writing) {
        Fault(fmt::format("(30) {} is placed and waits still", uid.str()));
      }
    }
  }

  // (6, 7) What was let in leaves its team, and all above, within what they may have.
  void CheckCommit(const PodUid& uid) {
    journal_.Take(*engine_);
    const MeterEvent& opened = journal_.open().at(uid).opened;
    for (const QuotaView& view : engine_->Quotas(now_)) {
      if (view.report.name != opened.leaf || view.report.mode != QuotaMode::kEnforce) continue;
      for (const QuotaLineReport& report : view.report.lines) {
        const QuotaLineView& line = report.line;
        if (line.name != kAnyModel && line.name != LineIn(view, opened.parts[0].model)) continue;
        if (line.available.compute < 0 || line.available.memory < 0) {
          Fault(fmt::format("(6) {} let in, {} of {} has {}/{} left", uid.str(), line.name,
                            opened.leaf, line.available.compute.saturated(),
                            line.available.memory.saturated()));
        }
      }
    }
  }

  // (29) The reason is true: a tree put together anew from the journal refuses for it as well.
  void CheckRefusal(const PodRequest& request, Reason reason) {
    if (reason == Reason::kNone) return Fault("(29) refused for no reason");
    const bool by_tree = reason >= Reason::kExceedsMaxQuota && reason <= Reason::kWaitingForQuota;
    if (!by_tree || request.priority_class == "serve") return;
    ++refusals_;
    journal_.Take(*engine_);
    std::set<std::string> suspended;
    for (const QuotaView& view : engine_->Quotas(now_)) {
      if (view.report.suspended) suspended.insert(view.report.name);
    }
    std::string leaf;
    for (const GpuQuota& quota : objects_.quotas) {
      const Labels labels = LabelsOfUnknownNamespace(request.name.ns);
      if (quota.namespaces && quota.namespaces->Matches(labels)) leaf = quota.name;
    }
    const QuotaTree tree = TreeOf(objects_.quotas, suspended, journal_);
    if (!RefusedFor(tree, leaf, request, reason)) {
      Fault(fmt::format("(29) {} of {} is said to wait for {}", request.name.str(), leaf,
                        Describe(reason).code));
    }
  }

  // (32) One that only watches says what one that enforces does, and refuses nothing for it.
  void CompareWithTwin(Engine& twin) {
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) names.push_back(name.str());
    const auto is_quota = [](Reason reason) {
      return reason >= Reason::kBudgetExhausted && reason <= Reason::kWaitingForQuota;
    };
    for (const auto& [uid, pod] : pods_) {
      if (pod.facts.phase != PodPhase::kPending) continue;
      // Claims of the pods before end first.
      Pass(Millis(10'001));
      twin.Tick(now_);
      engine_->Filter(pod.facts.request, names, now_, answer_);
      const Reason enforced = answer_.reason;
      const PodView by_enforcer = *engine_->Pod(uid);
      twin.Filter(pod.facts.request, names, now_, answer_);
      const Reason watched = twin.Pod(uid)->observed;
      if (is_quota(answer_.reason) || answer_.reason == Reason::kYieldingTo) {
        Fault(fmt::format("(32) {} is refused by one that watches", uid.str()));
      }
      if (enforced == Reason::kYieldingTo || by_enforcer.observed != Reason::kNone) continue;
      const Reason expected = is_quota(enforced) ? enforced : Reason::kNone;
      if (watched != expected) {
        Fault(fmt::format("(32) {}: {} enforced, {} watched", uid.str(), Describe(expected).code,
                          Describe(watched).code));
      }
      ++compared_;
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<Engine> engine_;
  test::Objects objects_;
  Instant now_ = At(0);
  std::map<NodeName, NodeFacts> nodes_;
  Pods pods_;
  std::map<PodUid, PodRequest> requests_;  // also of pods whose end the engine has not heard of
  std::vector<PodUid> gone_unseen_;
  Journal journal_;
  const LabelText in_pool_{Labels{{"pool", "spot"}}};
  std::vector<std::string> faults_;
  FilterAnswer answer_;
  int64_t next_ = 0;
  int64_t binds_ = 0;
  int64_t refusals_ = 0;
  int64_t promises_ = 0;
  int64_t compared_ = 0;
  int64_t restarts_ = 0;
};

TEST(EngineQuotaStream, InvariantsHoldAfterEveryStep) {
  const int64_t steps = FromEnvironment("TRANCHE_STEPS", 60'000);
  const auto first_seed = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  int64_t binds = 0, refusals = 0, promises = 0, compared = 0, restarts = 0;
  for (int64_t done = 0; done < steps; done += kStepsPerSeed) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(done / kStepsPerSeed);
    QuotaStream stream(seed);
    for (int64_t step = 0; step < std::min(kStepsPerSeed, steps - done); ++step) {
      stream.Step();
      for (const std::string& fault : stream.TakeFaults()) {
        ADD_FAILURE() << "TRANCHE_SEED=" << seed << " step " << step << ": " << fault;
      }
      if (HasFailure()) FAIL() << "replay with TRANCHE_SEED=" << seed << " TRANCHE_STEPS=1000";
    }
    binds += stream.binds();
    refusals += stream.refusals();
    promises += stream.promises();
    compared += stream.compared();
    restarts += stream.restarts();
  }
  fmt::print(
      "{} steps: {} binds, {} refusals, {} promises, {} compared, {} restarts, seeds from {}\n",
      steps, binds, refusals, promises, compared, restarts, first_seed);
  EXPECT_GT(binds, steps / 100) << "the streams hardly bind anything: the test says little";
  EXPECT_GT(refusals, steps / 200) << "the streams hardly meet a quota";
  EXPECT_GT(compared, steps / 200) << "the streams hardly compare anything";
}

}  // namespace THIS_FILE
}  // namespace tranche
