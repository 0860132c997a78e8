// MIG instances made by the node agent, against a driver that knows the truth: pods are bound to
// planned places, end, are deleted by force; the driver fails, half does or moves what it is told;
// the agent dies between two calls, kubelet and node restart. After every step no two containers
// use what overlaps, and each uses an instance at exactly its planned place. In the end nothing is
// left over and nothing stays closed.
//   TRANCHE_SEED=7 TRANCHE_STEPS=1 property_tests --gtest_filter='AgentMig*' replays one seed
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "scheduler/turns/turns.h"
#include "scheduler/turns/workshop.h"
#include "test/fakes/device_manager.h"
#include "topology/mig_space.h"

namespace tranche::agent {
namespace THIS_FILE {

using fakes::Ids;

const MigBoard& Board() { return *FindMigBoard("NVIDIA-H100-80GB-HBM3", Mebibytes::Of(81559)); }

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int Below(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }
  bool Once(int in) { return Below(in) == 0; }

 private:
  std::mt19937_64 random_;
};

// Cards with the geometry of the board. It refuses what no driver would do.
class TrueDriver : public MigDriver {
 public:
  TrueDriver(Random& random, bool fails) : fails_(fails), random_(random) {}

  absl::StatusOr<std::vector<Instance>> List(const GpuUuid& gpu) override {
    if (Fails(40)) return absl::UnavailableError("the driver does not answer");
    return instances[gpu];
  }
  absl::Status Make(const GpuUuid& gpu, const MigDevice& place) override {
    if (Fails(10)) return absl::UnavailableError("no resources");
    Instance instance{next_, place, fmt::format("MIG-{}", next_)};
    ++next_;
    const bool half = Fails(10);
    if (half) instance.uuid.clear();
    if (Fails(20)) instance.place.start = Profile(place)->starts.front();
    std::vector<MigInstance> all;
    for (const Instance& one : instances[gpu]) all.push_back({Profile(one.place), one.place.start});
    all.push_back({Profile(instance.place), instance.place.start});
    if (!IsLegalMigSet(Board(), all)) return absl::UnavailableError("no resources");
    instances[gpu].push_back(instance);
    ++made;
    return half ? absl::UnavailableError("no compute instance") : absl::OkStatus();
  }
  absl::Status Remove(const GpuUuid& gpu, unsigned id) override {
    if (Fails(10)) return absl::UnavailableError("in use");
    std::vector<Instance>& all = instances[gpu];
    const auto found = std::ranges::find(all, id, &Instance::id);
    if (found == all.end()) return absl::OutOfRangeError("not found");
    if (used.contains(found->uuid)) return absl::UnavailableError("in use");
    all.erase(found);
    ++removed;
    return absl::OkStatus();
  }
  void Heal() { fails_ = false; }
  // No instance outlives it, and later ones take the names of earlier ones.
  void Restart() {
    instances.clear();
    next_ = 1;
  }

  std::map<GpuUuid, std::vector<Instance>> instances;
  std::set<std::string> used;  // UUIDs that running containers have
  int made = 0, removed = 0;

 private:
  static const MigProfile* Profile(const MigDevice& place) {
    return FindMigProfile(Board(), place.profile);
  }
  bool Fails(int in) { return fails_ && random_.Once(in); }

  bool fails_;
  Random& random_;
  unsigned next_ = 1;
};

struct MigPod {
  BoundPod api;
  fakes::ManagedPod kubelet;
  DeviceId meant;
  bool in_api = true;
  bool over_in_api = false;  // in a terminal phase
  bool ended = false;
  bool admitted = false;
  bool queued = true;
  bool owes_status = false;
  std::string running_with;  // UUID; empty: it does not run
};

class MigWorld {
 public:
  MigWorld(uint64_t seed, bool troubled)
      : random_(seed), troubled_(troubled), driver_(random_, troubled) {
    for (const char* uuid : {"a", "b"}) {
      Card& card = cards_.emplace_back();
      card.uuid = GpuUuid(uuid);
      card.mig = true;
      for (const MigProfile& profile : Board().profiles) {
        card.offers.push_back({std::string(profile.name), 0, profile.size, profile.starts});
      }
    }
    RestartAgent();
    for (const MigProfile& profile : Board().profiles) {
      managers_.emplace(profile.name, fakes::DeviceManager(seed));
    }
    TellDevices();
  }

