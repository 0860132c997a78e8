#include "scheduler/turns/workshop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

namespace tranche::agent {
namespace THIS_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<std::string>;

// One card, and what a test wants to go wrong with it.
class PretendDriver : public MigDriver {
 public:
  absl::StatusOr<std::vector<Instance>> List(const GpuUuid&) override {
    if (!list_fails.empty()) return absl::UnavailableError(list_fails);
    return instances;
  }
  absl::Status Make(const GpuUuid&, const MigDevice& place) override {
    if (make_fails.empty() || half_done || moves_to) {
      Instance made{next++, place, half_done ? "" : fmt::format("MIG-{}", next)};
      if (moves_to) made.place.start = *moves_to;
      instances.push_back(made);
    }
    return make_fails.empty() ? absl::OkStatus() : absl::UnavailableError(make_fails);
  }
  absl::Status Remove(const GpuUuid&, unsigned id) override {
    if (!remove_fails.empty()) return absl::UnavailableError(remove_fails);
    std::erase_if(instances, [id](const Instance& one) { return one.id == id; });
    return absl::OkStatus();
  }
  Ids There() const {
    Ids all;
    for (const Instance& one : instances) {
      all.push_back(fmt::format("{}@{}", one.place.profile, one.place.start));
    }
    std::ranges::sort(all);
    return all;
  }

