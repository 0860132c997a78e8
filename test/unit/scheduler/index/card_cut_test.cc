// Cards in HAMi's MIG mode: which instance a share becomes, where it goes, and who may use them.
#include "scheduler/index/card_cut.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "quota/tree/charge.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What HAMi 2.10 registers of an A100 with 40 GB by its default list of profiles.
std::vector<AgentMigProfile> DefaultOffer() {
  return {
      {"1g.5gb", Mebibytes::Of(4864), 14, {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}},
      {"2g.10gb", Mebibytes::Of(9984), 28, {{0, 2}, {2, 2}, {4, 2}}},
      {"3g.20gb", Mebibytes::Of(20096), 42, {{0, 4}, {4, 4}}},
      {"7g.40gb", Mebibytes::Of(40320), 100, {{0, 8}}},
  };
}

// `cut` cards in mode mig, then `shared` ones in mode hami-core.
NodeFacts MigNode(int cut, int shared = 0) {
  NodeFacts node = test::HamiNode("n", cut + shared);
  node.product = "NVIDIA-A100-SXM4-40GB";
  node.memory = Mebibytes::Of(40960);
  node.agent->minor = 10;
  for (AgentDevice& device : node.agent->devices) {
    device.memory = Mebibytes::Of(40960);
    device.type = "NVIDIA-NVIDIA A100-SXM4-40GB";
    if (device.index >= cut) continue;
    device.mode = "mig";
    device.mig_profiles = DefaultOffer();
  }
  return node;
}

PodRequest PodOfMib(int64_t mib, int64_t cores = 0) { return test::HamiPod("p", 1, mib, cores); }

class CutNode {
 public:
  explicit CutNode(NodeFacts facts, int hami_minor = 0) {
    state_.SetFacts(std::move(facts), hami_minor);
  }

  std::string Why(const PodRequest& request) {
    const PlaceRules rules{&policy_, CardChoice::kTightest, -1};
    const Reason reason = placer_.Place(state_.inventory(), state_.hard(), request, rules, picks_);
    return reason == Reason::kNone ? "" : std::string(Describe(reason).code);
  }
  // What it got, as "1g.5gb@6 on 0"; several joined by ", "; else why not.
  std::string Put(PodRequest request) {
    const std::string why = Why(request);
    if (!why.empty()) return why;
    return Hold(request, ToAllocation(state_.inventory(), request, picks_));
  }
  std::string Hold(PodRequest request, Allocation allocation) {
    Holding holding;
    holding.uid = request.uid = PodUid(fmt::format("uid-{}", pods_++));
    holding.allocation = std::move(allocation);
    holding.request = std::make_shared<const PodRequest>(std::move(request));
    last_ = holding.uid;
    state_.Hold(std::move(holding));
    const Holding& held = *state_.Find(last_);
    if (!held.known) return held.problem;
    std::string text;
    for (const ContainerDevices& container : held.allocation->containers) {
      for (const Device& device : container.devices) {
        text += text.empty() ? "" : ", ";
        text += device.mig ? fmt::format("{}@{} on {}", device.mig->profile, device.mig->start,
                                         device.card)
                           : fmt::format("{} MiB on {}", device.memory.count(), device.card);
      }
    }
    return text;
  }
  int Fill(const PodRequest& request) {
    int count = 0;
    for (; Why(request).empty(); ++count) Put(request);
    return count;
  }
  void End(const PodUid& uid) { state_.Release(uid); }
  const PodUid& last() const { return last_; }
  const NodeState& state() const { return state_; }
  const Picks& picks() const { return picks_; }

 private:
  GpuPolicy policy_;
  NodeState state_;
  Placer placer_;
  Picks picks_;
  PodUid last_;
  int pods_ = 0;
};

Allocation RecordOf(const std::string& profile, int start, int size) {
  Device device;
  device.uuid = GpuUuid("GPU-n-0");
  device.mig = MigDevice{profile, start, size};
  Allocation allocation;
  allocation.knowledge = Knowledge::kExact;
  allocation.containers.push_back({"main", {device}});
  return allocation;
}

