// Random streams of events and verbs against a pretend API server, which alone knows the truth.
// After every step (hazards section D):
//   D1  no card and no MIG instance is given out twice, counted from what the server stores;
//   D2  the keys kubelet counts are never overdrawn by pods we bound;
//   D3  every reservation belongs to a pod that is pending or bound on that node;
//   D4  an engine rebuilt from the server's objects has the same books (at restarts);
//   D5  and so has a replica made from a copy of the engine (before restarts, binds under way too);
// and the engine's own audit is clean. One printed seed replays a run:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='EngineStream*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/replica.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct ServerPod {
  PodFacts facts;
  bool writing = false;  // a bind call without an answer yet
  NodeName target;
  Allocation planned;
};

class Stream {
 public:
  explicit Stream(uint64_t seed) : random_(seed), engine_(std::make_unique<Engine>(Options())) {
    policy_.unenforced_sharing = Permission::kAllow;
    test::SetPolicy(*engine_, policy_);
    AddNode(test::StockNode("stock-a", 8));
    AddNode(test::StockNode("stock-b", 4));
    AddNode(test::StockNode("one", 1, "Tesla-T4", 15109));
    AddNode(test::SharedNode("sliced", 2, 4, true));
    AddNode(test::SharedNode("sliced-plain", 2, 3, false));
    AddNode(test::MigNode("mig", 4, 2, {{"1g.10gb", 5}, {"2g.20gb", 2}, {"3g.40gb", 1}}));
    AddNode(test::HamiNode("hami", 4, 3));
  }

  void Step() {
    now_ += Millis(Below(2000));
    switch (Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Create();
      case 4:
      case 5:
      case 6:
      case 7:
        return Filter();
      case 8:
      case 9:
      case 10:
      case 11:
        return StartBind();
      case 12:
      case 13:
      case 14:
        return EndBind();
      case 15:
        return Finish();
      case 16:
        return Delete();
      case 17:
        return TouchNode();
      case 18:
        return WhatIf();
      default:
        return Below(40) == 0 ? Restart() : Deliver();
    }
  }

  std::vector<std::string> Faults() {
    std::vector<std::string> faults = engine_->Audit();
    CheckDevices(faults);
    CheckReservations(faults);
    if (!pods_.empty()) {
      for (const std::string& fault : engine_->AuditVerdicts(AnyPod()->second.facts.request)) {
        faults.push_back(fault);
      }
    }
    return faults;
  }

  void Restart() {
    ReplicaWalk walk;
    while (!walk.done()) engine_->CopySlice(walk, now_);
    EXPECT_EQ(MakeReplica(walk.Take())->Digest(), engine_->Digest()) << "D5";
    // Binds without an answer are lost with the process; what the server stored stays.
    for (auto& [uid, pod] : pods_) pod.writing = false;
    auto fresh = std::make_unique<Engine>(Options());
    test::SetPolicy(*fresh, policy_);
    for (const auto& [uid, pod] : pods_) fresh->UpsertPod(pod.facts, now_);
    for (const auto& [name, node] : nodes_) fresh->UpsertNode(node, now_);
    // The old engine sees what it missed; then both must agree.
    for (const PodUid& uid : gone_unseen_) engine_->DeletePod(uid, now_);
    gone_unseen_.clear();
    for (const auto& [name, node] : nodes_) engine_->UpsertNode(node, now_);
    for (const auto& [uid, pod] : pods_) {
      engine_->UpsertPod(pod.facts, now_);
      if (!pod.target.empty()) engine_->SettleBind(uid, pod.target, BindOutcome::kNotBound, now_);
    }
    EXPECT_EQ(fresh->Digest(), engine_->Digest());
    for (auto& [uid, pod] : pods_) pod.target = NodeName();
    engine_ = std::move(fresh);
    ++restarts_;
  }

  int64_t binds() const { return binds_; }
  int64_t restarts() const { return restarts_; }

 private:
  using Pods = std::map<PodUid, ServerPod>;

