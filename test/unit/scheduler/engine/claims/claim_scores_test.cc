// What is remembered of nodes for claims is what a fresh look would say.
#include "scheduler/engine/claims/claim_scores.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"
#include "test/unit/scheduler/dra/devices.h"

namespace tranche {
namespace THIS_FILE {

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";
constexpr const char* kA100 = "NVIDIA A100-SXM4-40GB";
constexpr int kNodes = 6;
constexpr int kGpus = 4;

dra::Claim Asks(const std::string& name, int64_t gpus, const std::string& selector = "") {
  std::vector<std::string> selectors;
  if (!selector.empty()) selectors.push_back(selector);
  return dra::ClaimOf(name, {{"gpu", {dra::Choice("gpu.nvidia.com", selectors, gpus)}}});
}

TEST(ClaimScores, ClaimsThatAskForTheSameShareAWish) {
  ClaimScores scores;
  const dra::Claim one = Asks("one", 1);
  const dra::Claim other = Asks("other", 1);
  const dra::Claim two = Asks("two", 2);
  const auto of = [&scores](std::vector<const dra::Claim*> claims) -> ClaimScores::Wish& {
    return scores.Of(claims);
  };
  of({&one}).Put(NodeId{3}, 17, {});
  ASSERT_NE(of({&other}).Find(NodeId{3}), nullptr);
  EXPECT_EQ(of({&other}).Find(NodeId{3})->cost, 17);
  EXPECT_EQ(of({&other}).Find(NodeId{2}), nullptr);
  EXPECT_EQ(of({&two}).Find(NodeId{3}), nullptr);
  EXPECT_EQ(of({&one, &other}).Find(NodeId{3}), nullptr);
  scores.Outdate(NodeId{3});
  EXPECT_EQ(of({&one}).Find(NodeId{3}), nullptr);
}

TEST(ClaimScores, TheWishNotAskedForTheLongestMakesRoom) {
  ClaimScores scores;
  std::vector<dra::Claim> claims;
  for (int i = 0; i <= static_cast<int>(ClaimScores::kMostWishes); ++i) {
    claims.push_back(Asks("c", i + 1));
  }
  const auto of = [&](std::size_t i) -> ClaimScores::Wish& {
    const dra::Claim* claim = &claims[i];
    return scores.Of({&claim, 1});
  };
  for (std::size_t i = 0; i < ClaimScores::kMostWishes; ++i) of(i).Put(NodeId{0}, 1, {});
  EXPECT_NE(of(0).Find(NodeId{0}), nullptr);
  of(ClaimScores::kMostWishes);
  EXPECT_NE(of(0).Find(NodeId{0}), nullptr);
  EXPECT_EQ(of(1).Find(NodeId{0}), nullptr);
}

// All objects there are, and the engines that hear of them.
class World {
 public:
  explicit World(uint32_t seed) : random_(seed) {
    for (int node = 0; node < kNodes; ++node) SetSlice(node, node % 2 == 0 ? kH100 : kA100);
    for (dra::DeviceClass& each : dra::NvidiaClasses()) Set(std::move(each));
    known_ = Fresh();
  }

  void Step() {
    const int node = static_cast<int>(random_() % kNodes);
    switch (random_() % 8) {
      case 0:
        return SetSlice(node, random_() % 2 == 0 ? kH100 : kA100);
      case 1:
        return Remove({dra::ObjectRef::Kind::kSlice, "", NameOf(node) + "-slice"});
      case 2: {
        dra::DeviceClass narrow = dra::NvidiaClasses()[0];
        if (random_() % 2 == 0) narrow.selectors.push_back("false");
        return Set(std::move(narrow));
      }
      case 3:
        return HearOfNode(node, random_() % 4 != 0);
      case 4:
      case 5:
        return Free();
      default:
        return Take(node);
    }
  }