TEST(CardCut, AShareBecomesTheSmallestInstanceThatHoldsIt) {
  struct Row {
    MemoryNeed memory;
    int64_t cores;
    const char* got;
  };
  using Kind = MemoryNeed::Kind;
  const Row rows[] = {
      {{Kind::kMib, 1}, 0, "1g.5gb"},
      {{Kind::kMib, 4864}, 0, "1g.5gb"},
      {{Kind::kMib, 4865}, 0, "2g.10gb"},
      {{Kind::kMib, 20096}, 0, "3g.20gb"},
      {{Kind::kMib, 20097}, 0, "7g.40gb"},
      {{Kind::kMib, 40960}, 0, ""},
      // Compute counts as well: an instance of that many slices, or of that part of the card.
      {{Kind::kMib, 4000}, 14, "1g.5gb"},
      {{Kind::kMib, 4000}, 25, "2g.10gb"},
      {{Kind::kMib, 4000}, 50, "3g.20gb"},
      {{Kind::kMib, 4000}, 51, "7g.40gb"},
      // A part of the card is an instance of that part, whatever it can use of its memory.
      {{Kind::kPercentOfCard, 12}, 0, "1g.5gb"},
      {{Kind::kPercentOfCard, 25}, 25, "2g.10gb"},
      {{Kind::kMilliOfCard, 500}, 50, "3g.20gb"},
      {{Kind::kPercentOfCard, 51}, 0, "7g.40gb"},
      {{Kind::kWholeCard, 0}, 0, "7g.40gb"},
  };
  const Inventory inventory = BuildInventory(MigNode(1), 0);
  for (const Row& row : rows) {
    const PodRequest pod =
        test::SharePod("p", RequestStyle::kHami, "nvidia.com/gpu", 1, row.memory, row.cores);
    const CardNeed need = NeedOn(inventory, pod.asks[0], inventory.cards[0]);
    EXPECT_EQ(need.instance == nullptr ? "" : need.instance->name, row.got)
        << row.memory.value << " " << row.cores;
    EXPECT_EQ(CutNode(MigNode(1)).Why(pod), *row.got == '\0' ? "TooLarge" : "") << row.memory.value;
  }
}

TEST(CardCut, ACardTakesAsManyInstancesAsItsBoardHas) {
  EXPECT_EQ(CutNode(MigNode(1)).Fill(PodOfMib(4000)), 7);
  EXPECT_EQ(CutNode(MigNode(1)).Fill(PodOfMib(8000)), 3);
  EXPECT_EQ(CutNode(MigNode(1)).Fill(PodOfMib(16000)), 2);
  EXPECT_EQ(CutNode(MigNode(1)).Fill(PodOfMib(40000)), 1);
  CutNode mixed(MigNode(1));
  EXPECT_EQ(mixed.Put(PodOfMib(16000)), "3g.20gb@4 on 0");
  EXPECT_EQ(mixed.Fill(PodOfMib(8000)), 2);
  EXPECT_EQ(mixed.Why(PodOfMib(4000)), "NoRoom");
}

// Later and larger instances keep their places: seven small ones one after another, with room for
// the largest that still fits beside them at every step.
TEST(CardCut, SmallInstancesKeepRoomForLargeOnes) {
  CutNode node(MigNode(1));
  const int rooms[] = {1, 1, 1, 0, 0, 0};  // instances of 3g that fit after so many of 1g
  for (std::size_t i = 0; i < std::size(rooms); ++i) {
    node.Put(PodOfMib(4000));
    CutNode copy = node;
    EXPECT_EQ(copy.Fill(PodOfMib(16000)), rooms[i]) << i + 1;
  }
}

