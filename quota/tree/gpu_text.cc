#include "quota/tree/gpu_text.h"

#include "fmt/format.h"
#include "quota/tree/charge.h"

namespace tranche {
namespace {

std::string Text(int64_t milli) {
  const int64_t size = milli < 0 ? -milli : milli;
  std::string text = fmt::format("{}{}", milli < 0 ? "-" : "", size / 1000);
  if (size % 1000 == 0) return text;
  text += fmt::format(".{:03}", size % 1000);
  while (text.back() == '0') text.pop_back();
  return text;
}

}  // namespace

std::string GpusRoundedUp(Limit limit) {
  const std::optional<int64_t> quanta = limit.amount();
  if (!quanta) return "unlimited";
  return Text(*quanta / kQuantaPerMilli + (*quanta % kQuantaPerMilli > 0 ? 1 : 0));
}

std::string GpusRoundedDown(Limit limit) {
  const std::optional<int64_t> quanta = limit.amount();
  if (!quanta) return "unlimited";
  return Text(*quanta / kQuantaPerMilli - (*quanta % kQuantaPerMilli < 0 ? 1 : 0));
}

}  // namespace tranche
