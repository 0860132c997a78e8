// How tranche-node gives parts of a card, as its register and HAMi's spell it.
#pragma once

#include <string_view>

namespace tranche {

inline constexpr std::string_view kMpsMode = "mps";  // memory and threads limited by MPS
inline constexpr std::string_view kTimeSlicingMode = "time-slicing";  // limited by nobody
inline constexpr std::string_view kMigMode = "mig";  // an instance is cut for each part

}  // namespace tranche
