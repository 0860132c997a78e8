#include "quota/tree/quota_tree.h"

#include <algorithm>

#include "policy/line_name.h"
#include "topology/base/check.h"
#include "topology/base/int128.h"
#include "topology/base/mark.h"

namespace tranche {

int64_t QuotaTree::Cell::Spill() const { return std::max<int64_t>(0, AddSaturating(used, -local)); }

int64_t QuotaTree::Cell::Idle() const {
  return std::max<int64_t>(0, AddSaturating(exposed, -Spill()));
}

int64_t QuotaTree::Cell::Borrowed() const {
  return std::max<int64_t>(0, AddSaturating(Spill(), -exposed));
}

int64_t QuotaTree::Cell::Room() const {
  return AddSaturating(AddSaturating(exposed, -Spill()), borrow_limit);
}

QuotaTree::Cell QuotaTree::Under(Premise premise, Cell cell) {
  switch (premise) {
    case Premise::kNow:
      break;
    case Premise::kAllIdle:
      cell.used = 0;
      break;
    case Premise::kNoBorrowLimits:
      cell.borrow_limit = kSaturated;
      break;
    case Premise::kNoLendLimits:
      // Everything is exposed, so everything used spills.
      cell.subtree = cell.exposed = cell.whole;
      cell.local = 0;
      cell.used = cell.total;
      break;
  }
  return cell;
}

std::size_t QuotaTree::Column(LineId line, Dimension dimension) {
  return line * 2 + static_cast<std::size_t>(dimension);
}

std::size_t QuotaTree::CellIndex(QuotaId id, std::size_t column) const {
  return id * lines_.size() * 2 + column;
}

std::size_t QuotaTree::LineIndex(QuotaId id, LineId line) const {
  return id * lines_.size() + line;
}

QuotaId QuotaTree::Find(std::string_view name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), name);
  if (at == names_.end() || *at != name) return kNoQuota;
  return static_cast<QuotaId>(at - names_.begin());
}

QuotaId QuotaTree::root(QuotaId id) const {
  while (parent(id) != kNoQuota) id = parent(id);
  return id;
}

LineId QuotaTree::FindLine(std::string_view name) const {
  const auto at = std::find(lines_.begin(), lines_.end(), name);
  return at == lines_.end() ? kNoLine : static_cast<LineId>(at - lines_.begin());
}

LineId QuotaTree::FindIn(std::string_view model, std::string_view pool) const {
  const auto at = std::ranges::find_if(lines_, [&](std::string_view name) {
    const LineParts parts = PartsOf(name);
    return parts.model == model && parts.pool == pool;
  });
  return at == lines_.end() ? kNoLine : static_cast<LineId>(at - lines_.begin());
}

LineId QuotaTree::LineOf(QuotaId id, std::string_view charged) const {
  const auto [model, pool] = PartsOf(charged);
  if (!pool.empty() && id != kNoQuota) {
    for (const std::string_view of : {model, std::string_view(kAnyModel)}) {
      const LineId line = FindIn(of, pool);
      if (Limits(id, line)) return line;
    }
  }
  return FindLine(model);
}

const std::string& QuotaTree::line_name(LineId line) const { return lines_[line]; }

// The recurrence unrolled from the quota up: at every level, the idle locals below and what may
// still spill through.
int64_t QuotaTree::AvailableIn(QuotaId id, std::size_t column, Premise premise) const {
  int64_t least = kSaturated;
  int64_t locals = 0;
  for (; parent(id) != kNoQuota; id = parent(id)) {
    const Cell cell = Under(premise, At(id, column));
    locals = AddSaturating(locals, std::max<int64_t>(0, AddSaturating(cell.local, -cell.used)));
    least = std::min(least, AddSaturating(locals, cell.Room()));
  }
  const Cell cell = Under(premise, At(id, column));
  return std::min(least, AddSaturating(locals, AddSaturating(cell.subtree, -cell.used)));
}

QuotaVerdict QuotaTree::Check(QuotaId leaf, LineId own, const Charge& charge) const {
  TRANCHE_CHECK_GE(charge.compute, 0);
  TRANCHE_CHECK_GE(charge.memory, 0);
  QuotaVerdict verdict;
  for (const LineId line : {own, kAnyLine}) {
    if (line == kNoLine || !Limited(leaf, line)) continue;
    for (const Dimension dimension : kDimensions) {
      const int64_t amount = PartOf(charge, dimension);
      if (amount == 0) continue;
      const std::size_t column = Column(line, dimension);
      const int64_t available = AvailableIn(leaf, column, Premise::kNow);
      const Cell& cell = At(leaf, column);
      if (amount > AddSaturating(cell.nominal, -cell.total)) verdict.borrows = true;
      if (amount <= available) continue;
      QuotaVerdict refused{.line = line, .dimension = dimension, .short_by = amount - available};
      ExplainRefusal(leaf, column, amount, refused);
      if (verdict.refusal == QuotaRefusal::kNone || refused.refusal < verdict.refusal) {
        verdict = refused;
      }
    }
  }
  if (verdict.refusal != QuotaRefusal::kNone) verdict.borrows = false;
  return verdict;
}

