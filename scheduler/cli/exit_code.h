// What the command line ends with.
#pragma once

namespace tranche {

inline constexpr int kUsage = 2;  // wrong arguments or configuration, or nothing to ask

}  // namespace tranche
