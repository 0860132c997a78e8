// The quota tree's recurrences read literally: recursive, from scratch for every question, in
// 128-bit integers. Slow and obviously right; only tests use it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/limits.h"
#include "topology/base/int128.h"

namespace tranche {

inline constexpr Int128 kNoLimit = kSaturated;

// Amounts near kNoLimit are some of it less what is used: still no limit.
inline int64_t Seen(Int128 amount) {
  return static_cast<int64_t>(amount > kNoLimit / 2 ? kNoLimit : amount);
}

// One line in one dimension of a forest. Quotas are numbered in name order; -1 is no quota.
struct Oracle {
  struct Quota {
    int parent = -1;
    std::vector<int> children;
    Int128 nominal = 0;
    std::optional<Int128> borrow;
    std::optional<Int128> lend;
    Int128 own = 0;  // charged to it
  };
  std::vector<Quota> quotas;

  const std::vector<int>& Children(int n) const { return At(n).children; }
  const Quota& At(int n) const { return quotas[static_cast<std::size_t>(n)]; }

  Int128 Subtree(int n) const {
    Int128 sum = At(n).nominal;
    for (const int c : Children(n)) sum += Exposed(c);
    return std::min(sum, kNoLimit);
  }
  Int128 Exposed(int n) const { return std::min(Subtree(n), At(n).lend.value_or(kNoLimit)); }
  Int128 Local(int n) const { return Subtree(n) - Exposed(n); }
  Int128 Spill(int n) const { return std::max<Int128>(0, Used(n) - Local(n)); }
  Int128 Used(int n) const {
    Int128 sum = At(n).own;
    for (const int c : Children(n)) sum += Spill(c);
    return sum;
  }
  Int128 Total(int n) const {
    Int128 sum = At(n).own;
    for (const int c : Children(n)) sum += Total(c);
    return sum;
  }
  Int128 Available(int n) const {
    if (At(n).parent == -1) return Subtree(n) - Used(n);
    const Int128 through = Exposed(n) - Spill(n) + At(n).borrow.value_or(kNoLimit);
    return std::max<Int128>(0, Local(n) - Used(n)) + std::min(Available(At(n).parent), through);
  }
  Int128 In(int n) const { return std::max<Int128>(0, Spill(n) - Exposed(n)); }

  std::vector<int> Path(int n) const {
    std::vector<int> path;
    for (; n != -1; n = At(n).parent) path.push_back(n);
    return path;
  }
  int Root(int n) const {
    while (At(n).parent != -1) n = At(n).parent;
    return n;
  }

  // out(n) of every quota of the tree; `fault` says how the sums do not balance.
  void Lend(int n, std::vector<Int128>& out, std::string& fault) const {
    const std::vector<int>& children = Children(n);
    Int128 demand = At(n).own + out[static_cast<std::size_t>(n)];
    Int128 idle = 0;
    const auto idle_of = [&](int c) {
      return Int128{Seen(std::max<Int128>(0, Exposed(c) - Spill(c)))};
    };
    for (const int c : children) {
      demand += In(c);
      idle += idle_of(c);
    }
    const Int128 lent = std::max<Int128>(0, demand - At(n).nominal - In(n));
    if (lent > idle) fault = "more is lent than is idle";
    Int128 given = 0;
    std::vector<std::pair<Int128, int>> remainders;  // negated, to sort the largest first
    for (const int c : children) {
      Int128& part = out[static_cast<std::size_t>(c)];
      part = idle == 0 ? 0 : lent * idle_of(c) / idle;
      given += part;
      if (idle != 0) remainders.emplace_back(-(lent * idle_of(c) % idle), c);
    }
    std::sort(remainders.begin(), remainders.end());
    for (std::size_t i = 0; given < lent; ++i, ++given) {
      ++out[static_cast<std::size_t>(remainders[i].second)];
    }
    for (const int c : children) {
      if (out[static_cast<std::size_t>(c)] > idle_of(c)) fault = "somebody lends what it uses";
      Lend(c, out, fault);
    }
    // What is wanted comes from the pool, then from outside, then from children: all of it.
    const Int128 pool = demand - In(n) - lent;
    if (pool < 0 || pool > At(n).nominal) fault = "the pool is overdrawn or left aside";
    if (lent > 0 && pool != At(n).nominal) fault = "children lend before the pool is empty";
  }

  // The same forest in another world.
  Oracle AllIdle() const {
    Oracle other = *this;
    for (Quota& quota : other.quotas) quota.own = 0;
    return other;
  }
  Oracle WithoutLendLimits() const {
    Oracle other = *this;
    for (Quota& quota : other.quotas) quota.lend.reset();
    return other;
  }
  // Of all borrow limits on the path only `kept`'s (-1: nobody's) holds.
  Oracle WithBorrowLimitOf(int kept, int leaf) const {
    Oracle other = *this;
    for (const int n : Path(leaf)) {
      if (n != kept) other.quotas[static_cast<std::size_t>(n)].borrow.reset();
    }
    return other;
  }
};

}  // namespace tranche