  void Step() {
    const int what = random_.Below(troubled_ ? 14 : 9);
    if (what <= 2) Bind();
    if (what == 3 || what == 4) AdmitNext();
    if (what == 5) StartSome();
    if (what == 6) EndSome();
    if (what == 7) WriteStatuses();
    if (what == 8) Clear();
    if (what == 9) RestartAgent();
    if (what == 10) RestartKubelet(/*with_checkpoint=*/!random_.Once(3));
    if (what == 11) DeleteByForce();
    if (what == 12) dies_ = true;
    if (what == 13 && random_.Once(5)) RestartNode();
    Check();
  }

  // Everything ends, and the driver works again.
  void Settle() {
    driver_.Heal();
    for (auto& [uid, pod] : pods_) End(pod);
    WriteStatuses();
    for (int round = 0; round <= Workshop::kRests; ++round) Clear();
    for (const auto& [gpu, instances] : driver_.instances) ASSERT_TRUE(instances.empty());
    for (const Card& card : cards_) ASSERT_TRUE(card.closed.empty()) << card.closed[0].why;
  }

  int served = 0, refused = 0, stopped = 0;
  const TrueDriver& driver() const { return driver_; }

 private:
  // The agent's answers for the resource of one profile.
  class Calls : public fakes::PluginCalls {
   public:
    Calls(MigWorld& world, std::string profile) : world_(world), profile_(std::move(profile)) {}
    absl::StatusOr<Ids> Prefer(const Ids& available, const Ids& keep, int64_t size) override {
      world_.WriteStatuses();
      return world_.turns_.at(profile_).Open(world_.LookAround(profile_), {available, keep, size});
    }
    absl::StatusOr<Ids> Allocate(const Ids& ids) override {
      Turns& turns = world_.turns_.at(profile_);
      const auto closed = turns.Close(ids);
      const auto grant = closed ? *closed : turns.Serve(world_.LookAround(profile_), ids);
      if (!grant.ok()) return grant.status();
      Ids uuids;
      for (const DeviceId& id : grant->devices) {
        const auto uuid = world_.workshop_->Provide(*grant, id);
        if (std::exchange(world_.dies_, false)) {
          world_.RestartAgent();
          return absl::UnavailableError("the agent is gone");
        }
        if (!uuid.ok()) {
          turns.GiveUp(grant->uid);
          return uuid.status();
        }
        uuids.push_back(*uuid);
      }
      return uuids;
    }
    absl::Status PreStart(const Ids& ids) override {
      absl::Status may = world_.turns_.at(profile_).MayStart(world_.LookAround(profile_), ids);
      for (const std::string& id : ids) {
        if (may.ok()) may = world_.workshop_->Check(ParseDeviceId(id));
      }
      return may;
    }

   private:
    MigWorld& world_;
    const std::string profile_;
  };

  Look LookAround(const std::string& profile) {
    Look look;
    look.cards = cards_;
    look.pods.emplace();
    for (const auto& [uid, pod] : pods_) {
      if (!pod.in_api || pod.over_in_api) continue;
      BoundPod seen = pod.api;
      if (pod.meant.place->profile != profile) seen.asking.clear();
      look.pods->push_back(std::move(seen));
    }
    for (const auto& [resource, manager] : managers_) {
      for (const auto& listed : manager.List()) {
        KubeletPod known{{listed.ns, listed.name}, {}, {}};
        for (const auto& [container, ids] : listed.containers) {
          if (ids.empty()) continue;
          (resource == profile ? known.holdings : known.others).push_back({container, ids});
        }
        look.kubelet.push_back(std::move(known));
      }
    }
    return look;
  }

  void RestartAgent() {
    turns_.clear();
    for (const MigProfile& profile : Board().profiles) {
      turns_.emplace(profile.name, Turns(std::string(profile.name)));
    }
    workshop_ = std::make_unique<Workshop>(driver_);
  }

