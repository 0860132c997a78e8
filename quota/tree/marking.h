// Which of a leaf's work is in quota, borrowed or scavenging.
//
// quota-model sections 2 and 10: within a leaf and line, non-preemptible work first, then higher
// rank, then oldest start, then key; whole gangs fill nominal while they fit, one that does not fit
// what is left is passed over and is borrowed, later ones may still fit. Rank 0 never counts as
// nominal. Per line (model, any); the weaker mark holds. Deterministic, integers only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quota/tree/charge.h"
#include "quota/tree/limits.h"
#include "quota/tree/quota_ids.h"
#include "topology/base/units.h"

namespace tranche {

enum class QuotaState : uint8_t { kInQuota, kBorrowed, kScavenging };
std::string_view QuotaStateName(QuotaState state);  // "in-quota", "borrowed", "scavenging"

// All of a gang that runs in one leaf; a single pod is a gang of one.
struct MarkUnit {
  std::string key;
  bool preemptible = true;
  int rank = 0;
  Instant start;
  struct Part {
    LineId line = kNoLine;  // of the model
    Charge charge;
  };
  std::vector<Part> parts;  // each model once
  bool demoted = false;     // an exhausted budget took its leaf's nominal away
};

// The order in which units fill nominal.
bool FillsBefore(const MarkUnit& left, const MarkUnit& right);

// The marks of one unit: per kind of line, and the weaker of them.
struct LineMarks {
  QuotaState state = QuotaState::kInQuota;
  // Every model line it is charged to has nominal for it; true also where nothing limits them.
  bool in_model = true;
  bool in_any = true;
  friend bool operator==(const LineMarks&, const LineMarks&) = default;
};

// Same order and rules as Mark, told by line. Result is parallel to `units`.
std::vector<LineMarks> MarkLines(std::span<const MarkUnit> units,
                                 const std::function<ChargeLimit(LineId line)>& nominal);

// `nominal(line)`: what the leaf may use of a line before it borrows. Result is parallel to
// `units`.
std::vector<QuotaState> Mark(std::span<const MarkUnit> units,
                             const std::function<ChargeLimit(LineId line)>& nominal);

}  // namespace tranche