TEST(CardCut, ACardInUseComesBeforeAnIdleOne) {
  CutNode node(MigNode(3));
  const std::string first = node.Put(PodOfMib(16000));
  const std::string card = first.substr(first.find(" on "));
  EXPECT_THAT(node.Put(PodOfMib(16000)), EndsWith(card));
  EXPECT_THAT(node.Put(PodOfMib(16000)), Not(EndsWith(card)));
}

TEST(CardCut, WhoMayUseThem) {
  struct Row {
    const char* mode;  // nvidia.com/vgpu-mode
    PodRequest pod;
    const char* on_mig;   // two cards in MIG mode
    const char* on_both;  // one card in MIG mode, one that is shared
  };
  PodRequest whole = test::WholePod("p", 1);
  const Row rows[] = {
      {"", PodOfMib(4000), "", ""},
      {"mig", PodOfMib(4000), "", ""},
      {"hami-core", PodOfMib(4000), "WrongDevice", ""},
      // Whole cards are wanted uncut.
      {"", whole, "WrongDevice", ""},
      {"mig", whole, "WrongDevice", "WrongDevice"},
      // Several devices of one container are instances only where it says so.
      {"", test::HamiPod("p", 2, 4000), "WrongDevice", "WrongDevice"},
      {"mig", test::HamiPod("p", 2, 4000), "", ""},
      {"mig", test::HamiPod("p", 7, 4000), "", ""},
      {"mig", test::HamiPod("p", 8, 4000), "", "NoRoom"},
  };
  for (Row row : rows) {
    row.pod.vgpu_mode = row.mode;
    EXPECT_EQ(CutNode(MigNode(2)).Why(row.pod), row.on_mig) << row.mode << row.pod.asks[0].count;
    EXPECT_EQ(CutNode(MigNode(1, 1)).Why(row.pod), row.on_both)
        << row.mode << row.pod.asks[0].count;
  }
}

// HAMi puts several instances of one container on one card.
TEST(CardCut, SeveralInstancesOfOneContainerShareACard) {
  CutNode node(MigNode(2));
  PodRequest pod = test::HamiPod("p", 3, 8000);
  pod.vgpu_mode = "mig";
  EXPECT_EQ(node.Put(pod), "2g.10gb@4 on 0, 2g.10gb@0 on 0, 2g.10gb@2 on 0");
}

TEST(CardCut, RecordsAreBelievedWhereTheCardCanHaveThem) {
  struct Row {
    const char* profile;
    int start;
    int size;
    const char* found;
  };
  const Row rows[] = {
      {"1g.5gb", 6, 1, "1g.5gb@6 on 0"},
      {"3g.20gb", 4, 4, "3g.20gb@4 on 0"},
      // Larger than the pod needs: another scheduler chose it.
      {"7g.40gb", 0, 8, "7g.40gb@0 on 0"},
      {"1g.5gb", 7, 1, "expected an instance that GPU-n-0 can have"},
      {"2g.10gb", 1, 2, "expected an instance that GPU-n-0 can have"},
      {"2g.10gb", 2, 1, "expected an instance that GPU-n-0 can have"},
      {"4g.20gb", 0, 4, "expected an instance that GPU-n-0 can have"},
      {"nonsense", 0, 1, "expected an instance that GPU-n-0 can have"},
  };
  for (const Row& row : rows) {
    CutNode node(MigNode(1));
    EXPECT_THAT(node.Hold(PodOfMib(4000), RecordOf(row.profile, row.start, row.size)),
                HasSubstr(row.found))
        << row.profile << " " << row.start;
  }
  CutNode node(MigNode(1, 1));
  Allocation card = RecordOf("1g.5gb", 0, 1);
  card.containers[0].devices[0].mig.reset();
  EXPECT_THAT(node.Hold(PodOfMib(4000), card), HasSubstr("expected a MIG instance of GPU-n-0"));
  Allocation shared = RecordOf("1g.5gb", 0, 1);
  shared.containers[0].devices[0].uuid = GpuUuid("GPU-n-1");
  EXPECT_THAT(node.Hold(PodOfMib(4000), shared),
              HasSubstr("expected a card, found MIG device 1g.5gb"));
}

