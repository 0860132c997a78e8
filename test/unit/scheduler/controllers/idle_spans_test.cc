// Which spans of idleness are told of: measurements of some minutes, and what each of them tells.
#include "scheduler/controllers/idle_spans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tranche {
namespace THIS_FILE {

constexpr Instant kStart{std::chrono::hours(24 * 365 * 56)};
Instant Minute(int64_t minute) { return kStart + std::chrono::minutes(minute); }

struct Look {
  int64_t minute;
  std::map<std::string, int64_t> since;  // pod -> minute from which it has been idle
};
struct Case {
  const char* sentence;
  std::vector<Look> looks;
  std::string told;  // "p 0-10", one behind the other
};

std::string Tell(const std::vector<Look>& looks) {
  IdleSpans spans;
  std::string told;
  for (const Look& look : looks) {
    std::vector<IdleSpan> idle;
    for (const auto& [pod, since] : look.since) {
      idle.push_back({PodUid(pod), Minute(since), Minute(look.minute)});
    }
    for (const IdleSpan& span : spans.Note(idle)) {
      told += fmt::format("{}{} {}-{}", told.empty() ? "" : ", ", span.uid.str(),
                          (span.since - kStart) / std::chrono::minutes(1),
                          (span.until - kStart) / std::chrono::minutes(1));
    }
  }
  return told;
}

TEST(IdleSpans, TellsOfThemAsTheyGrowAndWhenTheyEnd) {
  const Case cases[] = {
      {"a pause in work", {{5, {{"p", 0}}}, {9, {{"p", 0}}}, {10, {}}}, ""},
      {"long enough", {{9, {{"p", 0}}}, {10, {{"p", 0}}}, {11, {}}}, "p 0-10"},
      {"it ends between two times",
       {{10, {{"p", 0}}}, {15, {{"p", 0}}}, {16, {}}},
       "p 0-10, p 0-15"},
      {"it goes on",
       {{10, {{"p", 0}}}, {19, {{"p", 0}}}, {20, {{"p", 0}}}, {21, {{"p", 0}}}},
       "p 0-10, p 0-20"},
      {"nothing was missed: it ends where it was told",
       {{10, {{"p", 0}}}, {11, {}}, {12, {}}},
       "p 0-10"},
      {"it worked in between and nobody looked",
       {{12, {{"p", 0}}}, {25, {{"p", 14}}}},
       "p 0-12, p 14-25"},
      {"a short one after a long one",
       {{12, {{"p", 0}}}, {14, {{"p", 0}}}, {25, {{"p", 20}}}, {26, {}}},
       "p 0-12, p 0-14"},
      {"several, in their order", {{10, {{"p", 0}, {"a", 0}}}, {11, {}}}, "a 0-10, p 0-10"},
      {"a clock that went back ends it", {{10, {{"p", 0}}}, {4, {{"p", 2}}}, {5, {}}}, "p 0-10"},
  };
  for (const Case& c : cases) EXPECT_EQ(Tell(c.looks), c.told) << c.sentence;
}

}  // namespace THIS_FILE
}  // namespace tranche