  std::vector<Instance> instances;
  unsigned next = 1;
  std::string list_fails, make_fails, remove_fails;
  bool half_done = false;
  std::optional<int> moves_to;
};

const GpuUuid kGpu("a");
const MigDevice kSmall{"1g.10gb", 3, 1};
const MigDevice kLarge{"3g.40gb", 0, 4};

DeviceId At(const MigDevice& place) { return {kGpu, place}; }

Grant GrantOf(const std::string& pod, bool again = false) {
  return {{"team", pod}, PodUid("uid-" + pod), "main", {}, again};
}

// A look at pods whose records name a place each.
Look Seen(const std::vector<std::pair<std::string, MigDevice>>& pods) {
  Look look;
  look.cards.push_back({kGpu, ""});
  look.cards.back().mig = true;
  look.pods.emplace();
  for (const auto& [name, place] : pods) {
    BoundPod pod;
    pod.name = {"team", name};
    pod.uid = PodUid("uid-" + name);
    Device device;
    device.uuid = kGpu;
    device.mig = place;
    pod.record = Allocation{0, "", Knowledge::kExact, {{"main", {device}}}};
    look.pods->push_back(std::move(pod));
  }
  return look;
}

Ids Closed(const Workshop& workshop) {
  Ids all;
  const auto found = workshop.closed().find(kGpu);
  if (found == workshop.closed().end()) return all;
  for (const ClosedPlace& one : found->second) {
    all.push_back(fmt::format("{}@{}: {}", one.place.profile, one.place.start, one.why));
  }
  return all;
}

TEST(Workshop, MakesInstancesWhereRecordsSayAndRemovesThemWhenNobodyHasThem) {
  PretendDriver driver;
  Workshop workshop(driver);
  const auto small = workshop.Provide(GrantOf("p"), At({"1g.10gb", 5, 1}));
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_TRUE(workshop.Provide(GrantOf("q"), At(kLarge)).ok());
  EXPECT_EQ(driver.There(), (Ids{"1g.10gb@5", "3g.40gb@0"}));
  EXPECT_TRUE(workshop.Check(At(kLarge)).ok());
  // Another container of the pod is given the same again.
  EXPECT_EQ(*workshop.Provide(GrantOf("p"), At({"1g.10gb", 5, 1})), *small);
  workshop.Clear(Seen({{"q", kLarge}}), workshop.moment());
  EXPECT_EQ(driver.There(), Ids{"3g.40gb@0"});
  EXPECT_THAT(Closed(workshop), IsEmpty());
}

TEST(Workshop, LeavesAloneWhatSomebodyMayHave) {
  PretendDriver driver;
  Workshop workshop(driver);
  const uint64_t before = workshop.moment();
  ASSERT_TRUE(workshop.Provide(GrantOf("p"), At(kSmall)).ok());
  Look away = Seen({});
  away.pods.reset();
  workshop.Clear(away, workshop.moment());
  EXPECT_EQ(driver.There().size(), 1U) << "the API server does not answer";
  workshop.Clear(Seen({}), before);
  EXPECT_EQ(driver.There().size(), 1U) << "provided after the look";
  Look held = Seen({});
  held.kubelet.push_back({{"team", "old"}, {}, {{"main", {At(kSmall).str()}}}});
  workshop.Clear(held, workshop.moment());
  EXPECT_EQ(driver.There().size(), 1U) << "deleted by force, its container runs on";
  workshop.Clear(Seen({}), workshop.moment());
  EXPECT_THAT(driver.There(), IsEmpty());
}

TEST(Workshop, LeftOversOfACrashAreTakenUpOrMadeAnew) {
  PretendDriver driver;
  driver.instances = {{7, kSmall, "MIG-7"}};
  {
    Workshop workshop(driver);
    EXPECT_EQ(*workshop.Provide(GrantOf("p", /*again=*/true), At(kSmall)), "MIG-7")
        << "the kubelet has lost its checkpoint: the pod runs";
  }
  {
    Workshop workshop(driver);
    EXPECT_NE(*workshop.Provide(GrantOf("q"), At(kSmall)), "MIG-7") << "of a pod that is gone";
  }
  Workshop workshop(driver);
  ASSERT_TRUE(workshop.Provide(GrantOf("r"), At(kLarge)).ok()) << "it takes the place of another";
  EXPECT_EQ(driver.There(), Ids{"3g.40gb@0"});
  driver.instances = {{9, kSmall, ""}};
  EXPECT_TRUE(workshop.Provide(GrantOf("s", /*again=*/true), At(kSmall)).ok())
      << "half of one is of no use";
  EXPECT_EQ(driver.instances.size(), 1U);
  EXPECT_NE(driver.instances[0].id, 9U);
}

TEST(Workshop, WhatTheDriverFailsAtClosesThePlace) {
  struct Row {
    const char* what;
    void (*fail)(PretendDriver&);
    Ids there;           // afterwards
    const char* closed;  // one place
    const char* error;
  };
  const Row table[] = {
      {"nothing is made",
       [](PretendDriver& driver) { driver.make_fails = "no resources"; },
       {},
       "1g.10gb@3: no resources",
       "MIG instance a/1g.10gb@3+1: no resources"},
      {"half of one",
       [](PretendDriver& driver) {
         driver.make_fails = "no compute instance";
         driver.half_done = true;
       },
       {},
       "1g.10gb@3: no compute instance",
       "no compute instance"},
      {"half of one that stays",
       [](PretendDriver& driver) {
         driver.make_fails = "no compute instance";
         driver.half_done = true;
         driver.remove_fails = "in use";
       },
       {"1g.10gb@3"},
       "1g.10gb@3: an instance that no record names is there, and the driver does not remove it: "
       "in use",
       "in the way"},
      {"somewhere else",
       [](PretendDriver& driver) { driver.moves_to = 6; },
       {},
       "1g.10gb@3: the driver says that it has made one, and has none there",
       "has none there"},
      {"nothing can be told",
       [](PretendDriver& driver) { driver.list_fails = "GPU is lost"; },
       {},
       "1g.10gb@3: GPU is lost",
       "GPU is lost"},
  };
  for (const Row& row : table) {
    PretendDriver driver;
    Workshop workshop(driver);
    row.fail(driver);
    const auto given = workshop.Provide(GrantOf("p"), At(kSmall));
    EXPECT_EQ(given.status().code(), absl::StatusCode::kFailedPrecondition) << row.what;
    EXPECT_THAT(std::string(given.status().message()), HasSubstr(row.error)) << row.what;
    EXPECT_EQ(driver.There(), row.there) << row.what;
    EXPECT_EQ(Closed(workshop), Ids{row.closed}) << row.what;
    // It heals: what is left is removed, and the place is tried again after a while.
    driver.list_fails = driver.make_fails = driver.remove_fails = "";
    for (int round = 0; round < Workshop::kRests; ++round) {
      workshop.Clear(Seen({}), workshop.moment());
    }
    EXPECT_THAT(driver.There(), IsEmpty()) << row.what;
    EXPECT_THAT(Closed(workshop), IsEmpty()) << row.what;
  }
}

TEST(Workshop, ClosedPlacesDoNotOverlap) {
  PretendDriver driver;
  Workshop workshop(driver);
  driver.make_fails = "no";
  EXPECT_FALSE(workshop.Provide(GrantOf("p"), At(kSmall)).ok());
  EXPECT_FALSE(workshop.Provide(GrantOf("q"), At(kLarge)).ok());
  EXPECT_FALSE(workshop.Provide(GrantOf("r"), At({"2g.20gb", 0, 2})).ok());
  EXPECT_FALSE(workshop.Provide(GrantOf("s"), At({"2g.20gb", 4, 2})).ok());
  EXPECT_EQ(Closed(workshop), (Ids{"2g.20gb@4: no", "3g.40gb@0: no"}));
}

// As after a restart of the node: what the container was given is not there any more, or it is
// another's.
TEST(Workshop, AContainerStartsOnlyWithWhatItWasGiven) {
  PretendDriver driver;
  Workshop workshop(driver);
  ASSERT_TRUE(workshop.Provide(GrantOf("p"), At(kSmall)).ok());
  EXPECT_TRUE(workshop.Check(At(kSmall)).ok());
  driver.instances[0].uuid = "MIG-other";
  EXPECT_THAT(std::string(workshop.Check(At(kSmall)).message()), HasSubstr("is gone"));
  driver.instances[0].uuid = "";
  EXPECT_FALSE(workshop.Check(At(kSmall)).ok());
  driver.instances.clear();
  EXPECT_FALSE(workshop.Check(At(kSmall)).ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
