// The quota tree: how much each team may use, of its nominal and of what others lend.
//
// quota-model section 2, per line (GPU model, GPUs of a pool, or `any`) and dimension (compute,
// memory):
//
//   exposed(n)   = min(subtree(n), lendLimit(n));  subtree(n) = nominal(n) + sum exposed(children)
//   local(n)     = subtree(n) - exposed(n);        spill(n)   = max(0, used(n) - local(n))
//   used(inner)  = sum spill(children)
//   available(n) = max(0, local - used)
//                  + min(available(parent), exposed(n) - spill(n) + borrowLimit(n))
//   available(root) = subtree - used
//
// A use is charged to one line and to `any`. That line is its model's, but on GPUs of a pool the
// most exact that some quota of the tree (of that root) defines: of the model in the pool, of the
// pool, of the model. A line that no quota of the tree defines is unlimited there. Where a tree has
// an `any` line, a quota without one has as implied `any` nominal the sum of its other nominals.
// `suspended` leaves (an exhausted budget that demotes) lose their nominal to their parent's pool:
// they may only borrow. A suspended root keeps its capacity. An inner quota may hold charges of its
// own, from when it was a leaf; they count in used(inner) beside the spill of its children.
//
// What each quota lends follows from the same numbers, from the root down:
//
//   in(n)     = max(0, spill(n) - exposed(n))           what n takes from outside: `borrowed`
//   demand(n) = sum in(children) + own use of n + out(n)
//   out(c)    = c's part of max(0, demand(n) - nominal(n) - in(n));  out(root) = 0
//
// The pool of n serves first, then what comes from outside; the rest is lent by children in
// proportion to what they expose and do not use; largest remainder, ties by name.
//
// A plain value: externally synchronised, deterministic. Amounts saturate.
// Cost: Check, Add, Remove O(depth) and no allocation (a refusal by lenders: O(quotas x depth));
// Build O(quotas x lines); View O(lines x quotas next to the path).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "quota/tree/charge.h"
#include "quota/tree/limits.h"
#include "quota/tree/quota_ids.h"

namespace tranche {

struct QuotaNode {
  std::string name;
  std::string parent;                                     // empty: a root
  std::vector<std::pair<std::string, LineLimits>> lines;  // by name (line_name.h), each once
  bool suspended = false;
};

// Where several hold, the first in this order is reported.
enum class QuotaRefusal : uint8_t {
  kNone,
  kExceedsMax,   // more than it could ever have, everything idle
  kBorrowLimit,  // would fit now without the borrowLimits on its path to the root
  kLenderLimit,  // would fit now if nobody held back capacity by lendLimit
  kWaiting,      // what could be borrowed is in use
};

struct QuotaVerdict {
  QuotaRefusal refusal = QuotaRefusal::kNone;
  bool borrows = false;  // fits, and more than the quota's own free nominal is taken
  // Refused: the line and dimension that bind; of equal refusals the line before `any`,
  // compute before memory.
  LineId line = kAnyLine;
  Dimension dimension = Dimension::kCompute;
  int64_t short_by = 0;  // quanta
  // kBorrowLimit: the nearest quota whose limit binds; kLenderLimit: who holds back most.
  QuotaId binding = kNoQuota;
};

// One line of one quota, for people.
struct QuotaLineView {
  std::string name;  // by line_name.h
  ChargeLimit nominal = Charge{};
  Charge used;      // of a leaf: charged; of an inner quota: of its whole subtree, before spill
  Charge lent;      // of its exposed capacity, what others use now: out(n)
  Charge borrowed;  // spill beyond what it exposes, what it takes from outside: in(n)
  ChargeLimit available = Charge{};  // in this line alone; may be negative
  ChargeLimit reach =
      Charge{};  // the most it could use with everybody else idle; in this line alone
};

class QuotaTree {
 public:
  QuotaTree() = default;
  // Ids ascend by name. Errors: InvalidArgument naming the quota: unknown parent, a cycle, a name
  // twice.
  static absl::StatusOr<QuotaTree> Build(std::vector<QuotaNode> nodes);

  QuotaId Find(std::string_view name) const;  // kNoQuota: none
  std::size_t size() const { return names_.size(); }
  const std::string& name(QuotaId id) const { return names_[id]; }
  QuotaId parent(QuotaId id) const { return parents_[id]; }
  QuotaId root(QuotaId id) const;
  // kNoLine when no quota has it.
  LineId FindLine(std::string_view name) const;
  // The line that a charge of that name is charged to in the tree of the quota; kNoLine: only `any`
  // is. Allocates nothing.
  LineId LineOf(QuotaId id, std::string_view charged) const;
  const std::string& line_name(LineId line) const;
  // How many there are, `any` included.
  std::size_t lines() const { return lines_.size(); }

