// Quanta as people read them: GPUs with at most three decimals.
#pragma once

#include <cstdint>
#include <string>

namespace tranche {

// "7.5", "12", "0.143", "-2"; rounded up (what is used) or down (what can be had), so that the text
// never promises more than there is. At or beyond kUnlimited: "unlimited".
std::string GpusRoundedUp(int64_t quanta);
std::string GpusRoundedDown(int64_t quanta);

}  // namespace tranche