  static EngineOptions Options() { return {}; }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  void AddNode(const NodeFacts& node) {
    nodes_[node.name] = node;
    engine_->UpsertNode(node, now_);
  }
  Pods::iterator AnyPod() {
    return std::next(pods_.begin(), Below(static_cast<int64_t>(pods_.size())));
  }

  PodRequest RandomRequest(const std::string& name) {
    switch (Below(9)) {
      case 0:
        return test::WholePod(name, 1 + Below(4));
      case 1:
        return test::WholePod(name, 1);
      case 2:
        return test::FractionPod(name, 100 * (1 + Below(9)), 1 + Below(2));
      case 3:
        return test::FractionPod(name, 500);
      case 4:
        return test::SharedPod(name, 1 + Below(2));
      case 5:
        return test::MigPod(name, Below(2) ? "1g.10gb" : "3g.40gb", 1);
      case 6:
        return test::MigPod(name, "2g.20gb", 1 + Below(2));
      case 7:
        return test::HamiPod(name, 1 + Below(2), 1000 * (1 + Below(15)), 10 * Below(11));
      default:
        return WithInit(test::HamiPod(name, 1, 3000, 20));
    }
  }

  // An init container that needs more than the app container, and a sidecar beside both.
  PodRequest WithInit(PodRequest request) {
    request.containers = {{"warm", ContainerRole::kInit, 1},
                          {"side", ContainerRole::kSidecar, 1},
                          {"main", ContainerRole::kApp, 1}};
    Ask app = request.asks[0];
    Ask side = app, warm = app;
    warm.container = 0;
    warm.memory.value = 9000;
    side.container = 1;
    side.memory.value = 1000;
    app.container = 2;
    request.asks = {warm, side, app};
    request.pool_needs = {{"nvidia.com/gpu", 2}};
    return request;
  }

  void Create() {
    if (pods_.size() > 60) return Delete();
    ServerPod pod;
    pod.facts = test::Pending(RandomRequest(fmt::format("p{}", next_++)));
    const PodUid uid = pod.facts.request.uid;
    if (Below(4) > 0) engine_->UpsertPod(pod.facts, now_);
    pods_.emplace(uid, std::move(pod));
  }

