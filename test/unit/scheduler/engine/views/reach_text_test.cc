#include "scheduler/engine/views/reach_text.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(ReachText, IsASentence) {
  const struct {
    LineReach reach;
    const char* text;
  } rows[] = {
      {{"h100", 8, Millis(0), "", ""}, "a pod of up to 8 h100 GPUs starts at once"},
      {{"h100", 1, seconds(50), "", ""}, "a pod of up to 1 h100 GPU starts within 50s"},
      {{"any", 2, minutes(25), "", ""}, "a pod of up to 2 GPUs of some model starts within 25m"},
      {{"any", 2, minutes(60), "", ""}, "a pod of up to 2 GPUs of some model starts within 1h"},
      {{"any", 2, minutes(65), "", ""}, "a pod of up to 2 GPUs of some model starts within 1h5m"},
      {{"h100", 4, seconds(50), "Interleaved", "n1 is full"},
       "a pod of up to 4 h100 GPUs starts within 50s; one of 5 h100 GPUs does not: n1 is full"},
      {{"h100", 0, Millis(0), "NodesClosed", "closed are n1"},
       "no pod of 1 h100 GPU starts: closed are n1"},
      {{"h100", 0, Millis(0), "", "its nominal is in use"}, "h100: its nominal is in use"},
  };
  for (const auto& [reach, text] : rows) EXPECT_EQ(ReachText(reach), text);
}

}  // namespace THIS_FILE
}  // namespace tranche