// Two pods others placed on one place: nothing more goes on that card, until one of them is gone.
TEST(CardCut, ABrokenLayoutTakesNobody) {
  CutNode node(MigNode(1));
  node.Hold(PodOfMib(4000), RecordOf("3g.20gb", 0, 4));
  node.Hold(PodOfMib(4000), RecordOf("1g.5gb", 2, 1));
  EXPECT_EQ(node.Why(PodOfMib(4000)), "NoRoom");
  node.End(node.last());
  EXPECT_EQ(node.Put(PodOfMib(16000)), "3g.20gb@4 on 0");
}

TEST(CardCut, InstancesAreChargedAsMigIs) {
  CutNode node(MigNode(1));
  const PodRequest pod = PodOfMib(8000);
  ASSERT_EQ(node.Why(pod), "");
  const MigBoard& board = *FindMigBoard("NVIDIA-A100-SXM4-40GB", Mebibytes::Of(40960));
  const Charge expected = ChargeOfMig(board, *FindMigProfile(board, "2g.10gb"));
  const auto charges = ChargeOfPicks(node.state().inventory(), pod, node.picks());
  ASSERT_EQ(charges.size(), 1U);
  EXPECT_EQ(charges[0].charge, expected);
  std::vector<ModelCharge> most;
  ChargeAtMost(node.state().inventory(), pod, most);
  ASSERT_EQ(most.size(), 1U);
  EXPECT_EQ(most[0].charge, expected);
}

TEST(CardCut, WhatCannotBeCutIsSaid) {
  struct Row {
    std::function<void(NodeFacts&)> change;
    int policy_minor;
    const char* problem;
  };
  const Row rows[] = {
      {[](NodeFacts&) {}, 9, "expected HAMi 2.10 or later for mode mig, found an earlier one"},
      {[](NodeFacts& node) {
         node.agent->devices[0].mig_profiles.clear();
         node.product = "Tesla-T4";
         node.agent->devices[0].type = "NVIDIA-Tesla T4";
       },
       0, "expected MIG profiles of a board with known placements, found none of"},
      {[](NodeFacts& node) {
         node.product = "Tesla-T4";
         node.agent->devices[0].type = "NVIDIA-Tesla T4";
       },
       0, "expected MIG profiles of a board with known placements, found 1g.5gb of"},
      {[](NodeFacts& node) { node.agent->kind = AgentKind::kVolcano; }, 0, "found volcano"},
  };
  for (const Row& row : rows) {
    NodeFacts facts = MigNode(1);
    row.change(facts);
    const Inventory inventory = BuildInventory(facts, row.policy_minor);
    EXPECT_THAT(inventory.problems, ElementsAre(HasSubstr(row.problem)));
    EXPECT_EQ(inventory.cards[0].cut, nullptr);
  }
  // The type of the card tells where no label does.
  NodeFacts unlabelled = MigNode(1);
  unlabelled.product.clear();
  EXPECT_THAT(BuildInventory(unlabelled, 0).problems, IsEmpty());
  EXPECT_NE(BuildInventory(unlabelled, 0).cards[0].cut, nullptr);
}

