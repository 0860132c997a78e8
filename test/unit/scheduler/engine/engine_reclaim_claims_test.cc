// Pods that hold GPUs by resource claims leave for those who are entitled, with all who use the
// same claim. A node that only resource slices describe has four GPUs, a stock one has two; each of
// two teams owns two.
#include "test/unit/scheduler/dra/devices.h"
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";

class ReclaimOfClaims : public EngineReclaimTest {
 protected:
  void SetUp() override {
    NodeFacts node;
    node.name = NodeName("d1");
    node.ready = true;
    Nodes({node, StockNode("s1", 2)});
    std::vector<dra::Device> devices;
    for (int i = 0; i < 4; ++i) {
      devices.push_back(
          dra::GpuDevice(fmt::format("gpu-{}", i), fmt::format("uuid-{}", i), kH100, 81559));
    }
    Put(dra::NodeSlice("d1", std::move(devices)));
    for (dra::DeviceClass& each : dra::NvidiaClasses()) Put(each);
    Declare(Teams());
    engine_.FinishRestore(now_);
  }
  static test::Objects Teams() {
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "2"),
                       Quota("team-b").Under("org").Owns("b").Line("h100", "2")},
            .classes = {Class("serve", 3, Preemptible::kNever), Class("train", 2)}};
  }
  void Put(dra::Object object) { engine_.SetDraObject(std::move(object), now_); }

  // The claim of team b holds that GPU, and these pods run with it.
  void Hold(const std::string& claim, int gpu, const std::vector<std::string>& pods,
            const std::string& priority_class = "train") {
    for (const std::string& pod : pods) Use(pod, {claim}, priority_class);
    Allocate(claim, gpu, pods);
    for (const std::string& pod : pods) Start(pod);
    Pass(Minutes(1));
  }
  void Use(const std::string& name, const std::vector<std::string>& claims,
           const std::string& priority_class = "train") {
    PodFacts& pod = running_[PodUid(name)];
    pod.request.uid = PodUid(name);
    pod.request.name = {"b", name};
    pod.request.priority_class = priority_class;
    dra::PodClaims uses;
    for (const std::string& claim : claims) uses.claims.push_back({claim, claim, ""});
    pod.claims = std::make_shared<const dra::PodClaims>(std::move(uses));
    engine_.UpsertPod(pod, now_);
  }
  void Start(const std::string& name) {
    PodFacts& pod = running_.at(PodUid(name));
    pod.node = NodeName("d1");
    engine_.UpsertPod(pod, now_);
  }
  void Allocate(const std::string& name, int gpu, const std::vector<std::string>& pods) {
    dra::Claim claim = dra::ClaimOf(name, {{"gpu", {dra::Choice("gpu.nvidia.com", {}, 1)}}});
    claim.ns = "b";
    claim = dra::Holding(std::move(claim), {dra::Held("gpu", "d1", fmt::format("gpu-{}", gpu))});
    for (const std::string& pod : pods) claim.reserved_for.emplace_back(pod);
    Put(std::move(claim));
  }
  // The kubelet has ended the pod; the claim's controller comes later.
  void End(const std::string& pod) {
    running_.erase(PodUid(pod));
    engine_.DeletePod(PodUid(pod), now_);
    Collect();
  }
  void Deallocate(const std::string& claim) {
    engine_.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "b", claim}, now_);
    Collect();
  }
  ~ReclaimOfClaims() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }
};

