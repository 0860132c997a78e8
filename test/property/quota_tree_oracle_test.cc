// The quota tree against a slow, obviously right reading of its recurrences. Random trees of small
// numbers, random use; seeds are printed on failure.
//
//   TRANCHE_SEED=7 TRANCHE_STEPS=1 property_tests --gtest_filter='QuotaTreeOracle*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/quota_tree.h"
#include "test/property/quota_oracle.h"

namespace tranche {
namespace THIS_FILE {

constexpr int kMaxDepth = 4;
const std::vector<std::string> kModels = {"any", "h200", "l4"};  // line ids of a tree with all

// A random forest both ways, and the use of it.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    MakeNodes();
    tree_ = QuotaTree::Build(nodes_).value();
    std::sort(nodes_.begin(), nodes_.end(),
              [](const QuotaNode& a, const QuotaNode& b) { return a.name < b.name; });
    MakeOracles();
  }

  void Run() {
    const bool foreign = Roll(0, 3) == 0;  // pods that others placed, beyond every limit
    const int steps = Roll(2, 8);
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      if (!uses_.empty() && Roll(0, 3) == 0) {
        RemoveOne();
      } else {
        Filters(foreign && Roll(0, 2) == 0);
      }
      if (!foreign) ExpectWithinLimits();
    }
    ExpectSameNumbers();
    while (!uses_.empty()) RemoveOne();
    ExpectSameAsNew();
  }

  const std::map<QuotaRefusal, int64_t>& refused() const { return refused_; }

 private:
  struct Use {
    int leaf;
    LineId line;
    Charge charge;
  };

  int Roll(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<uint64_t>(to - from + 1));
  }
  int64_t Amount(int most) { return Roll(0, 19) == 0 ? kSaturated : Roll(0, most); }
  ChargeLimit MaybeLimit() {
    if (Roll(0, 1) == 0) return {};
    return Charge{Amount(5), Amount(5)};
  }

  void MakeNodes() {
    const int count = Roll(1, 12);
    const int models = Roll(1, 3);
    std::string letters = "abcdefghijkl";
    std::shuffle(letters.begin(), letters.end(), random_);
    std::vector<int> depth;
    for (int i = 0; i < count; ++i) {
      QuotaNode node;
      node.name = letters.substr(static_cast<std::size_t>(i), 1);
      depth.push_back(1);
      const auto above = static_cast<std::size_t>(Roll(0, std::max(0, i - 1)));
      if (i > 0 && Roll(0, 7) != 0 && depth[above] < kMaxDepth) {
        node.parent = nodes_[above].name;
        depth.back() = depth[above] + 1;
      }
      const int first = Roll(0, 1);  // with or without `any`
      for (int line = first; line < std::min(3, first + models); ++line) {
        if (Roll(0, 2) == 0) continue;
        const LineLimits limits{Charge{Amount(8), Amount(8)}, MaybeLimit(), MaybeLimit()};
        node.lines.emplace_back(kModels[static_cast<std::size_t>(line)], limits);
      }
      node.suspended = Roll(0, 9) == 0;
      nodes_.push_back(std::move(node));
    }
  }

  // nullptr: the quota has no such line.
  static const LineLimits* LineOf(const QuotaNode& node, const std::string& model) {
    for (const auto& [name, limits] : node.lines) {
      if (name == model) return &limits;
    }
    return nullptr;
  }

  void MakeOracles() {
    for (const std::string& model : kModels) {
      for (const Dimension dimension : kDimensions) {
        oracles_.push_back(MakeOracle(model, dimension));
      }
    }
  }

  Oracle MakeOracle(const std::string& model, Dimension dimension) const {
    Oracle oracle;
    for (const QuotaNode& node : nodes_) {
      Oracle::Quota& quota = oracle.quotas.emplace_back();
      quota.parent = tree_.Find(node.parent).number();
      if (const LineLimits* limits = LineOf(node, model)) {
        quota.nominal = PartOf(limits->nominal, dimension).saturated();
        quota.borrow = PartOf(limits->borrow_limit, dimension).amount();
        quota.lend = PartOf(limits->lend_limit, dimension).amount();
      } else if (model == "any") {
        for (const auto& [name, of_model] : node.lines)
          quota.nominal += PartOf(of_model.nominal, dimension).saturated();
        quota.nominal = std::min(quota.nominal, kNoLimit);
      }
    }
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
      const int parent = oracle.At(n).parent;
      if (parent != -1) oracle.quotas[static_cast<std::size_t>(parent)].children.push_back(n);
    }
    // Deepest first, so that what a suspended parent was given moves on.
    for (int depth = kMaxDepth; depth > 1; --depth) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].suspended) continue;
        if (oracle.Path(static_cast<int>(i)).size() != static_cast<std::size_t>(depth)) continue;
        Int128& pool = oracle.quotas[static_cast<std::size_t>(oracle.quotas[i].parent)].nominal;
        pool = std::min(kNoLimit, pool + oracle.quotas[i].nominal);
        oracle.quotas[i].nominal = 0;
      }
    }
    return oracle;
  }

  // Somebody in the tree of `n` has the line.
  bool Limited(int n, LineId line) const {
    const Oracle& any = oracles_.front();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (any.Root(static_cast<int>(i)) != any.Root(n)) continue;
      if (LineOf(nodes_[i], kModels[static_cast<std::size_t>(line)]) != nullptr) return true;
    }
    return false;
  }
  const Oracle& Column(LineId line, int dimension) const {
    return oracles_[static_cast<std::size_t>(line * 2 + dimension)];
  }
  // The tree numbers only the models that somebody names.
  LineId InTree(LineId line) const {
    return line == kNoLine ? kNoLine : tree_.FindLine(kModels[static_cast<std::size_t>(line)]);
  }
  static std::vector<LineId> Charged(LineId line) {
    if (line == kNoLine || line == kAnyLine) return {kAnyLine};
    return {line, kAnyLine};
  }

  void Apply(const Use& use, int sign) {
    for (const LineId line : Charged(use.line)) {
      for (int dimension = 0; dimension < 2; ++dimension) {
        oracles_[static_cast<std::size_t>(line * 2 + dimension)]
            .quotas[static_cast<std::size_t>(use.leaf)]
            .own += sign * (dimension == 0 ? use.charge.compute : use.charge.memory);
      }
    }
  }

  void RemoveOne() {
    const auto which = static_cast<std::size_t>(Roll(0, static_cast<int>(uses_.size()) - 1));
    const Use use = uses_[which];
    uses_.erase(uses_.begin() + static_cast<std::ptrdiff_t>(which));
    tree_.Remove(QuotaId(use.leaf), InTree(use.line), use.charge);
    Apply(use, -1);
  }

  // Some requests are asked about against one state and committed one after the other, each after
  // another look: concurrent filters must not commit beyond the limits.
  void Filters(bool foreign) {
    std::vector<Use> wanted;
    for (int i = Roll(1, 3); i > 0; --i) {
      Use use{Roll(0, static_cast<int>(nodes_.size()) - 1),
              LineId(Roll(-1, 2)),
              {Roll(0, 5), Roll(0, 5)}};
      if (!oracles_.front().Children(use.leaf).empty() && Roll(0, 4) != 0) continue;
      if (foreign || Verdict(use).refusal == QuotaRefusal::kNone) wanted.push_back(use);
    }
    for (const Use& use : wanted) {
      if (!foreign && Verdict(use).refusal != QuotaRefusal::kNone) continue;
      tree_.Add(QuotaId(use.leaf), InTree(use.line), use.charge);
      Apply(use, 1);
      uses_.push_back(use);
    }
  }

  // The tree's answer, held against the oracle's.
  QuotaVerdict Verdict(const Use& use) {
    const QuotaVerdict verdict = tree_.Check(QuotaId(use.leaf), InTree(use.line), use.charge);
    QuotaVerdict expected;
    const Oracle* refusing = nullptr;
    for (const LineId line : Charged(use.line)) {
      if (!Limited(use.leaf, line)) continue;
      for (int dimension = 0; dimension < 2; ++dimension) {
        const int64_t amount = dimension == 0 ? use.charge.compute : use.charge.memory;
        const Oracle& oracle = Column(line, dimension);
        if (amount == 0) continue;
        const Int128 free = oracle.At(use.leaf).nominal - oracle.Total(use.leaf);
        expected.borrows |= amount > Seen(free);
        const QuotaRefusal refusal = RefusalOf(oracle, use.leaf, amount);
        if (refusal == QuotaRefusal::kNone) continue;
        if (refusing != nullptr && refusal >= expected.refusal) continue;
        refusing = &oracle;
        expected.refusal = refusal;
        expected.line = InTree(line);
        expected.dimension = dimension == 0 ? Dimension::kCompute : Dimension::kMemory;
        expected.short_by = static_cast<int64_t>(amount - oracle.Available(use.leaf));
      }
    }
    EXPECT_EQ(verdict.refusal, expected.refusal);
    if (refusing == nullptr) {
      EXPECT_EQ(verdict.borrows, expected.borrows);
    } else {
      ++refused_[expected.refusal];
      EXPECT_EQ(verdict.line, expected.line);
      EXPECT_EQ(verdict.dimension, expected.dimension);
      EXPECT_EQ(verdict.short_by, expected.short_by);
      const bool compute = expected.dimension == Dimension::kCompute;
      ExpectBinding(*refusing, use.leaf, compute ? use.charge.compute : use.charge.memory, verdict);
    }
    return verdict;
  }

  static bool Fits(const Oracle& oracle, int leaf, Int128 amount) {
    return amount <= Seen(oracle.Available(leaf));
  }

  static QuotaRefusal RefusalOf(const Oracle& oracle, int leaf, Int128 amount) {
    if (Fits(oracle, leaf, amount)) return QuotaRefusal::kNone;
    if (!Fits(oracle.AllIdle(), leaf, amount)) return QuotaRefusal::kExceedsMax;
    if (Fits(oracle.WithBorrowLimitOf(-1, leaf), leaf, amount)) return QuotaRefusal::kBorrowLimit;
    if (Fits(oracle.WithoutLendLimits(), leaf, amount)) return QuotaRefusal::kLenderLimit;
    return QuotaRefusal::kWaiting;
  }

  static void ExpectBinding(const Oracle& oracle, int leaf, Int128 amount,
                            const QuotaVerdict& verdict) {
    const std::vector<int> path = oracle.Path(leaf);
    int expected = -1;
    if (verdict.refusal == QuotaRefusal::kBorrowLimit) {
      // The nearest whose limit alone is enough to refuse.
      expected = *std::find_if(path.begin(), path.end(), [&](int n) {
        return !Fits(oracle.WithBorrowLimitOf(n, leaf), leaf, amount);
      });
    } else if (verdict.refusal == QuotaRefusal::kLenderLimit) {
      Int128 most = 0;
      for (int n = 0; n < static_cast<int>(oracle.quotas.size()); ++n) {
        if (oracle.Root(n) != path.back()) continue;
        if (std::find(path.begin(), path.end(), n) != path.end()) continue;
        if (oracle.Local(n) - oracle.Used(n) > most) {
          most = oracle.Local(n) - oracle.Used(n);
          expected = n;
        }
      }
      EXPECT_NE(expected, -1) << "nobody holds anything back";
      EXPECT_TRUE(oracle.At(expected).lend.has_value());
    }
    EXPECT_EQ(verdict.binding, expected);
  }

  // Only what Check allowed was committed.
  void ExpectWithinLimits() const {
    for (LineId line{0}; line < 3; ++line) {
      for (int dimension = 0; dimension < 2; ++dimension) {
        const Oracle& oracle = Column(line, dimension);
        for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
          if (!Limited(n, line)) continue;
          EXPECT_GE(Seen(oracle.Available(n)), 0) << nodes_[static_cast<std::size_t>(n)].name;
          const Int128 beyond =
              oracle.At(n).parent == -1 ? 0 : oracle.At(n).borrow.value_or(kNoLimit);
          EXPECT_TRUE(oracle.Used(n) <= oracle.Subtree(n) + beyond);
        }
      }
    }
  }

  // Smaller over line and any.
  ChargeLimit AvailableOf(int n, LineId line) const {
    ChargeLimit least;
    for (const LineId one : Charged(line)) {
      if (!Limited(n, one)) continue;
      const Charge free = Both(one, [&](const Oracle& oracle) { return oracle.Available(n); });
      least = {std::min<Limit>(least.compute, free.compute),
               std::min<Limit>(least.memory, free.memory)};
    }
    return least;
  }

  void ExpectSameNumbers() const {
    for (LineId line{0}; line < 3; ++line) {
      const LineId in_tree = InTree(line);
      if (in_tree == kNoLine) continue;
      for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
        EXPECT_EQ(tree_.Available(QuotaId(n), in_tree), AvailableOf(n, line));
        EXPECT_EQ(tree_.Used(QuotaId(n), in_tree),
                  Both(line, [&](const Oracle& oracle) { return oracle.Total(n); }));
        EXPECT_EQ(tree_.Nominal(QuotaId(n), in_tree), Both(line, [&](const Oracle& oracle) {
                    return Limited(n, line) ? oracle.At(n).nominal : kNoLimit;
                  }));
      }
      ExpectSameBorrowers(line);
    }
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) ExpectSameView(n);
  }

  template <typename Question>
  Charge Both(LineId line, const Question& question) const {
    return {Seen(question(Column(line, 0))), Seen(question(Column(line, 1)))};
  }

  void ExpectSameView(int n) const {
    for (const QuotaLineView& view : tree_.View(QuotaId(n))) {
      const auto line = static_cast<LineId>(std::find(kModels.begin(), kModels.end(), view.name) -
                                            kModels.begin());
      ASSERT_TRUE(Limited(n, line));
      EXPECT_EQ(view.nominal, tree_.Nominal(QuotaId(n), InTree(line)));
      EXPECT_EQ(view.used, tree_.Used(QuotaId(n), InTree(line)));
      EXPECT_EQ(view.available,
                Both(line, [&](const Oracle& oracle) { return oracle.Available(n); }));
      EXPECT_EQ(view.reach,
                Both(line, [&](const Oracle& oracle) { return oracle.AllIdle().Available(n); }));
      EXPECT_EQ(view.borrowed, Both(line, [&](const Oracle& oracle) { return oracle.In(n); }));
      EXPECT_EQ(view.lent, Both(line, [&](const Oracle& oracle) {
                  std::vector<Int128> out(nodes_.size());
                  std::string fault;
                  oracle.Lend(oracle.Root(n), out, fault);
                  EXPECT_EQ(fault, "");
                  return out[static_cast<std::size_t>(n)];
                }));
    }
  }

  void ExpectSameBorrowers(LineId line) const {
    for (int root = 0; root < static_cast<int>(nodes_.size()); ++root) {
      if (!nodes_[static_cast<std::size_t>(root)].parent.empty()) continue;
      std::vector<std::pair<QuotaId, Charge>> expected;
      for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
        const Oracle& any = oracles_.front();
        if (any.Root(n) != root || !any.Children(n).empty() || !Limited(n, line)) continue;
        const Charge excess = Both(line, [&](const Oracle& oracle) {
          return std::max<Int128>(0, oracle.Total(n) - oracle.At(n).nominal);
        });
        if (excess != Charge{}) expected.emplace_back(n, excess);
      }
      std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
        return std::pair(-GpuEquivalents(a.second), a.first) <
               std::pair(-GpuEquivalents(b.second), b.first);
      });
      EXPECT_EQ(tree_.Borrowers(QuotaId(root), InTree(line)), expected);
    }
  }

  // Everything was removed: every counter is where it began.
  void ExpectSameAsNew() const {
    const QuotaTree fresh = QuotaTree::Build(nodes_).value();
    for (QuotaId n{0}; n < fresh.size(); ++n) {
      for (const std::string& model : kModels) {
        const LineId line = fresh.FindLine(model);
        EXPECT_EQ(tree_.Used(n, line), Charge{});
        EXPECT_EQ(tree_.Available(n, line), fresh.Available(n, line));
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<QuotaNode> nodes_;  // ascending by name, as the tree numbers them
  QuotaTree tree_;
  std::vector<Oracle> oracles_;  // kModels x dimension
  std::vector<Use> uses_;
  std::map<QuotaRefusal, int64_t> refused_;
};

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

TEST(QuotaTreeOracle, RandomTreesAnswerAsTheRecurrencesSay) {
  const int64_t trees = FromEnvironment("TRANCHE_STEPS", 100'000);
  const auto first_seed = static_cast<uint64_t>(FromEnvironment("TRANCHE_SEED", 1));
  std::map<QuotaRefusal, int64_t> refused;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(trees); ++seed) {
    World world(seed);
    world.Run();
    ASSERT_FALSE(HasFailure()) << "replay with TRANCHE_SEED=" << seed << " TRANCHE_STEPS=1";
    for (const auto& [refusal, count] : world.refused()) refused[refusal] += count;
  }
  if (trees < 10'000) return;
  for (const QuotaRefusal refusal : {QuotaRefusal::kExceedsMax, QuotaRefusal::kBorrowLimit,
                                     QuotaRefusal::kLenderLimit, QuotaRefusal::kWaiting}) {
    EXPECT_GT(refused[refusal], trees / 1000) << "too few of one kind: the test says little";
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
