// What the command line ends with.
#pragma once

namespace tranche {

inline constexpr int kExitDone = 0;
// A domain no: it does not fit, is not known, is not as it should be.
inline constexpr int kExitNo = 1;
inline constexpr int kExitUsage = 2;  // wrong arguments or configuration, or nothing to ask

}  // namespace tranche