void QuotaTree::ExplainRefusal(QuotaId leaf, std::size_t column, int64_t amount,
                               QuotaVerdict& verdict) const {
  if (amount > AvailableIn(leaf, column, Premise::kAllIdle)) {
    verdict.refusal = QuotaRefusal::kExceedsMax;
  } else if (amount <= AvailableIn(leaf, column, Premise::kNoBorrowLimits)) {
    verdict.refusal = QuotaRefusal::kBorrowLimit;
    verdict.binding = WhoseBorrowLimit(leaf, column, amount);
  } else if (amount <= AvailableIn(leaf, column, Premise::kNoLendLimits)) {
    TRANCHE_MARK(quota_held_back_by_lenders);
    verdict.refusal = QuotaRefusal::kLenderLimit;
    verdict.binding = WhoHoldsBack(leaf, column);
  } else {
    verdict.refusal = QuotaRefusal::kWaiting;
  }
}

QuotaId QuotaTree::WhoseBorrowLimit(QuotaId leaf, std::size_t column, int64_t amount) const {
  // Unreachable: a charge that fits without borrowLimits meets one that binds below the root.
  for (QuotaId id = leaf; parent(id) != kNoQuota; id = parent(id)) {
    const Cell& cell = At(id, column);
    amount = AddSaturating(amount, -std::max<int64_t>(0, cell.local - cell.used));
    if (amount > cell.Room()) return id;
  }
  return kNoQuota;
}

QuotaId QuotaTree::WhoHoldsBack(QuotaId leaf, std::size_t column) const {
  // What is idle on the leaf's own path is not held back from it.
  const auto on_path = [&](QuotaId wanted) {
    QuotaId id = leaf;
    while (id != kNoQuota && id != wanted) id = parent(id);
    return id == wanted;
  };
  QuotaId most = kNoQuota;
  int64_t held_back = 0;
  for (QuotaId id{0}; id < size(); ++id) {
    const Cell& cell = At(id, column);
    if (cell.local - cell.used <= held_back || root(id) != root(leaf) || on_path(id)) continue;
    most = id;
    held_back = cell.local - cell.used;
  }
  return most;
}

void QuotaTree::Add(QuotaId leaf, LineId line, const Charge& charge) {
  for (const Dimension dimension : kDimensions) {
    const int64_t amount = PartOf(charge, dimension);
    if (line > kAnyLine) Use(leaf, Column(line, dimension), amount);
    Use(leaf, Column(kAnyLine, dimension), amount);
  }
}

void QuotaTree::Remove(QuotaId leaf, LineId line, const Charge& charge) {
  Add(leaf, line, {-charge.compute, -charge.memory});
}

void QuotaTree::Use(QuotaId id, std::size_t column, int64_t amount) {
  int64_t spilled = amount;
  for (; id != kNoQuota; id = parent(id)) {
    Cell& cell = At(id, column);
    cell.total += amount;
    const int64_t before = cell.Spill();
    cell.used += spilled;
    spilled = cell.Spill() - before;
  }
}

// What each child of `above` lends, of which `above` itself lends `lent`.
void QuotaTree::LendBelow(QuotaId above, std::size_t column, int64_t lent,
                          std::vector<int64_t>& by_child) const {
  const std::vector<QuotaId>& children = children_[above];
  by_child.assign(children.size(), 0);
  // What `above` uses that did not spill from a child is its own.
  int64_t demand = AddSaturating(lent, At(above, column).used);
  Int128 idle = 0;
  for (const QuotaId child : children) {
    const Cell& cell = At(child, column);
    demand += cell.Borrowed() - cell.Spill();
    idle += cell.Idle();
  }
  const Cell& cell = At(above, column);
  // Never more than what is idle, or `above` would borrow it.
  const Int128 wanted = AddSaturating(AddSaturating(demand, -cell.nominal), -cell.Borrowed());
  if (wanted <= 0) return;

  struct Remainder {
    Int128 size = 0;
    std::size_t child = 0;
  };
  std::vector<Remainder> remainders;
  Int128 left_over = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Int128 part = wanted * At(children[i], column).Idle();
    by_child[i] = static_cast<int64_t>(part / idle);
    remainders.push_back({part % idle, i});
    left_over += remainders.back().size;
  }
  left_over /= idle;
  // Children ascend by name.
  std::ranges::stable_sort(remainders, std::ranges::greater{}, &Remainder::size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(left_over); ++i) {
    ++by_child[remainders[i].child];
  }
}

int64_t QuotaTree::Lent(QuotaId id, std::size_t column) const {
  const QuotaId above = parent(id);
  if (above == kNoQuota) return 0;
  std::vector<int64_t> by_child;
  LendBelow(above, column, Lent(above, column), by_child);
  const std::vector<QuotaId>& children = children_[above];
  return by_child[static_cast<std::size_t>(std::ranges::find(children, id) - children.begin())];
}

