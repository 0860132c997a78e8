// The node agent's turns against a world that knows the truth: pods are bound, refused, ended and
// deleted by force; records are lost, forged and copied; kubelet, agent and API server go away;
// cards fall off. In some worlds pods share cards. After every step the pods that use a GPU have no
// more than all of it together, and every container that runs has what was recorded for it. Where
// nothing is wrong in the world nobody is refused.
//   TRANCHE_SEED=7 TRANCHE_STEPS=1 property_tests --gtest_filter='AgentTurns*' replays one seed
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "scheduler/turns/turns.h"
#include "test/fakes/device_manager.h"

namespace tranche::agent {
namespace THIS_FILE {

using fakes::Ids;

struct WorldPod {
  BoundPod api;                      // as the API server has it
  fakes::ManagedPod kubelet;         // as the kubelet has it
  std::map<std::string, Ids> meant;  // by container, as Tranche meant it; none: not by Tranche
  int part = 1000;                   // thousandths of each of its cards
  bool in_api = true;
  bool ended = false;        // its containers have
  bool over_in_api = false;  // in a terminal phase
  bool admitted = false;
  bool refused = false;
  bool queued = true;             // bound, not heard of by the kubelet
  bool owes_status = false;       // the kubelet has not written what became of it
  std::set<std::string> running;  // containers that use their devices
};

class World : public fakes::PluginCalls {
 public:
  World(uint64_t seed, bool troubled)
      : random_(seed), troubled_(troubled), shared_(Any(3) == 0), manager_(seed) {
    const int cards = 2 + Any(5);
    for (int i = 0; i < cards; ++i) {
      cards_.push_back({GpuUuid(fmt::format("gpu-{}", i)), "", i, kMib});
      if (shared_) cards_.back().slots = kSlots;
    }
    TellDevices();
  }

  void Step() {
    const int what = Any(troubled_ ? 16 : 8);
    if (what <= 2) Bind();
    if (what == 3 || what == 4) AdmitNext();
    if (what == 5) StartSome();
    if (what == 6) EndSome();
    if (what == 7) WriteStatuses();
    if (what == 8) turns_ = Turns();  // the agent restarts
    if (what == 9) RestartKubelet(/*with_checkpoint=*/Any(3) != 0);
    if (what == 10) DeleteByForce();
    if (what == 11) SpoilRecord();
    if (what == 12) ChangeCard();
    if (what == 13) api_answers_ = !api_answers_;
    if (what == 14) RefuseForAnotherReason();
    if (what == 15) BindByHand();
    Check();
  }

  int served = 0, refused = 0, wrong_starts = 0;

  absl::StatusOr<Ids> Prefer(const Ids& available, const Ids& keep, int64_t size) override {
    return Patiently([&](const Look& look) { return turns_.Open(look, {available, keep, size}); });
  }
  absl::StatusOr<Ids> Allocate(const Ids& ids) override {
    auto closed = turns_.Close(ids);
    const auto grant =
        closed ? *closed : Patiently([&](const Look& look) { return turns_.Serve(look, ids); });
    if (!grant.ok()) return grant.status();
    Ids seen;
    for (const DeviceId& device : grant->devices) seen.push_back(device.str());
    return seen;
  }
  absl::Status PreStart(const Ids& ids) override { return turns_.MayStart(MakeLook(), ids); }

 private:
  int Any(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  Look MakeLook() {
    Look look;
    look.cards = cards_;
    if (api_answers_) {
      look.pods.emplace();
      for (const auto& [uid, pod] : pods_) {
        if (pod.in_api && !pod.over_in_api) look.pods->push_back(pod.api);
      }
    }
    for (const auto& listed : manager_.List()) {
      KubeletPod known{{listed.ns, listed.name}, {}, {}};
      for (const auto& [container, ids] : listed.containers) {
        if (!ids.empty()) known.holdings.push_back({container, ids});
      }
      look.kubelet.push_back(std::move(known));
    }
    return look;
  }

  // What the shell does: where another look may tell more, it looks again.
  template <typename Ask>
  auto Patiently(Ask ask) -> decltype(ask(Look())) {
    auto answer = ask(MakeLook());
    if (absl::IsUnavailable(answer.status())) {
      if (Any(2) == 0) api_answers_ = true;
      WriteStatuses();
      answer = ask(MakeLook());
    }
    return answer;
  }

  void TellDevices() {
    std::map<std::string, bool> devices;
    for (const TellableDevice& one : DevicesOf(cards_, "")) devices[one.id.str()] = one.healthy;
    manager_.SetDevices(devices);
  }

  // GPUs that Tranche takes to have that part free: beside all pods that have a record and have not
  // ended in the API.
  std::vector<std::string> Free(int part) const {
    std::map<std::string, int> taken;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.in_api || pod.over_in_api) continue;
      std::set<std::string> gpus;  // of an init container another one has them later
      for (const auto& [container, ids] : pod.meant) gpus.insert(ids.begin(), ids.end());
      for (const std::string& gpu : gpus) taken[gpu] += pod.part;
    }
    std::vector<std::string> free;
    for (const Card& card : cards_) {
      const auto at = taken.find(card.uuid.str());
      const int used = at == taken.end() ? 0 : at->second;
      const bool is_free = card.problem.empty() && used + part <= kWhole;
      if (is_free) free.push_back(card.uuid.str());
    }
    return free;
  }