  void TellDevices() {
    for (Card& card : cards_) {
      const auto closed = workshop_->closed().find(card.uuid);
      card.closed =
          closed == workshop_->closed().end() ? std::vector<ClosedPlace>() : closed->second;
    }
    for (auto& [profile, manager] : managers_) {
      std::map<std::string, bool> devices;
      for (const TellableDevice& one : DevicesOf(cards_, profile)) {
        devices[one.id.str()] = one.healthy;
      }
      manager.SetDevices(std::move(devices));
    }
  }

  void Clear() {
    workshop_->Clear(LookAround(""), workshop_->moment());
    TellDevices();
  }

  // What Tranche would plan: legal beside what records name and what is closed.
  std::optional<LayoutId> LayoutOf(const Card& card) const {
    std::vector<MigInstance> all;
    const auto add = [&](const MigDevice& place) {
      all.push_back({FindMigProfile(Board(), place.profile), place.start});
    };
    for (const auto& [uid, pod] : pods_) {
      const bool holds = pod.in_api && !pod.over_in_api && pod.meant.gpu == card.uuid;
      if (holds) add(*pod.meant.place);
    }
    for (const ClosedPlace& closed : card.closed) add(closed.place);
    return MigSpaceOf(Board()).Find(all);
  }

  void Bind() {
    const Card& card = cards_[static_cast<std::size_t>(random_.Below(2))];
    const std::optional<LayoutId> layout = LayoutOf(card);
    if (!layout) return;  // a pod waits there for an instance that was closed meanwhile
    const auto steps = MigSpaceOf(Board()).steps(*layout);
    if (steps.empty()) return;
    const auto& step =
        steps[static_cast<std::size_t>(random_.Below(static_cast<int>(steps.size())))];
    const MigProfile& profile = Board().profiles[step.profile];
    MigPod pod;
    const int number = next_++;
    pod.meant = {card.uuid, MigDevice{std::string(profile.name), step.start, profile.size}};
    pod.api.name = {"ns", fmt::format("pod-{}", number)};
    pod.api.uid = PodUid(fmt::format("{:06}", number));
    pod.api.asking = {{"main", 1}};
    Device device;
    device.uuid = card.uuid;
    device.mig = pod.meant.place;
    pod.api.record = Allocation{0, "", Knowledge::kExact, {{"main", {device}}}};
    pod.kubelet = {pod.api.uid.str(), "ns", pod.api.name.name, {{"main", 1}}};
    pods_[pod.api.uid.str()] = std::move(pod);
  }