TEST_F(ReclaimOfClaims, BorrowedClaimsAreGivenBackByThePodsThatUseThem) {
  for (int i = 0; i < 4; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  const PodRequest wants = Pod("a", "wants", 2, "serve");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for wants from pod-2 pod-3"));
  EXPECT_EQ(EvictAll(), "pod-2 pod-3");
  End("pod-3");
  End("pod-2");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 2/2 for wants from pod-2 pod-3"))
      << "their claims are still allocated";
  Deallocate("claim-3");
  Deallocate("claim-2");
  Pass(Millis(100));
  Collect();
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 2/2 for wants from pod-2 pod-3"));
  EXPECT_EQ(Try(wants), "s1");
  EXPECT_TRUE(Place(wants, "s1"));
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Done 2/2 for wants from pod-2 pod-3"));
}

// The first victim is gone and its claim still allocated when the second is asked for: the plan
// holds, and nobody else is evicted in place of what is about to come free.
TEST_F(ReclaimOfClaims, AClaimWhoseLastUserHasGoneIsOnItsWayOut) {
  for (int i = 0; i < 4; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  EXPECT_EQ(Try(Pod("a", "wants", 2, "serve")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(), "pod-2");
  End("pod-2");
  EXPECT_EQ(Evict(), "pod-3");
  End("pod-3");
  Plan();
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 2/2 for wants from pod-2 pod-3"));
}

// Its own object names another claim than the one that is reserved for it: what it holds nobody can
// tell, so nobody takes it away.
TEST_F(ReclaimOfClaims, AClaimThatItsPodDoesNotNameIsLeftAlone) {
  for (int i = 0; i < 4; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  Use("pod-3", {"another"});
  EXPECT_EQ(Try(Pod("a", "wants", 1, "serve")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "pod-2");
  while (engine_.ReachSlice(now_)) {
  }
}

TEST_F(ReclaimOfClaims, ThoseWhoShareAClaimLeaveTogetherOrNotAtAll) {
  Hold("claim-0", 0, {"pod-0"});
  Hold("claim-1", 1, {"pod-1"});
  Hold("pair", 2, {"left", "right"});
  const PodRequest wants = Pod("a", "wants", 2, "serve");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "left right");
}

TEST_F(ReclaimOfClaims, AClaimSomebodyProtectedUsesIsNobodysVictim) {
  Hold("claim-0", 0, {"pod-0"});
  Hold("claim-1", 1, {"pod-1"});
  Use("guarded", {"pair"}, "serve");
  Hold("pair", 2, {"plain"});
  Allocate("pair", 2, {"plain", "guarded"});
  Start("guarded");
  EXPECT_EQ(Try(Pod("a", "wants", 2, "serve")), "WaitingForQuota");
  Plan();
  EXPECT_THAT(EvictAll(), testing::Not(testing::HasSubstr("plain")));
}

TEST_F(ReclaimOfClaims, AClaimOfSomebodyUnknownIsNobodysVictim) {
  for (int i = 0; i < 3; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  Allocate("claim-2", 2, {"pod-2", "never-seen"});
  EXPECT_EQ(Try(Pod("a", "wants", 2, "serve")), "WaitingForQuota");
  Plan();
  EXPECT_THAT(EvictAll(), testing::Not(testing::HasSubstr("pod-2")));
}

// The claim is old and its pod young: the pod's own time counts.
TEST_F(ReclaimOfClaims, APodIsGuardedFromItsOwnStart) {
  test::Objects objects = Teams();
  objects.classes[1].min_runtime = Minutes(30);
  Declare(std::move(objects));
  for (int i = 0; i < 4; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  Pass(Minutes(60));
  for (const char* name : {"pod-2", "pod-3"}) {
    PodFacts& pod = running_.at(PodUid(name));
    pod.running_at = now_;
    engine_.UpsertPod(pod, now_);
  }
  EXPECT_EQ(Try(Pod("a", "wants", 2, "serve")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "blocked");
  Pass(Minutes(30));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "pod-2 pod-3");
}

TEST_F(ReclaimOfClaims, AVictimThatLeavesByItselfIsCountedOnce) {
  for (int i = 0; i < 4; ++i) Hold(fmt::format("claim-{}", i), i, {fmt::format("pod-{}", i)});
  PodFacts& leaving = running_.at(PodUid("pod-0"));
  leaving.terminating = true;
  leaving.deletion_at = now_ + Minutes(1);
  engine_.UpsertPod(leaving, now_);
  EXPECT_EQ(Try(Pod("a", "wants", 2, "serve")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "pod-3") << "the claim of pod-0 comes free anyway";
}

// The quota of a pod that was let in is kept for a moment: that is not had, and its team borrows
// nothing by it (seed 21797 of the simulator).
TEST_F(ReclaimOfClaims, NobodyLosesWorkToQuotaThatIsKeptForAMoment) {
  const PodRequest own[] = {Pod("b", "own-0", 1, "train"), Pod("b", "own-1", 1, "train")};
  for (const PodRequest& request : own) Run(request, "s1");
  Pass(Minutes(30));
  dra::Claim claim = dra::ClaimOf("soon", {{"gpu", {dra::Choice("gpu.nvidia.com", {}, 1)}}});
  claim.ns = "b";
  Put(claim);
  Use("waits", {"soon"}, "serve");
  ASSERT_THAT(Filter(running_.at(PodUid("waits")).request), testing::Contains("d1"));
  EXPECT_EQ(Try(Pod("a", "wants", 1, "serve")), "NoRoom");
  Plan();
  EXPECT_EQ(EvictAll(), "") << "both are within what their team owns";
  Allocate("soon", 0, {"waits"});
  Start("waits");
  Plan();
  EXPECT_EQ(EvictAll(), "own-1") << "now the team borrows";
}

TEST_F(ReclaimOfClaims, ADrainedBudgetEndsClaimsToo) {
  test::Objects objects = Teams();
  objects.budgets = {test::DayBudget("team-b", 1, OnExhaustion::kDrain)};
  Declare(std::move(objects));
  Hold("pair", 0, {"left", "right"});
  Pass(Minutes(100));
  Plan();
  EXPECT_EQ(EvictAll(), "left right");
}

// "one at 3600" of everybody who was warned.
std::vector<std::string> Warned(Engine& engine) {
  std::vector<std::string> texts;
  for (const RunLimitWarning& warning : std::exchange(engine.effects().reclaims.warnings, {})) {
    texts.push_back(
        fmt::format("{} at {}", warning.pod.name, (warning.leaves - test::At(0)).count() / 1000));
  }
  return texts;
}

TEST_F(ReclaimOfClaims, EachPodOfAClaimRunsAsLongAsItsClassLetsIt) {
  for (const bool told_late : {false, true}) {
    SCOPED_TRACE(told_late ? "its devices are told of last" : "its devices are told of first");
    test::Objects objects = Teams();
    objects.classes[1].max_runtime = Minutes(60);
    Declare(std::move(objects));
    const int64_t begin = (now_ - test::At(0)).count() / 1000;
    Use("long", {"c"}, "serve");
    Use("short", {"c"}, "train");
    for (const char* const pod : {"long", "short"}) running_.at(PodUid(pod)).running_at = now_;
    if (!told_late) Allocate("c", 0, {"long", "short"});
    for (const char* const pod : {"long", "short"}) Start(pod);
    if (told_late) Allocate("c", 0, {"long", "short"});
    Pass(Minutes(54));
    EXPECT_THAT(Warned(engine_), ElementsAre(fmt::format("short at {}", begin + 3600)));
    Plan();
    EXPECT_EQ(EvictAll(), "");
    Pass(Minutes(6));
    Plan();
    EXPECT_EQ(EvictAll(), "short");
    End("short");
    End("long");
    Deallocate("c");
  }
}

TEST_F(ReclaimOfClaims, WhereItsNodeIsEmptiedAPodOfAClaimStaysUntilItsOwnTimeIsOver) {
  test::Objects objects = Teams();
  objects.classes[1].max_runtime = Minutes(60);
  Declare(std::move(objects));
  Use("one", {"c"});
  running_.at(PodUid("one")).running_at = now_;
  running_.at(PodUid("one")).owner = "owner-of-one";
  Allocate("c", 0, {"one"});
  Start("one");
  ASSERT_TRUE(engine_.SetEmptied(NodeName("d1"), ReclaimRule::kMigLayout, now_));
  Pass(Minutes(20));
  Plan();
  EXPECT_EQ(EvictAll(), "");
  Pass(Minutes(34));
  Pass(Minutes(6));
  Plan();
  EXPECT_EQ(EvictAll(), "one");
}

TEST_F(ReclaimOfClaims, PodsOfClaimsLeaveANodeThatIsAboutToGo) {
  test::Objects objects = Teams();
  GpuPolicy policy;
  policy.name = "all";
  policy.namespaces = LabelSelector();
  policy.on_interruption = OnInterruption::kDrain;
  objects.policies = {policy};
  Declare(std::move(objects));
  Hold("c", 0, {"one"});
  NodeFacts node;
  node.name = NodeName("d1");
  node.ready = true;
  node.taints = {{"tranche.dev/interruption", "", "NoSchedule"}};
  engine_.UpsertNode(node, now_);
  Pass(Millis(1));
  Plan();
  EXPECT_EQ(EvictAll(), "one");
}

}  // namespace THIS_FILE
}  // namespace tranche
