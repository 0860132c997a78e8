#include "quota/past_uses.h"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace tranche {
namespace {

// How often all kinds are looked at for what is old.
constexpr Millis kForgetEvery = std::chrono::hours(1);

}  // namespace

bool PastUses::InOrder::operator()(const PastKind& left, const PastKind& right) const {
  const auto names = [](const PastKind& kind) {
    return std::tie(kind.leaf, kind.ns, kind.workload_class, kind.sign);
  };
  if (names(left) != names(right)) return names(left) < names(right);
  return std::ranges::lexicographical_compare(
      left.parts, right.parts, [](const ModelCharge& one, const ModelCharge& other) {
        return std::tie(one.model, one.charge) < std::tie(other.model, other.charge);
      });
}

void PastUses::Add(const PastKind& kind, std::span<const PastLife> lives) {
  if (lives.empty()) return;
  Lives& of_kind = kinds_[kind];
  of_kind.lives_.insert(of_kind.lives_.end(), lives.begin(), lives.end());
  for (const PastLife& life : lives) of_kind.newest_ = std::max(of_kind.newest_, life.until);
}

void PastUses::Forget(Instant before) {
  if (forgot_ != Instant::min() && before - forgot_ < kForgetEvery) return;
  forgot_ = before;
  for (auto of_kind = kinds_.begin(); of_kind != kinds_.end();) {
    Lives& lives = of_kind->second;
    while (lives.gone_ < lives.lives_.size() && lives.lives_[lives.gone_].until < before) {
      ++lives.gone_;
    }
    if (lives.gone_ == lives.lives_.size()) {
      of_kind = kinds_.erase(of_kind);
      continue;
    }
    // Each is moved once for each time as many were dropped.
    if (lives.gone_ > lives.lives_.size() / 2) {
      lives.lives_.erase(lives.lives_.begin(),
                         lives.lives_.begin() + static_cast<std::ptrdiff_t>(lives.gone_));
      lives.lives_.shrink_to_fit();
      lives.gone_ = 0;
    }
    ++of_kind;
  }
}

}  // namespace tranche