  void AdmitNext() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.queued || !pod.in_api || random_.Once(3)) continue;
      return Admit(pod);
    }
  }

  void Admit(MigPod& pod) {
    pod.queued = false;
    pod.owes_status = true;
    const std::string profile = pod.meant.place->profile;
    Calls calls(*this, profile);
    const absl::Status admitted = managers_.at(profile).Admit(pod.kubelet, calls);
    if (admitted.ok()) {
      pod.admitted = true;
      ++served;
      return;
    }
    ++refused;
    last_refusal_ = std::string(admitted.message());
    End(pod);
  }

  void StartSome() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.admitted || pod.ended || !pod.running_with.empty() || random_.Once(2)) continue;
      const std::string profile = pod.meant.place->profile;
      Calls calls(*this, profile);
      const absl::Status may = managers_.at(profile).Start(uid, "main", calls);
      if (!may.ok()) {
        ++stopped;
        last_refusal_ = std::string(may.message());
        continue;
      }
      pod.running_with = managers_.at(profile).given().at({uid, "main"}).at(0);
      driver_.used.insert(pod.running_with);
    }
  }

  void EndSome() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.queued && !pod.ended && random_.Once(4)) End(pod);
    }
  }
  void End(MigPod& pod) {
    pod.ended = true;
    pod.owes_status = true;
    Stop(pod);
    managers_.at(pod.meant.place->profile).End(pod.api.uid.str());
  }
  void Stop(MigPod& pod) {
    driver_.used.erase(pod.running_with);
    pod.running_with.clear();
  }

  void WriteStatuses() {
    for (auto& [uid, pod] : pods_) {
      if (!pod.owes_status) continue;
      pod.owes_status = false;
      pod.api.acknowledged = true;
      pod.over_in_api = pod.over_in_api || pod.ended;
    }
  }

  void RestartKubelet(bool with_checkpoint) {
    for (auto& [profile, manager] : managers_) manager.Restart(with_checkpoint);
    for (auto& [profile, turns] : turns_) turns.Forget();
    for (auto& [uid, pod] : pods_) {
      const bool there = pod.in_api && !pod.over_in_api && !pod.ended;
      if (!there && pod.admitted && !pod.ended) End(pod);  // an orphan, which the kubelet ends
      if (there && !pod.queued) Admit(pod);
    }
    for (auto& [profile, manager] : managers_) manager.AllAdmitted();
  }

  // Nor does any process.
  void RestartNode() {
    for (auto& [uid, pod] : pods_) Stop(pod);
    driver_.Restart();
    RestartAgent();
    RestartKubelet(/*with_checkpoint=*/true);
    TellDevices();
  }

  void DeleteByForce() {
    for (auto& [uid, pod] : pods_) {
      if (random_.Once(4)) pod.in_api = false;  // its container goes on for a while
      if (!pod.in_api && pod.queued) pod.queued = false;
    }
  }

  void Check() {
    std::vector<DeviceId> in_use;
    for (const auto& [uid, pod] : pods_) {
      if (pod.running_with.empty()) continue;
      for (const DeviceId& other : in_use) {
        ASSERT_FALSE(Overlap(other, pod.meant))
            << uid << ": " << pod.meant.str() << " is used twice";
      }
      in_use.push_back(pod.meant);
      const auto& there = driver_.instances[pod.meant.gpu];
      const auto mine = std::ranges::find(there, pod.running_with, &Instance::uuid);
      ASSERT_NE(mine, there.end()) << uid << ": its instance is gone under it";
      ASSERT_EQ(mine->place, *pod.meant.place) << uid;
    }
    if (!troubled_) {
      ASSERT_EQ(refused + stopped, 0) << last_refusal_;
    }
  }

  Random random_;
  const bool troubled_;
  TrueDriver driver_;
  std::vector<Card> cards_;
  std::map<std::string, Turns> turns_;                    // by profile
  std::map<std::string, fakes::DeviceManager> managers_;  // by profile
  std::unique_ptr<Workshop> workshop_;
  std::map<std::string, MigPod> pods_;  // by uid, which is by age
  bool dies_ = false;                   // the agent, after its next call of the driver
  int next_ = 0;
  std::string last_refusal_;
};

uint64_t NumberOf(const char* name, uint64_t other) {
  const char* const text = std::getenv(name);
  return text == nullptr ? other : std::strtoull(text, nullptr, 10);
}

TEST(AgentMig, InstancesAreAtTheirPlannedPlacesAndNothingIsGivenTwice) {
  const uint64_t first = NumberOf("TRANCHE_SEED", 1);
  const uint64_t runs = NumberOf("TRANCHE_STEPS", 1'000);
  std::cout << "seeds " << first << " to " << first + runs - 1 << " (TRANCHE_SEED)\n";
  int served = 0, refused = 0, stopped = 0, made = 0, removed = 0;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    MigWorld world(seed, /*troubled=*/seed % 4 != 0);
    for (int step = 0; step < 200; ++step) {
      world.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    world.Settle();
    if (testing::Test::HasFatalFailure()) return;
    served += world.served;
    refused += world.refused;
    stopped += world.stopped;
    made += world.driver().made;
    removed += world.driver().removed;
  }
  std::cout << served << " served, " << refused << " refused, " << stopped << " not started, "
            << made << " instances made, " << removed << " removed\n";
  if (runs < 1'000) return;
  // The worlds are neither idle nor hopeless.
  EXPECT_GT(served, 5'000);
  EXPECT_GT(refused, 1'000);
  EXPECT_GT(stopped, 100);
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