  WorldPod NewPod() {
    WorldPod pod;
    const int number = next_++;
    // Some take the name of one that is gone, as those of a StatefulSet do.
    pod.api.name = {"ns", fmt::format("pod-{}", Any(3) == 0 ? Any(4) : 100 + number)};
    for (const auto& [uid, other] : pods_) {
      if (other.in_api && other.api.name == pod.api.name) pod.api.name.name += "-x" + uid;
    }
    pod.api.uid = PodUid(fmt::format("{:06}", number));
    pod.kubelet = {pod.api.uid.str(), pod.api.name.ns, pod.api.name.name, {}};
    return pod;
  }

  void AddContainer(WorldPod& pod, const std::string& name, const Ids& ids, bool init,
                    bool sidecar) {
    const auto count = static_cast<int64_t>(ids.size());
    pod.api.asking.push_back({name, count, init && !sidecar});
    pod.kubelet.containers.push_back({name, count, init, sidecar});
    pod.meant[name] = ids;
    ContainerDevices devices{name, {}};
    for (const std::string& id : ids) {
      Device device;
      device.uuid = GpuUuid(id);
      device.milli = MilliGpu::Of(pod.part);
      device.memory = Mebibytes::Of(kMib * pod.part / kWhole);
      devices.devices.push_back(device);
    }
    pod.api.record->containers.push_back(std::move(devices));
  }

  void Bind() {
    constexpr std::array kParts = {250, 333, 500, kWhole};
    const int part = shared_ ? kParts[static_cast<std::size_t>(Any(4))] : kWhole;
    Ids free = Free(part);
    std::shuffle(free.begin(), free.end(), random_);
    if (free.empty()) return;
    WorldPod pod = NewPod();
    pod.part = part;
    pod.api.record = Allocation{};
    pod.api.record->knowledge = Knowledge::kExact;
    const auto take = [&](std::size_t from, std::size_t count) {
      const auto begin = free.begin() + static_cast<std::ptrdiff_t>(from);
      return Ids(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    const std::size_t main = 1 + static_cast<std::size_t>(Any(static_cast<int>(free.size())));
    const std::size_t side = main < free.size() && Any(2) == 0 ? 1 : 0;
    std::size_t from = 0;
    if (side > 0 && Any(2) == 0) {
      AddContainer(pod, "sidecar", take(main, side), true, true);
    } else if (side > 0) {
      from = side;
      if (Any(2) == 0) AddContainer(pod, "load", take(0, main + side), true, false);
      AddContainer(pod, "side", take(0, side), false, false);
    } else if (Any(3) == 0) {
      AddContainer(pod, "load", take(0, main), true, false);
    }
    AddContainer(pod, "main", take(from, main), false, false);
    pods_[pod.api.uid.str()] = std::move(pod);
  }

  // Somebody sets spec.nodeName: the kubelet admits it, and no record says what it may have.
  void BindByHand() {
    WorldPod pod = NewPod();
    pod.api.asking = {{"main", 1}};
    pod.kubelet.containers = {{"main", 1}};
    pods_[pod.api.uid.str()] = std::move(pod);
  }

  void AdmitNext() {
    std::vector<WorldPod*> waiting;
    for (auto& [uid, pod] : pods_) {
      if (pod.queued && pod.in_api) waiting.push_back(&pod);
    }
    if (waiting.empty()) return;
    Admit(*waiting[static_cast<std::size_t>(Any(static_cast<int>(waiting.size())))]);
  }

  void Admit(WorldPod& pod) {
    pod.queued = false;
    pod.owes_status = true;
    const absl::Status admitted = manager_.Admit(pod.kubelet, *this);
    if (admitted.ok()) {
      pod.admitted = true;
      ++served;
      return;
    }
    ++refused;
    last_refusal_ = std::string(admitted.message());
    pod.refused = true;
    pod.running.clear();
  }

  void StartSome() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.admitted || pod.refused || pod.ended || Any(2) == 0) continue;
      for (const auto& container : pod.kubelet.containers) {
        const absl::Status may = manager_.Start(uid, container.name, *this);
        if (may.ok()) {
          if (!container.init || container.sidecar) pod.running.insert(container.name);
        } else {
          ++wrong_starts;
          last_refusal_ = std::string(may.message());
        }
      }
    }
  }

