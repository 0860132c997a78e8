// What an exporter that lags may hide.
#include "scheduler/index/zone_lag.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

TEST(ZoneLag, AsPodsComeAndGoAndTheExporterFollows) {
  struct Row {
    std::string what;
    std::map<PodUid, int64_t> held;
    int64_t shown;
    int64_t second;
    int64_t unshown;
  };
  const PodUid three("three"), one("one"), two("two"), six("six");
  ZoneLag lag;
  for (const Row& row : std::vector<Row>{
           {"all that was there at the start is shown", {{three, 3}, {one, 1}}, 4, 0, 0},
           {"one comes", {{three, 3}, {one, 1}, {two, 2}}, 4, 1, 2},
           {"another ends, and hides it in the sum", {{one, 1}, {two, 2}}, 4, 2, 2},
           {"either is shown now: nobody can tell", {{one, 1}, {two, 2}}, 3, 3, 2},
           {"whoever has ended two minutes ago is not", {{one, 1}, {two, 2}}, 3, 122, 0},
           {"only endings: nothing is hidden", {{one, 1}}, 3, 130, 0},
           {"the exporter has seen it", {{one, 1}}, 1, 131, 0},
           {"comes and is seen", {{one, 1}, {six, 6}}, 7, 132, 0},
       }) {
    EXPECT_EQ(lag.Update(row.held, row.shown, test::At(row.second)), row.unshown) << row.what;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