// What the agent would cut and the board cannot is left out, and so is what no place fits.
TEST(CardCut, OnlyWhatBoardAndAgentAgreeOnIsOffered) {
  NodeFacts facts = MigNode(1);
  facts.agent->devices[0].mig_profiles = {
      {"1g.5gb", Mebibytes::Zero(), 14, {{0, 1}, {6, 1}, {9, 1}}},  // one place it has not
      {"2g.10gb", Mebibytes::Of(9984), 28, {{1, 2}, {3, 2}}},       // none that it has
      {"9g.90gb", Mebibytes::Of(90'000), 100, {{0, 8}}},
  };
  const Inventory inventory = BuildInventory(facts, 0);
  ASSERT_NE(inventory.cards[0].cut, nullptr);
  ASSERT_EQ(inventory.cards[0].cut->profiles.size(), 1U);
  const CutProfile& only = inventory.cards[0].cut->profiles[0];
  EXPECT_EQ(only.name, "1g.5gb");
  EXPECT_THAT(only.starts, ElementsAre(0, 6));
  const MigBoard& board = *FindMigBoard("NVIDIA-A100-SXM4-40GB", Mebibytes::Of(40960));
  EXPECT_EQ(only.memory, FindMigProfile(board, "1g.5gb")->memory) << "where the agent says none";
}

TEST(CardCut, CardsOfOneOfferShareIt) {
  NodeFacts facts = MigNode(3, 1);
  facts.agent->devices[1].mig_profiles.pop_back();
  std::swap(facts.agent->devices[0], facts.agent->devices[3]);  // the shared card comes first
  const Inventory inventory = BuildInventory(facts, 0);
  EXPECT_EQ(inventory.cards[0].cut, nullptr);
  EXPECT_NE(inventory.cards[1].cut, inventory.cards[2].cut);
  EXPECT_EQ(inventory.cards[2].cut, inventory.cards[3].cut);
}

// The policy says that the agent is one that cuts as it is told; what it can cut follows from the
// board. Instances that the default offer leaves out are there as well.
TEST(CardCut, ARegisterWithoutProfilesIsCutAsItsBoardAllows) {
  NodeFacts facts = MigNode(1);
  facts.agent->minor = 9;
  facts.agent->devices[0].mig_profiles.clear();
  CutNode node(facts, 10);
  const Inventory& inventory = node.state().inventory();
  EXPECT_THAT(inventory.problems, IsEmpty());
  ASSERT_NE(inventory.cards[0].cut, nullptr);
  for (const CutProfile& profile : inventory.cards[0].cut->profiles) {
    EXPECT_EQ(profile.name.find('+'), std::string::npos) << profile.name;
  }
  EXPECT_EQ(node.Put(PodOfMib(20000, 57)), "4g.20gb@0 on 0");
  EXPECT_EQ(node.Put(PodOfMib(20000)), "3g.20gb@4 on 0");
  EXPECT_EQ(node.Put(PodOfMib(4000)), "NoRoom");
}

// Pods come and go at random: no illegal set ever, and nobody is refused for whom there is a place.
TEST(CardCut, AgreesWithTheBoardsRules) {
  const MigBoard& board = *FindMigBoard("NVIDIA-A100-SXM4-40GB", Mebibytes::Of(40960));
  constexpr int64_t kSizes[] = {4000, 8000, 16000, 40000};
  constexpr const char* kNames[] = {"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"};
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CutNode node(MigNode(2));
    std::vector<PodUid> living;
    for (int step = 0; step < 200; ++step) {
      if (!living.empty() && random() % 2 == 0) {
        const std::size_t at = random() % living.size();
        node.End(living[at]);
        living.erase(living.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      std::vector<std::vector<MigInstance>> cards(2);
      for (const Holding& holding : node.state().holdings()) {
        const Device& device = holding.allocation->containers[0].devices[0];
        cards[static_cast<std::size_t>(device.card)].push_back(
            {FindMigProfile(board, device.mig->profile), device.mig->start});
      }
      for (const auto& card : cards) ASSERT_TRUE(IsLegalMigSet(board, card));
      const std::size_t kind = random() % std::size(kSizes);
      const MigProfile& profile = *FindMigProfile(board, kNames[kind]);
      bool place = false;
      for (auto& card : cards) {
        for (const int start : profile.starts) {
          card.push_back({&profile, start});
          place |= IsLegalMigSet(board, card);
          card.pop_back();
        }
      }
      const std::string got = node.Put(PodOfMib(kSizes[kind]));
      ASSERT_EQ(got != "NoRoom", place) << kNames[kind];
      if (place) living.push_back(node.last());
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
