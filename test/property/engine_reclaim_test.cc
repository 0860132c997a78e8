// Random clusters where teams take GPUs back from each other: arrivals, verbs, plans, evictions
// that the server takes, refuses, loses or forgets, pods that leave, edits, restarts. Numbers in
// brackets are the quota model's invariants (section 9). After every step the books are sound
// (Audit: devices, quota, earmarks), and
//   (15) nobody is asked to leave whom R4 protects
//   (17) when a reclaim has all its victims gone, its pod fits where its room is kept
//   (20) nobody's work is evicted within the owner's rest
//   (21) what is kept is given to nobody else
// and no gang is left in part: once a pod of it was evicted, more than it can spare go or none, but
// for those that nobody may evict.
// At the end no reclaim runs for ever: each is done or given up once its pods have gone or come.
//   TRANCHE_SEED=7 TRANCHE_STEPS=1000 property_tests --gtest_filter='EngineReclaimStream*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "scheduler/engine/engine.h"
#include "test/builders/budget_history.h"
#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::FromEnvironment;
using test::Quota;
using test::StockNode;

constexpr int64_t kStepsPerSeed = 400;
constexpr Millis kRest{600'000};  // cooldown of every class here

class ReclaimStream {
 public:
  explicit ReclaimStream(uint64_t seed) : random_(seed) {
    nodes_ = {StockNode("h1", 8), StockNode("h2", 4), StockNode("t4", 4, "Tesla-T4", 15109)};
    objects_ = Declared();
    Start({});
  }

  void Step() {
    now_ += Below(10) == 0 ? Millis(Below(900'000)) : Millis(Below(5'000));
    const int64_t dice = Below(20);
    if (dice < 5) Create();
    if (dice >= 5 && dice < 12) Schedule();
    if (dice >= 12 && dice < 16) Plan();
    if (dice == 16) End();
    if (dice == 17) Leave();
    if (dice == 18 && Below(4) == 0) Budget(Below(2) == 0 ? "a" : "b", Below(2));
    if (dice == 19 && Below(8) == 0) Restart();
    engine_->Tick(now_);
    Carry();
    Leave();
    if (++steps_ % 7 == 0) Rest();
    Check();
  }

  // When all that can be done is done, nothing is due before something changes or time passes.
  void Rest() {
    constexpr int kMostRounds = 200;
    std::optional<Instant> due;
    int rounds = 0;
    do {
      while (engine_->PlanNext(now_) && ++rounds < kMostRounds) Carry();
      due = engine_->Tick(now_);
      Carry();
    } while (due && *due <= now_ && ++rounds < kMostRounds);
    EXPECT_LT(rounds, kMostRounds) << "a turn that does not come to rest";
  }

  // Nobody waits any more, and time passes.
  void Finish() {
    for (auto at = pods_.begin(); at != pods_.end();) {
      const bool waits = at->second.node.empty();
      if (waits) engine_->DeletePod(at->first, now_);
      at = waits ? pods_.erase(at) : std::next(at);
    }
    for (const char* ns : {"a", "b"}) Budget(ns, 1'000);
    for (int i = 0; i < 40; ++i) {
      now_ += Millis(60'000);
      engine_->Tick(now_);
      Plan();
      Carry();
      Leave();
    }
    for (const Reclaim& reclaim : engine_->Reclaims()) {
      EXPECT_TRUE(reclaim.finished()) << reclaim.name << " " << ReclaimPhaseName(reclaim.phase);
    }
    CheckGangs();
    Check();
  }

  int64_t evictions() const { return evictions_; }
  int64_t done() const { return done_; }

 private:
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  test::Objects Declared() {
    test::Objects objects;
    const auto gpus = [this](int64_t most) { return std::to_string(Below(most)); };
    Quota org("org");
    if (Below(2) == 0) org.CrossLeaf(2);
    objects.quotas = {org, Quota("group").Under("org").Line("h100", gpus(3)),
                      Quota("a").Under("group").Owns("a").Line("h100", gpus(6)),
                      Quota("b").Under("group").Owns("b").Line("h100", gpus(6)),
                      Quota("c").Under("org").Owns("c").Line("h100", gpus(6)).Line("any", "6")};
    objects.classes = {Class("serve", 3, Preemptible::kNever),
                       Class("train", 2),
                       Class("shy", 2, Preemptible::kOverQuota),
                       Class("low", 1),
                       Class("burst", 2, Preemptible::kOverNominal),
                       Class("low-burst", 1, Preemptible::kOverNominal),
                       Class("scavenge", 0)};
    for (GpuClass& gpu_class : objects.classes) {
      gpu_class.cooldown = kRest;
      gpu_class.min_runtime = Millis(Below(2) * 30'000);
    }
    return objects;
  }

  void Start(std::vector<Reclaim> reclaims) {
    engine_ = std::make_unique<Engine>(EngineOptions{});
    engine_->SetPolicies(test::Declare(objects_), GpuPolicy(), now_);
    for (const NodeFacts& node : nodes_) engine_->UpsertNode(node, now_);
    for (const auto& [uid, pod] : pods_) engine_->UpsertPod(pod, now_);
    engine_->RestoreReclaims(std::move(reclaims));
    engine_->FinishRestore(now_);
  }
  void Restart() {
    orders_.clear();
    Start(engine_->Reclaims());
  }

  void Create() {
    static constexpr const char* kTeams[] = {"a", "b", "c"};
    static constexpr const char* kClasses[] = {"serve", "train",    "train", "shy",
                                               "low",   "scavenge", "burst", "low-burst"};
    const std::string name = "p" + std::to_string(++serial_);
    PodRequest request = Below(4) == 0 ? test::FractionPod(name, 250 * (1 + Below(3)))
                                       : test::WholePod(name, 1 + Below(4));
    request.name.ns = kTeams[Below(3)];
    request.priority_class = kClasses[Below(8)];
    if (Below(5) == 0) {
      request.gang = "g" + std::to_string(serial_ / 3);
      request.gang_size = static_cast<int>(Below(3));
    }
    PodFacts pod = test::Pending(request);
    pod.evictable = Below(10) != 0;
    pod.created = now_;
    pod.unschedulable = Below(2) == 0;
    if (Below(3) == 0) pod.owner = "job-" + std::to_string(Below(6));
    pod.labels = std::make_shared<const Labels>(Labels{{"app", Below(4) == 0 ? "kept" : "loose"}});
    pods_[request.uid] = pod;
    engine_->UpsertPod(pod, now_);
  }

  std::optional<PodUid> Any(bool waiting) {
    std::vector<PodUid> some;
    for (const auto& [uid, pod] : pods_) {
      if (pod.node.empty() == waiting) some.push_back(uid);
    }
    if (some.empty()) return std::nullopt;
    return some[static_cast<std::size_t>(Below(static_cast<int64_t>(some.size())))];
  }

  void Schedule() {
    const auto uid = Any(true);
    if (!uid) return;
    PodFacts& pod = pods_.at(*uid);
    const std::vector<std::string_view> names = {"h1", "h2", "t4"};
    FilterAnswer answer;
    engine_->Filter(pod.request, names, now_, answer);
    if (answer.chosen.empty() || Below(8) == 0) return;
    const NodeName node{std::string(names[answer.chosen.front()])};
    const BindPlan plan = engine_->Bind(pod.request.name, *uid, node, now_);
    if (plan.kind != BindPlan::Kind::kWrite) return;
    if (Below(8) == 0) {
      engine_->SettleBind(*uid, node, BindOutcome::kNotBound, now_);
      return;
    }
    if (Below(2) == 0) engine_->SettleBind(*uid, node, BindOutcome::kBound, now_);
    pod.node = node;
    pod.allocation = plan.allocation;
    pod.bound_at = now_;
    pod.running_at = now_;
    pod.unschedulable = false;
    engine_->UpsertPod(pod, now_);
  }

  void Plan() {
    for (int i = 0; i < 8 && engine_->PlanNext(now_); ++i) Carry();
  }

  void End() {
    const auto uid = Any(Below(3) == 0);
    if (!uid) return;
    engine_->DeletePod(*uid, now_);
    pods_.erase(*uid);
  }

  void Budget(const std::string& ns, int64_t allowed) {
    DisruptionBudget budget;
    budget.ns = ns;
    budget.name = "pdb";
    budget.selector = LabelSelector{{{"app", "kept"}}, {}};
    budget.allowed = allowed;
    engine_->SetDisruptionBudget(budget, now_);
  }

  // What the shell would do, with an API server that has moods.
  void Carry() {
    for (int rounds = 0; rounds < 50; ++rounds) {
      ReclaimWork work = std::exchange(engine_->effects().reclaims, {});
      for (const Reclaim& reclaim : work.changed) {
        done_ += reclaim.phase == ReclaimPhase::kDone;
        if (reclaim.phase == ReclaimPhase::kReserved) reserved_.insert(reclaim.name);
      }
      for (EvictionOrder& order : work.evictions) {
        CheckOrder(order);
        orders_.push_back(std::move(order));
      }
      if (orders_.empty() || (rounds == 0 && Below(3) == 0)) return;
      const EvictionOrder order = orders_.back();
      orders_.pop_back();
      Answer(order);
    }
  }

  void Answer(const EvictionOrder& order) {
    const auto found = pods_.find(order.uid);
    if (found == pods_.end()) {
      engine_->SettleEviction(order.reclaim, order.uid, EvictionOutcome::kGone, {}, now_);
      return;
    }
    static constexpr EvictionOutcome kMoods[] = {
        EvictionOutcome::kFailed, EvictionOutcome::kBlocked, EvictionOutcome::kForbidden};
    if (Below(12) == 0) {
      const EvictionOutcome mood = kMoods[Below(3)];
      if (mood == EvictionOutcome::kFailed) doubted_.insert(order.uid);
      engine_->SettleEviction(order.reclaim, order.uid, mood, {}, now_);
      return;
    }
    ++evictions_;
    NoteEvicted(order);
    PodFacts& pod = found->second;
    NoteGang(pod.request);
    pod.terminating = true;
    pod.deletion_at = now_ + Millis(Below(60'000));
    const bool news_first = Below(2) == 0;
    if (news_first) engine_->UpsertPod(pod, now_);
    engine_->SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, {}, now_);
    if (!news_first) engine_->UpsertPod(pod, now_);
  }

  // (20): of one reclaim the owner's pods go together.
  void NoteEvicted(const EvictionOrder& order) {
    const std::vector<Reclaim> all = engine_->Reclaims();
    const auto reclaim = std::ranges::find(all, order.reclaim, &Reclaim::name);
    const std::string& owner =
        std::ranges::find(reclaim->victims, order.uid, &ReclaimVictim::uid)->owner;
    const auto last = evicted_.find(owner);
    // What ran all along is not protected.
    if (last != evicted_.end() && *pods_.at(order.uid).bound_at > last->second.first) {
      EXPECT_GE(now_ - last->second.first, kRest) << "(20) " << owner;
    }
    evicted_[owner] = {now_, order.reclaim};
  }

  static std::string GangOf(const PodRequest& request) {
    return request.gang.empty() ? "" : request.name.ns + "/" + request.gang;
  }
  // Those that ran with it when its first pod was evicted.
  void NoteGang(const PodRequest& request) {
    const std::string gang = GangOf(request);
    if (gang.empty() || begun_.contains(gang)) return;
    for (const auto& [uid, pod] : pods_) {
      if (GangOf(pod.request) == gang && !pod.node.empty() && !pod.terminating)
        begun_[gang].insert(uid);
    }
  }
  void CheckGangs() {
    for (const auto& [gang, members] : begun_) {
      int size = 0, staying = 0;
      bool taken = false;
      for (const PodUid& uid : members) {
        const auto pod = pods_.find(uid);
        if (pod == pods_.end() || pod->second.terminating) continue;
        size = std::max(size, pod->second.request.gang_size);
        taken |= pod->second.evictable && pod->second.request.priority_class != "serve";
        ++staying;
      }
      EXPECT_TRUE(!taken || (size > 0 && staying >= size))
          << gang << ": " << staying << " of " << members.size() << " left, needs " << size;
    }
  }

  // Pods whose grace is over leave, most of them.
  void Leave() {
    for (auto at = pods_.begin(); at != pods_.end();) {
      const PodFacts& pod = at->second;
      const bool leaves = pod.terminating && now_ >= *pod.deletion_at && Below(6) != 0;
      const PodUid uid = at->first;
      at = leaves ? pods_.erase(at) : std::next(at);
      if (!leaves) continue;
      engine_->DeletePod(uid, now_);
      TakeOrders();
    }
  }
  // After every call, as the shell does: what was asked for is judged by the books of that moment.
  void TakeOrders() {
    ReclaimWork work = std::exchange(engine_->effects().reclaims, {});
    for (const Reclaim& reclaim : work.changed) done_ += reclaim.phase == ReclaimPhase::kDone;
    for (EvictionOrder& order : work.evictions) {
      CheckOrder(order);
      orders_.push_back(std::move(order));
    }
  }

  // R1 may choose whom to take of it.
  bool Borrows(const std::string& leaf) {
    for (const QuotaView& view : engine_->Quotas(now_)) {
      if (view.report.name != leaf) continue;
      return std::ranges::any_of(view.report.lines, [](const QuotaLineReport& line) {
        return GpuEquivalents(line.line.borrowed) > 0;
      });
    }
    return false;
  }

  void CheckOrder(const EvictionOrder& order) {
    const std::vector<Reclaim> all = engine_->Reclaims();
    const auto reclaim = std::ranges::find(all, order.reclaim, &Reclaim::name);
    ASSERT_NE(reclaim, all.end());
    const auto found = pods_.find(order.uid);
    if (found == pods_.end()) return;  // the engine has not heard yet
    const PodFacts& pod = found->second;
    EXPECT_TRUE(pod.evictable) << order.pod.str();
    EXPECT_FALSE(pod.terminating) << order.pod.str();
    EXPECT_NE(pod.request.priority_class, "serve")
        << "(15) never preempted, by " << ReclaimRuleName(reclaim->rule) << " " << pod.request.gang;
    const std::optional<PodView> view = engine_->Pod(order.uid);
    ASSERT_TRUE(view);
    // Room that is kept in its team counts in what is shown, and not in who may go.
    const bool keeps_room = std::ranges::any_of(all, [&](const Reclaim& one) {
      return !one.finished() && one.leaf == view->leaf && !one.members.empty();
    });
    // What is left of a gang that has begun to go may fit its nominal now, and goes with it; so may
    // a pod that perhaps has been evicted already.
    const bool begun = begun_.contains(GangOf(pod.request)) || doubted_.contains(order.uid);
    const bool bursts = pod.request.priority_class.ends_with("burst");
    if (bursts && !keeps_room && !begun && reclaim->rule != ReclaimRule::kGang) {
      EXPECT_NE(view->quota_state, QuotaState::kInQuota)
          << "within nominal, by " << ReclaimRuleName(reclaim->rule) << " " << pod.request.gang;
    }
    if (view->leaf != reclaim->leaf && view->quota_state == QuotaState::kInQuota && !begun) {
      EXPECT_TRUE(reclaim->rule == ReclaimRule::kR1 && Borrows(view->leaf))
          << "(15) another team's own, by " << ReclaimRuleName(reclaim->rule) << " "
          << pod.request.gang;
    }
    if (reclaim->rule == ReclaimRule::kR2a) {
      EXPECT_NE(pod.request.priority_class, "shy");
    }
  }

  void Check() {
    const std::vector<std::string> faults = engine_->Audit();
    ASSERT_TRUE(faults.empty()) << faults.front();
    // (17, 21): every reservation's pod would be taken where its room is kept.
    for (const Reclaim& reclaim : engine_->Reclaims()) {
      if (reclaim.phase != ReclaimPhase::kReserved) continue;
      for (const ReclaimMember& member : reclaim.members) {
        if (member.placed || !pods_.contains(member.uid)) continue;
        const std::string node = member.node.str();
        const std::vector<std::string_view> names = {node};
        FilterAnswer answer;
        engine_->Filter(pods_.at(member.uid).request, names, now_, answer);
        const bool gives_way = answer.reason == Reason::kYieldingTo;
        EXPECT_TRUE(!answer.chosen.empty() || gives_way)
            << reclaim.name << ": " << Describe(answer.reason).code;
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<NodeFacts> nodes_;
  test::Objects objects_;
  Instant now_ = At(0);
  std::unique_ptr<Engine> engine_;
  std::map<PodUid, PodFacts> pods_;  // as the server has them
  std::vector<EvictionOrder> orders_;
  std::map<std::string, std::pair<Instant, std::string>> evicted_;  // owner -> when, by which
  std::set<std::string> reserved_;
  std::set<PodUid> doubted_;                       // the answer to their eviction was lost
  std::map<std::string, std::set<PodUid>> begun_;  // gang -> its pods at its first eviction
  int64_t steps_ = 0;
  int64_t serial_ = 0;
  int64_t evictions_ = 0;
  int64_t done_ = 0;
};

TEST(EngineReclaimStream, RandomStreamsKeepTheBooksAndTheRules) {
  const auto first = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  const int64_t steps = FromEnvironment("TRANCHE_STEPS", 16'000);
  int64_t evictions = 0, done = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(steps / kStepsPerSeed + 1);
       ++seed) {
    SCOPED_TRACE(fmt::format("TRANCHE_SEED={}", seed));
    ReclaimStream stream(seed);
    for (int64_t i = 0; i < kStepsPerSeed; ++i) {
      stream.Step();
      if (::testing::Test::HasFailure()) {
        std::printf("failed at seed %llu step %lld\n", static_cast<unsigned long long>(seed),
                    static_cast<long long>(i));
        return;
      }
    }
    stream.Finish();
    evictions += stream.evictions();
    done += stream.done();
    if (::testing::Test::HasFailure()) return;
  }
  std::printf("seeds from %llu: %lld evictions, %lld reclaims done\n",
              static_cast<unsigned long long>(first), static_cast<long long>(evictions),
              static_cast<long long>(done));
  EXPECT_GT(done, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
