#include "quota/preemption/reclaim.h"

namespace tranche {

std::string_view ReclaimRuleName(ReclaimRule rule) {
  switch (rule) {
    case ReclaimRule::kNone:
      break;
    case ReclaimRule::kR1:
      return "R1";
    case ReclaimRule::kR2a:
      return "R2a";
    case ReclaimRule::kR2b:
      return "R2b";
    case ReclaimRule::kR3:
      return "R3";
    case ReclaimRule::kR5:
      return "R5";
    case ReclaimRule::kDrain:
      return "Drain";
    case ReclaimRule::kShrink:
      return "Shrink";
    case ReclaimRule::kGang:
      return "Gang";
  }
  return "";
}

}  // namespace tranche