// Defined, or charged although others define it.
bool QuotaTree::Shown(QuotaId id, LineId line) const {
  const bool uses = At(id, Column(line, Dimension::kCompute)).total != 0 ||
                    At(id, Column(line, Dimension::kMemory)).total != 0;
  return Defined(id, line) || (uses && Limited(id, line));
}

int64_t QuotaTree::MostBorrowed(QuotaId id) const {
  int64_t most = 0;
  for (LineId line{0}; line < lines_.size(); ++line) {
    if (Shown(id, line)) most = std::max(most, GpuEquivalents(Borrowed(id, line)));
  }
  return most;
}

template <typename LentOf>
std::vector<QuotaLineView> QuotaTree::ViewWith(QuotaId id, LentOf lent_of) const {
  std::vector<QuotaLineView> views;
  for (std::size_t next = 1; next <= lines_.size(); ++next) {
    const auto line = static_cast<LineId>(next % lines_.size());
    if (!Shown(id, line)) continue;
    QuotaLineView& view = views.emplace_back();
    view.name = line_name(line);
    for (const Dimension dimension : kDimensions) {
      const std::size_t column = Column(line, dimension);
      const Cell& cell = At(id, column);
      PartOf(view.nominal, dimension) = cell.nominal;
      PartOf(view.used, dimension) = cell.total;
      PartOf(view.lent, dimension) = lent_of(column);
      PartOf(view.borrowed, dimension) = cell.Borrowed();
      PartOf(view.available, dimension) = AvailableIn(id, column, Premise::kNow);
      PartOf(view.reach, dimension) = AvailableIn(id, column, Premise::kAllIdle);
    }
  }
  return views;
}

std::vector<QuotaLineView> QuotaTree::View(QuotaId id) const {
  return ViewWith(id, [&](std::size_t column) { return Lent(id, column); });
}

std::vector<std::vector<QuotaLineView>> QuotaTree::Views() const {
  std::vector<int64_t> lent(cells_.size());
  std::vector<int64_t> by_child;
  for (const QuotaId above : order_) {
    if (children_[above].empty()) continue;
    for (std::size_t column = 0; column < lines_.size() * 2; ++column) {
      LendBelow(above, column, lent[CellIndex(above, column)], by_child);
      for (std::size_t i = 0; i < by_child.size(); ++i) {
        lent[CellIndex(children_[above][i], column)] = by_child[i];
      }
    }
  }
  std::vector<std::vector<QuotaLineView>> views;
  for (QuotaId id{0}; id < size(); ++id) {
    views.push_back(ViewWith(id, [&](std::size_t column) { return lent[CellIndex(id, column)]; }));
  }
  return views;
}

ChargeLimit QuotaTree::Available(QuotaId id, LineId line) const {
  ChargeLimit available;
  for (const LineId one : {line, kAnyLine}) {
    if (one == kNoLine || !Limited(id, one)) continue;
    for (const Dimension dimension : kDimensions) {
      Limit& least = PartOf(available, dimension);
      least = std::min<Limit>(least, AvailableIn(id, Column(one, dimension), Premise::kNow));
    }
  }
  return available;
}

Charge QuotaTree::Used(QuotaId id, LineId line) const {
  if (line == kNoLine) return {};
  return {At(id, Column(line, Dimension::kCompute)).total,
          At(id, Column(line, Dimension::kMemory)).total};
}

ChargeLimit QuotaTree::Nominal(QuotaId id, LineId line) const {
  if (line == kNoLine || !Limited(id, line)) return {};
  return {At(id, Column(line, Dimension::kCompute)).nominal,
          At(id, Column(line, Dimension::kMemory)).nominal};
}

Charge QuotaTree::Borrowed(QuotaId id, LineId line) const {
  if (!Limits(id, line)) return {};
  return {At(id, Column(line, Dimension::kCompute)).Borrowed(),
          At(id, Column(line, Dimension::kMemory)).Borrowed()};
}

std::vector<std::pair<QuotaId, Charge>> QuotaTree::Borrowers(QuotaId root_id, LineId line) const {
  std::vector<std::pair<QuotaId, Charge>> borrowers;
  if (line == kNoLine || !Limited(root_id, line)) return borrowers;
  for (QuotaId id{0}; id < size(); ++id) {
    if (!children_[id].empty() || root(id) != root_id) continue;
    const Charge excess{At(id, Column(line, Dimension::kCompute)).Borrowed(),
                        At(id, Column(line, Dimension::kMemory)).Borrowed()};
    if (GpuEquivalents(excess) > 0) borrowers.emplace_back(id, excess);
  }
  std::stable_sort(borrowers.begin(), borrowers.end(), [](const auto& a, const auto& b) {
    return GpuEquivalents(a.second) > GpuEquivalents(b.second);
  });
  return borrowers;
}

}  // namespace tranche
