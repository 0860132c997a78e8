// Filter allocates for the decision, not for its candidates. Counted by replacing operator new;
// sanitizers bring their own, so under them there is nothing to count.
#include <cstdlib>
#include <limits>
#include <new>

#include "test/unit/scheduler/engine/engine_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRANCHE_COUNTS_ALLOCATIONS 0
#else
#define TRANCHE_COUNTS_ALLOCATIONS 1
#endif

namespace {

thread_local int64_t allocations = 0;

}  // namespace

#if TRANCHE_COUNTS_ALLOCATIONS
void* operator new(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace tranche {
namespace THIS_FILE {

constexpr int kNodes = 5000;
constexpr int kFew = 100;
constexpr int kCalls = 12;

QuotaLine Line(const std::string& model, int64_t nominal, int64_t borrow) {
  QuotaLine line;
  line.model = model;
  line.nominal.gpus = MilliGpu::Of(nominal * 1000);
  line.borrow_limit = QuotaAmount();
  line.borrow_limit->gpus = MilliGpu::Of(borrow * 1000);
  return line;
}

GpuQuota Quota(const std::string& name, const std::string& parent, int64_t nominal,
               int64_t borrow) {
  GpuQuota quota;
  quota.name = name;
  quota.uid = "uid-" + name;
  quota.parent = parent;
  quota.lines = {Line("any", nominal, borrow), Line("h100", nominal, borrow)};
  if (parent.empty()) return quota;
  quota.namespaces = LabelSelector{{{"kubernetes.io/metadata.name", name}}, {}};
  return quota;
}

GpuBudget Budget(const std::string& quota, OnExhaustion on_exhaustion) {
  GpuBudget budget;
  budget.name = quota + "-monthly";
  budget.uid = "uid-" + budget.name;
  budget.quota_ref = quota;
  budget.milli_gpu_hours = 1'000'000'000;
  budget.on_exhaustion = on_exhaustion;
  return budget;
}

// Nodes of two kinds in turn, so that quota is asked about both.
class EngineAllocations : public testing::Test {
 protected:
  EngineAllocations() : engine_(EngineOptions{}) {
    auto set = std::make_shared<PolicySet>();
    set->quotas = {Quota("borrows", "org", 0, 1000), Quota("entitled", "org", 1000, 0),
                   Quota("full", "org", 1, 0), Quota("org", "", 100'000, 0)};
    set->budgets = {Budget("borrows", OnExhaustion::kDemote),
                    Budget("entitled", OnExhaustion::kBlock)};
    for (const std::string ns : {"borrows", "entitled", "full"}) {
      set->namespaces[ns] = {{"kubernetes.io/metadata.name", ns}};
    }
    engine_.SetPolicies(set, GpuPolicy(), now_);
    for (int i = 0; i < kNodes; ++i) {
      names_.push_back(fmt::format("n{:04}", i));
      engine_.UpsertNode(i % 2 == 0 ? test::StockNode(names_.back(), 8)
                                    : test::StockNode(names_.back(), 4, "Tesla-T4", 15360),
                         now_);
    }
    for (const std::string ns : {"borrows", "entitled"}) {
      for (int i = 0; i < 20; ++i) {
        PodRequest running = test::WholePod(fmt::format("{}-{}", ns, i), 1);
        running.name.ns = ns;
        engine_.UpsertPod(test::Bound(running, names_[static_cast<std::size_t>(i)]), now_);
      }
    }
  }

  // The least of several calls: some calls also grow a queue.
  int64_t AllocationsOf(const PodRequest& request, int candidates) {
    const std::vector<std::string_view> names(names_.begin(), names_.begin() + candidates);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int call = 0; call < kCalls; ++call) {
      const int64_t before = allocations;
      engine_.Filter(request, names, now_, answer_);
      least = std::min(least, allocations - before);
    }
    return least;
  }

  Engine engine_;
  Instant now_ = test::At(0);
  std::vector<std::string> names_;
  FilterAnswer answer_;
};

TEST_F(EngineAllocations, AreAsManyForFiveThousandCandidatesAsForAHundred) {
  if (TRANCHE_COUNTS_ALLOCATIONS == 0) GTEST_SKIP() << "the sanitizer's operator new is in place";
  for (const std::string ns : {"borrows", "entitled", "full", "without-quota"}) {
    SCOPED_TRACE(ns);
    // What a fraction lacks on no card, two GPUs and sixteen.
    for (const int64_t gpus : {2, 16}) {
      PodRequest request = test::WholePod(fmt::format("{}-{}", ns, gpus), gpus);
      request.name.ns = ns;
      AllocationsOf(request, kNodes);  // scratch grows to what the largest question takes
      // Where few are asked about, the others are looked at besides: a question more, not a node.
      constexpr double kOfAQuestion = 4;
      EXPECT_NEAR(static_cast<double>(AllocationsOf(request, kNodes)),
                  static_cast<double>(AllocationsOf(request, kFew)), kOfAQuestion)
          << gpus << " GPUs";
    }
  }
}

TEST_F(EngineAllocations, AreCounted) {
  if (TRANCHE_COUNTS_ALLOCATIONS == 0) GTEST_SKIP() << "the sanitizer's operator new is in place";
  PodRequest request = test::WholePod("pod", 1);
  request.name.ns = "entitled";
  EXPECT_GT(AllocationsOf(request, kFew), 0);
  EXPECT_FALSE(answer_.chosen.empty());
}

}  // namespace THIS_FILE
}  // namespace tranche
