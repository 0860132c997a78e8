#include "quota/budget_amounts.h"

#include <fmt/format.h>

namespace tranche {

std::string FormatGpuHours(Int128 amount) {
  constexpr Int128 kThousandth = kGpuHour / 1000;
  const Int128 size = amount < 0 ? -amount : amount;
  const Int128 rest = size % kThousandth;
  const Int128 thousandths = size / kThousandth + (rest >= kThousandth - rest ? 1 : 0);
  return fmt::format("{}{}.{:03}", amount < 0 && thousandths > 0 ? "-" : "",
                     static_cast<int64_t>(thousandths / 1000),
                     static_cast<int64_t>(thousandths % 1000));
}

}  // namespace tranche
