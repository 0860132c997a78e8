#include "scheduler/engine/views/reach_text.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace tranche {
namespace {

std::string Gpus(int64_t count, const std::string& model) {
  const std::string_view word = count == 1 ? "GPU" : "GPUs";
  return model == kAnyModel ? fmt::format("{} {} of some model", count, word)
                            : fmt::format("{} {} {}", count, model, word);
}

// "90s", "15m", "1h5m".
std::string Span(Millis span) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(span).count();
  if (seconds % 60 != 0) return fmt::format("{}s", seconds);
  const int64_t minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{}m", minutes);
  return minutes % 60 == 0 ? fmt::format("{}h", minutes / 60)
                           : fmt::format("{}h{}m", minutes / 60, minutes % 60);
}

}  // namespace

std::string ReachText(const LineReach& reach) {
  const std::string next = Gpus(reach.gpus + 1, reach.model);
  if (reach.gpus == 0 && reach.code.empty()) return reach.model + ": " + reach.why;
  if (reach.gpus == 0) return fmt::format("no pod of {} starts: {}", next, reach.why);
  std::string text =
      fmt::format("a pod of up to {} starts {}", Gpus(reach.gpus, reach.model),
                  reach.within == Millis{0} ? "at once" : "within " + Span(reach.within));
  if (!reach.code.empty()) text += fmt::format("; one of {} does not: {}", next, reach.why);
  return text;
}

}  // namespace tranche