  // The nodes in order and the reason, of an engine that was there all the time and of a new one.
  void Compare() {
    const std::vector<dra::Claim> wishes = {
        Asks("w1", 1), Asks("w2", 2), Asks("w4", 4),
        Asks("wa", 1, "device.attributes['gpu.nvidia.com'].productName.startsWith('NVIDIA A100')")};
    const std::unique_ptr<Engine> fresh = Fresh();
    for (const dra::Claim& wish : wishes) {
      ASSERT_EQ(Answer(*known_, wish), Answer(*fresh, wish)) << wish.name;
    }
  }

 private:
  static std::string NameOf(int node) { return fmt::format("n{}", node); }

  std::unique_ptr<Engine> Fresh() const {
    auto engine = std::make_unique<Engine>(EngineOptions{});
    for (int node = 0; node < kNodes; ++node) {
      if (!absent_.contains(node)) engine->UpsertNode(FactsOf(node), now_);
    }
    for (const auto& [name, object] : objects_) engine->SetDraObject(object, now_);
    engine->FinishRestore(now_);
    return engine;
  }
  static NodeFacts FactsOf(int node) {
    NodeFacts facts;
    facts.name = NodeName(NameOf(node));
    return facts;
  }

  std::string Answer(Engine& engine, const dra::Claim& wish) {
    engine.SetDraObject(wish, now_);
    PodFacts pod;
    pod.request.uid = PodUid(wish.name + "-pod");
    pod.request.name = {"team", wish.name + "-pod"};
    dra::PodClaims uses;
    uses.claims.push_back({"gpu", wish.name, ""});
    uses.containers.push_back({"main", "gpu", ""});
    pod.claims = std::make_shared<const dra::PodClaims>(std::move(uses));
    engine.UpsertPod(pod, now_);
    std::vector<std::string> names;
    for (int node = 0; node < kNodes; ++node) names.push_back(NameOf(node));
    const std::vector<std::string_view> views(names.begin(), names.end());
    FilterAnswer answer;
    engine.Filter(pod.request, views, now_, answer);
    std::string text = answer.untouched ? "untouched" : std::string(Describe(answer.reason).code);
    for (const uint32_t chosen : answer.chosen) text += " " + names[chosen];
    engine.DeletePod(pod.request.uid, now_);
    engine.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", wish.name}, now_);
    return text;
  }

  void Set(dra::Object object) {
    const dra::ObjectRef ref = dra::RefOf(object);
    if (known_) known_->SetDraObject(object, now_);
    objects_.insert_or_assign(ref, std::move(object));
  }
  void Remove(const dra::ObjectRef& ref) {
    known_->RemoveDraObject(ref, now_);
    objects_.erase(ref);
  }
  void SetSlice(int node, const char* product) {
    std::vector<dra::Device> devices;
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      devices.push_back(dra::GpuDevice(fmt::format("gpu-{}", gpu),
                                       fmt::format("{}-{}", NameOf(node), gpu), product, 40960));
    }
    Set(dra::NodeSlice(NameOf(node), std::move(devices)));
  }
  void HearOfNode(int node, bool there) {
    if (there) {
      absent_.erase(node);
      known_->UpsertNode(FactsOf(node), now_);
    } else if (absent_.insert(node).second) {
      known_->DeleteNode(NodeName(NameOf(node)), now_);
    }
  }
  void Take(int node) {
    const std::string name = fmt::format("held-{}", held_++);
    const std::string device = fmt::format("gpu-{}", random_() % kGpus);
    Set(dra::Holding(Asks(name, 1), {dra::Held("gpu", NameOf(node), device)}));
    holders_.push_back(name);
  }
  void Free() {
    if (holders_.empty()) return;
    const std::size_t at = random_() % holders_.size();
    Remove({dra::ObjectRef::Kind::kClaim, "team", holders_[at]});
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::mt19937 random_;
  const Instant now_ = test::At(0);
  std::map<dra::ObjectRef, dra::Object> objects_;
  std::set<int> absent_;
  std::vector<std::string> holders_;
  int held_ = 0;
  std::unique_ptr<Engine> known_;
};

TEST(ClaimScores, WhatIsRememberedIsWhatAFreshLookWouldSay) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(step);
      world.Step();
      world.Compare();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