  // May `charge` be added to that line (LineOf) of the leaf now? Changes nothing. A dimension of
  // which nothing is asked refuses nothing.
  QuotaVerdict Check(QuotaId leaf, LineId line, const Charge& charge) const;
  // Always succeed, also beyond every limit (pods others placed). Remove of what was added restores
  // every counter bit for bit.
  void Add(QuotaId leaf, LineId line, const Charge& charge);
  void Remove(QuotaId leaf, LineId line, const Charge& charge);

  // Lines the quota defines (implied `any` included), and those its work is charged to although
  // others define them; `any` last.
  std::vector<QuotaLineView> View(QuotaId id) const;
  // Of every quota, by id. O(quotas x lines), but for sorting.
  std::vector<std::vector<QuotaLineView>> Views() const;
  // Smaller over line and any; no limit when neither has one. For tests and callers that compare.
  ChargeLimit Available(QuotaId id, LineId line) const;
  // Of the whole subtree; nothing for kNoLine.
  Charge Used(QuotaId id, LineId line) const;
  // Its own; no limit where the tree does not limit the line.
  ChargeLimit Nominal(QuotaId id, LineId line) const;
  // What the quota takes from outside of its own subtree, in(n): over nominal where it is positive.
  Charge Borrowed(QuotaId id, LineId line) const;
  // The most it borrows in one line of its View, in GPU-equivalents.
  int64_t MostBorrowed(QuotaId id) const;
  // Somebody in the quota's tree has the line; otherwise it is unlimited there.
  bool Limits(QuotaId id, LineId line) const { return line != kNoLine && Limited(id, line); }
  // Leaves that use more than their nominal of the line, most first, then name: who holds what a
  // waiting team could have.
  std::vector<std::pair<QuotaId, Charge>> Borrowers(QuotaId root, LineId line) const;

 private:
  // One quota in one column: a line in one dimension. What has no limit is kSaturated.
  struct Cell {
    int64_t nominal = 0;
    int64_t borrow_limit = kSaturated;
    int64_t lend_limit = kSaturated;
    int64_t whole = 0;  // nominal of all its subtree
    int64_t subtree = 0;
    int64_t exposed = 0;
    int64_t local = 0;
    int64_t used = 0;   // as the recurrences have it
    int64_t total = 0;  // by all its subtree

    int64_t Spill() const;
    int64_t Idle() const;      // of what it exposes
    int64_t Borrowed() const;  // in(n)
    int64_t Room() const;      // for its spill to grow
  };
  // What a question takes as given.
  enum class Premise : uint8_t { kNow, kAllIdle, kNoBorrowLimits, kNoLendLimits };
  static Cell Under(Premise premise, Cell cell);

  static std::size_t Column(LineId line, Dimension dimension);
  std::size_t CellIndex(QuotaId id, std::size_t column) const;
  const Cell& At(QuotaId id, std::size_t column) const { return cells_[CellIndex(id, column)]; }
  Cell& At(QuotaId id, std::size_t column) { return cells_[CellIndex(id, column)]; }
  std::size_t LineIndex(QuotaId id, LineId line) const;
  bool Defined(QuotaId id, LineId line) const { return defined_[LineIndex(id, line)] != 0; }
  bool Limited(QuotaId id, LineId line) const { return limited_[LineIndex(id, line)] != 0; }
  bool Shown(QuotaId id, LineId line) const;
  LineId FindIn(std::string_view model, std::string_view pool) const;

  absl::Status Link(const std::vector<QuotaNode>& nodes);
  void Declare(const std::vector<QuotaNode>& nodes);
  static void SetLimits(Cell& cell, const LineLimits& limits, Dimension dimension);
  void ImplyAny();
  void Suspend(const std::vector<QuotaNode>& nodes);
  void Derive();

  int64_t AvailableIn(QuotaId id, std::size_t column, Premise premise) const;
  void ExplainRefusal(QuotaId leaf, std::size_t column, int64_t amount,
                      QuotaVerdict& verdict) const;
  QuotaId WhoseBorrowLimit(QuotaId leaf, std::size_t column, int64_t amount) const;
  QuotaId WhoHoldsBack(QuotaId leaf, std::size_t column) const;
  void Use(QuotaId id, std::size_t column, int64_t amount);
  int64_t Lent(QuotaId id, std::size_t column) const;
  void LendBelow(QuotaId above, std::size_t column, int64_t lent,
                 std::vector<int64_t>& by_child) const;
  template <typename LentOf>
  std::vector<QuotaLineView> ViewWith(QuotaId id, LentOf lent_of) const;

  std::vector<std::string> names_;  // ascending
  std::vector<QuotaId> parents_;
  std::vector<std::vector<QuotaId>> children_;
  std::vector<QuotaId> order_;      // parents before children
  std::vector<std::string> lines_;  // `any`, then the others, ascending
  std::vector<Cell> cells_;         // quota x line x dimension
  std::vector<char> defined_;       // quota x line: it has the line
  std::vector<char> limited_;       // quota x line: somebody in its tree has the line
};

}  // namespace tranche