  void Filter() {
    if (pods_.empty()) return;
    const auto at = AnyPod();
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) {
      if (Below(5) > 0) names.push_back(name.str());
    }
    engine_->Filter(at->second.facts.request, names, now_, answer_);
    std::set<uint32_t> positions;
    for (const uint32_t chosen : answer_.chosen) EXPECT_TRUE(positions.insert(chosen).second);
    for (const auto& [refused, reason] : answer_.refused) {
      EXPECT_NE(reason, Reason::kNone);
      EXPECT_TRUE(positions.insert(refused).second);
    }
    std::vector<std::string_view> chosen;
    for (const uint32_t position : answer_.chosen) chosen.push_back(names[position]);
    engine_->Prioritize(at->second.facts.request, chosen, now_, ranks_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      EXPECT_EQ(ranks_[i], std::max(10 - static_cast<int>(i), 0));
    }
  }

  // The verb is called for nodes filter named, and now and then for any other.
  void StartBind() {
    if (pods_.empty()) return;
    const auto at = AnyPod();
    ServerPod& pod = at->second;
    if (pod.writing) return;
    const PodRequest& request = pod.facts.request;
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) names.push_back(name.str());
    engine_->Filter(request, names, now_, answer_);
    const auto pick = answer_.chosen.empty() || Below(6) == 0
                          ? static_cast<std::size_t>(Below(static_cast<int64_t>(names.size())))
                          : answer_.chosen[0];
    const NodeName node(names[pick]);
    const BindPlan plan = engine_->Bind(request.name, request.uid, node, now_);
    if (plan.kind != BindPlan::Kind::kWrite) return;
    // Only a bind whose answer was lost may be written again. A finished pod that a restarted
    // engine never heard of may be planned too: the server refuses that write.
    EXPECT_TRUE(!pod.facts.holds_devices() || !pod.target.empty()) << "bound pod planned again";
    pod.writing = true;
    pod.target = node;
    pod.planned = plan.allocation;
  }

  void EndBind() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.writing) continue;
      pod.writing = false;
      const int64_t fate = Below(5);
      const bool written = fate <= 2;
      if (written && pod.facts.node.empty()) {
        pod.facts.node = pod.target;
        pod.facts.phase = PodPhase::kRunning;
        pod.facts.allocation = pod.planned;
        ++binds_;
      }
      if (fate == 2 || fate == 3) {  // the answer is lost, written or not
        engine_->SettleBind(uid, pod.target, BindOutcome::kUnknown, now_);
        return;
      }
      const bool ours = pod.facts.node == pod.target;
      engine_->SettleBind(uid, pod.target, ours ? BindOutcome::kBound : BindOutcome::kNotBound,
                          now_);
      if (!ours) pod.target = NodeName();
      return;
    }
  }

  void Finish() {
    if (pods_.empty()) return;
    const auto at = AnyPod();
    if (at->second.facts.node.empty() || at->second.writing) return;
    at->second.facts.phase = Below(2) ? PodPhase::kSucceeded : PodPhase::kFailed;
    engine_->UpsertPod(at->second.facts, now_);
  }

  void Delete() {
    if (pods_.empty()) return;
    const auto at = AnyPod();
    if (at->second.writing) return;
    if (Below(3) > 0) {
      engine_->DeletePod(at->first, now_);
    } else {
      gone_unseen_.push_back(at->first);  // the DELETED event is late
    }
    pods_.erase(at);
  }

  void TouchNode() {
    const auto at = std::next(nodes_.begin(), Below(static_cast<int64_t>(nodes_.size())));
    NodeFacts& node = at->second;
    // Mostly healthy, or the streams would place nothing.
    const bool well = Below(5) > 0;
    switch (Below(5)) {
      case 0:
        node.cordoned = !well;
        break;
      case 1:
        node.ready = well;
        break;
      case 2:
        if (node.gpu) node.gpu->allocatable = well ? node.gpu->capacity : 0;
        break;
      case 3:
        engine_->DeleteNode(node.name, now_);  // and back again at once
        break;
      default:
        if (node.agent) node.agent->devices[0].healthy = well;
    }
    engine_->UpsertNode(node, now_);
  }

  void WhatIf() {
    const std::string before = engine_->Digest();
    std::vector<PodRequest> requests;
    for (int i = 0; i < 3; ++i) requests.push_back(RandomRequest(fmt::format("w{}", i)));
    engine_->WhatIf(requests, now_);
    EXPECT_EQ(before, engine_->Digest());
  }

  void Deliver() {
    for (const PodUid& uid : gone_unseen_) engine_->DeletePod(uid, now_);
    gone_unseen_.clear();
    if (pods_.empty()) return;
    const auto at = AnyPod();
    engine_->UpsertPod(at->second.facts, now_);
  }

  // D1 and D2 from the server's objects alone.
  void CheckDevices(std::vector<std::string>& faults) const {
    std::map<std::string, int64_t> milli, mib, instances, keys;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.facts.holds_devices() || !pod.facts.allocation) continue;
      const std::string& node = pod.facts.node.str();
      for (const PoolNeed& need : pod.facts.request.pool_needs) {
        keys[node + " " + need.key] += need.count;
      }
      CountDevices(pod.facts, node, milli, mib, instances);
    }
    for (const auto& [card, sum] : milli) {
      if (sum > 1000) faults.push_back(fmt::format("D1: {} has {} milli", card, sum));
    }
    for (const auto& [card, sum] : mib) {
      const int64_t has = MemoryOf(card.substr(0, card.find(' ')));
      if (sum > has) faults.push_back(fmt::format("D1: {} has {} of {} MiB", card, sum, has));
    }
    for (const auto& [instance, users] : instances) {
      if (users > 1) faults.push_back(fmt::format("D1: {} has {} users", instance, users));
    }
    for (const auto& [key, sum] : keys) {
      const NodeFacts& node = nodes_.at(NodeName(key.substr(0, key.find(' '))));
      if (sum > CapacityOf(node, key.substr(key.find(' ') + 1))) {
        faults.push_back(fmt::format("D2: {} overdrawn with {}", key, sum));
      }
    }
  }

  static void CountDevices(const PodFacts& pod, const std::string& node,
                           std::map<std::string, int64_t>& milli,
                           std::map<std::string, int64_t>& mib,
                           std::map<std::string, int64_t>& instances) {
    // Init containers run before the others: the larger of the two phases counts.
    std::map<int, std::array<int64_t, 2>> steady, peak;
    for (const ContainerDevices& container : pod.allocation->containers) {
      ContainerRole role = ContainerRole::kApp;
      for (const ContainerInfo& info : pod.request.containers) {
        if (info.name == container.container) role = info.role;
      }
      for (const Device& device : container.devices) {
        if (device.mig) {
          instances[fmt::format("{} {}@{}", node, device.card, device.mig->start)] += 1;
          continue;
        }
        auto& target = role == ContainerRole::kInit ? peak : steady;
        target[device.card][0] += device.milli.count();
        target[device.card][1] += device.memory.count();
      }
    }
    for (const auto& [card, amounts] : peak) {
      auto& sum = steady[card];
      sum = {std::max(sum[0], amounts[0]), std::max(sum[1], amounts[1])};
    }
    for (const auto& [card, amounts] : steady) {
      milli[fmt::format("{} {}", node, card)] += amounts[0];
      mib[fmt::format("{} {}", node, card)] += amounts[1];
    }
  }

  int64_t MemoryOf(const std::string& node) const {
    return nodes_.at(NodeName(node)).memory->count();
  }

  static int64_t CapacityOf(const NodeFacts& node, const std::string& key) {
    if (key == "nvidia.com/gpu") return node.gpu ? node.gpu->capacity : 0;
    if (key == "nvidia.com/gpu.shared") return node.gpu_shared ? node.gpu_shared->capacity : 0;
    for (const MigResourceFacts& mig : node.mig) {
      if (FormatMigResource(mig.name) == key) return mig.count.capacity;
    }
    return 0;
  }

  // D3.
  void CheckReservations(std::vector<std::string>& faults) const {
    for (const auto& [uid, node] : engine_->StuckReservations(now_, Millis(0))) {
      const auto at = pods_.find(uid);
      const bool unseen = std::ranges::find(gone_unseen_, uid) != gone_unseen_.end();
      if (at == pods_.end() ? !unseen : at->second.target != node) {
        faults.push_back(fmt::format("D3: {} is reserved on {} for nobody", uid.str(), node.str()));
      }
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<Engine> engine_;
  GpuPolicy policy_;
  Instant now_ = At(0);
  std::map<NodeName, NodeFacts> nodes_;
  Pods pods_;
  std::vector<PodUid> gone_unseen_;
  FilterAnswer answer_;
  std::vector<int> ranks_;
  int64_t next_ = 0;
  int64_t binds_ = 0;
  int64_t restarts_ = 0;
};

TEST(EngineStream, InvariantsHoldAfterEveryStep) {
  const int64_t steps = FromEnvironment("TRANCHE_STEPS", 100'000);
  const auto first_seed = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  constexpr int64_t kStepsPerSeed = 2'000;
  int64_t binds = 0;
  int64_t restarts = 0;
  for (int64_t done = 0; done < steps; done += kStepsPerSeed) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(done / kStepsPerSeed);
    Stream stream(seed);
    for (int64_t step = 0; step < std::min(kStepsPerSeed, steps - done); ++step) {
      stream.Step();
      for (const std::string& fault : stream.Faults()) {
        ADD_FAILURE() << "TRANCHE_SEED=" << seed << " step " << step << ": " << fault;
      }
      if (HasFailure()) FAIL() << "replay with TRANCHE_SEED=" << seed << " TRANCHE_STEPS=2000";
    }
    stream.Restart();
    binds += stream.binds();
    restarts += stream.restarts();
  }
  std::printf("%lld steps, %lld binds, %lld restarts, seeds from %llu\n",
              static_cast<long long>(steps), static_cast<long long>(binds),
              static_cast<long long>(restarts), static_cast<unsigned long long>(first_seed));
  EXPECT_GT(binds, steps / 100) << "the streams hardly bind anything: the test says little";
}

}  // namespace THIS_FILE
}  // namespace tranche