  void EndSome() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.queued && !pod.ended && Any(4) == 0) End(pod);
    }
  }
  void End(WorldPod& pod) {
    pod.ended = true;
    pod.owes_status = true;
    pod.running.clear();
    manager_.End(pod.api.uid.str());
  }

  void WriteStatuses() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.owes_status) continue;
      pod.owes_status = false;
      pod.api.acknowledged = true;
      pod.over_in_api = pod.over_in_api || pod.ended || pod.refused;
    }
  }

  void RestartKubelet(bool with_checkpoint) {
    manager_.Restart(with_checkpoint);
    turns_.Forget();
    for (auto& [uid, pod] : pods_) {
      const bool there = pod.in_api && !pod.over_in_api && !pod.ended && !pod.refused;
      if (!there && pod.admitted && !pod.ended) End(pod);  // an orphan, which the kubelet ends
      if (there && (!pod.queued || Any(2) == 0)) Admit(pod);
    }
    manager_.AllAdmitted();
  }

  void DeleteByForce() {
    for (auto& [uid, pod] : pods_) {
      if (Any(4) == 0) pod.in_api = false;  // its containers go on for a while
      if (!pod.in_api && pod.queued) pod.queued = false;
    }
  }

  void SpoilRecord() {
    for (auto& [uid, pod] : pods_) {
      if (Any(4) != 0 || !pod.api.record) continue;
      if (Any(2) == 0) {
        pod.api.record.reset();
      } else {
        auto& device = pod.api.record->containers[0].devices[0];
        device.uuid = cards_[static_cast<std::size_t>(Any(static_cast<int>(cards_.size())))].uuid;
      }
      pod.meant.clear();
    }
  }

  void ChangeCard() {
    Card& card = cards_[static_cast<std::size_t>(Any(static_cast<int>(cards_.size())))];
    card.problem = card.problem.empty() ? "it fell off the bus" : "";
    if (Any(2) == 0) TellDevices();  // else the kubelet has not heard of it yet
  }

  void RefuseForAnotherReason() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.queued || !pod.in_api) continue;
      pod.queued = false;
      pod.refused = pod.owes_status = true;
      manager_.Know(pod.kubelet);
      return;
    }
  }

  void Check() {
    std::map<std::string, int> used;
    for (const auto& [uid, pod] : pods_) {
      for (const std::string& container : pod.running) {
        const Ids& given = manager_.given().at({uid, container});
        for (const std::string& id : given) {
          used[id] += pod.part;
          ASSERT_LE(used[id], kWhole) << id << " is used by " << uid << container << " and others";
        }
        const auto meant = pod.meant.find(container);
        if (meant == pod.meant.end()) continue;
        ASSERT_EQ(given, meant->second) << uid << " " << container;
      }
    }
    if (!troubled_) {
      ASSERT_EQ(refused + wrong_starts, 0) << last_refusal_;
    }
  }

  static constexpr int kWhole = 1000;
  static constexpr int kMib = 80'000;
  static constexpr int kSlots = 8;

  std::mt19937_64 random_;
  const bool troubled_;
  const bool shared_;
  fakes::DeviceManager manager_;
  Turns turns_;
  std::vector<Card> cards_;
  std::map<std::string, WorldPod> pods_;  // by uid, which is by age
  bool api_answers_ = true;
  int next_ = 0;
  std::string last_refusal_;
};

// The environment's number, else `other`.
uint64_t Number(const char* name, uint64_t other) {
  const char* const text = std::getenv(name);
  return text == nullptr ? other : std::strtoull(text, nullptr, 10);
}

TEST(AgentTurns, NothingIsGivenTwiceAndEachGetsItsOwn) {
  const uint64_t first = Number("TRANCHE_SEED", 1);
  const uint64_t runs = Number("TRANCHE_STEPS", 1'000);
  std::cout << "seeds " << first << " to " << first + runs - 1 << " (TRANCHE_SEED)\n";
  int served = 0, refused = 0, stopped = 0;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed, /*troubled=*/seed % 4 != 0);
    for (int step = 0; step < 300; ++step) {
      world.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    served += world.served;
    refused += world.refused;
    stopped += world.wrong_starts;
  }
  if (runs < 1'000) return;
  // The worlds are neither idle nor hopeless.
  EXPECT_GT(served, 10'000);
  EXPECT_GT(refused, 10'000);
  EXPECT_GT(stopped, 1'000);
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
