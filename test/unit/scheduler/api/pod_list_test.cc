// Which pods GET /api/v1/pods lists, and in which order.
#include "scheduler/api/lists/pod_list.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Utc;

struct PodRow {
  const char* ns;
  const char* name;
  PodState state;
  const char* team;
  const char* node;
  int milli;
  int day;  // of January 2026, since when it waits; 0: it does not
};
constexpr PodRow kRows[] = {
    {"blue", "a", PodState::kBound, "blue", "n-2", 1000, 0},
    {"blue", "b", PodState::kPending, "blue", "", 0, 3},
    {"blue", "c", PodState::kClaimed, "blue", "n-1", 0, 2},
    {"lab", "d", PodState::kBound, "", "n-1", 500, 0},
    {"red", "e", PodState::kReserved, "red", "n-1", 4000, 0},
    {"red", "f", PodState::kPending, "red", "", 0, 1},
};

std::vector<PodView> AllPods() {
  std::vector<PodView> pods;
  for (const PodRow& row : kRows) {
    PodView pod;
    pod.name = {row.ns, row.name};
    pod.state = row.state;
    pod.leaf = row.team;
    pod.node = NodeName(row.node);
    if (row.milli > 0) {
      Device device;
      device.milli = MilliGpu::Of(row.milli);
      pod.allocation.emplace();
      pod.allocation->containers = {{"main", {device}}};
    }
    if (std::string_view(row.ns) != "lab") {
      pod.labels = std::make_shared<const Labels>(Labels{{"team", row.team}, {"app", row.name}});
    }
    if (row.day > 0) pod.waits_since = Utc(2026, 1, row.day);
    pods.push_back(pod);
  }
  return pods;
}

using Options = std::map<std::string, std::string>;

absl::StatusOr<PodListQuery> Read(const Options& options) {
  http::Request request;
  request.query = options;
  return ReadPodListQuery(request);
}

TEST(PodListTest, OptionsNarrowAndOrder) {
  const struct {
    Options options;
    const char* names;
    std::size_t total;
  } rows[] = {
      {{}, "abcdef", 6},
      {{{"namespace", "blue"}}, "abc", 3},
      {{{"namespace", ""}}, "", 0},
      {{{"team", "red"}}, "ef", 2},
      {{{"team", ""}}, "d", 1},
      {{{"node", "n-1"}}, "cde", 3},
      {{{"state", "pending"}}, "bf", 2},
      {{{"state", "claimed"}}, "c", 1},
      {{{"state", "waiting"}}, "bcf", 3},
      {{{"state", "placed"}}, "ade", 3},
      {{{"state", "placed"}, {"team", "blue"}}, "a", 1},
      {{{"labelSelector", "team=red"}}, "ef", 2},
      {{{"labelSelector", "team!=red"}}, "abcd", 4},
      {{{"labelSelector", "!team"}}, "d", 1},
      {{{"labelSelector", "app in (a,f)"}, {"state", "waiting"}}, "f", 1},
      {{{"labelSelector", ""}}, "abcdef", 6},
      {{{"sort", "name"}}, "abcdef", 6},
      {{{"sort", "-name"}}, "fedcba", 6},
      {{{"sort", "node"}}, "cdeabf", 6},
      {{{"sort", "-node"}}, "acdebf", 6},
      {{{"sort", "team"}}, "abcefd", 6},
      {{{"sort", "state"}}, "bfcead", 6},
      {{{"sort", "gpus"}}, "bcfdae", 6},
      {{{"sort", "-gpus"}}, "eadbcf", 6},
      {{{"sort", "waitsSince"}}, "fcbade", 6},
      {{{"sort", "-waitsSince"}}, "bcfade", 6},
      {{{"sort", "-gpus"}, {"limit", "2"}}, "ea", 6},
      {{{"limit", "100"}}, "abcdef", 6},
  };
  for (const auto& [options, names, total] : rows) {
    const absl::StatusOr<PodListQuery> query = Read(options);
    ASSERT_TRUE(query.ok()) << query.status();
    const ListedPods list = SelectPods(AllPods(), *query);
    std::string found;
    for (const PodView& pod : list.pods) found += pod.name.name;
    std::string asked;
    for (const auto& [key, value] : options)
      asked.append(key).append("=").append(value).append(" ");
    EXPECT_EQ(found, names) << asked;
    EXPECT_EQ(list.total, total) << asked;
  }
}

TEST(PodListTest, AnOptionThatIsWrongIsNamedWithWhatItTakes) {
  const struct {
    Options options;
    const char* message;
  } rows[] = {
      {{{"state", "running"}},
       "state: expected pending, claimed, reserved, bound, waiting or placed, found \"running\""},
      {{{"sort", "age"}},
       "sort: expected name, node, team, state, gpus or waitsSince, with - before it to turn it, "
       "found \"age\""},
      {{{"sort", "--gpus"}},
       "sort: expected name, node, team, state, gpus or waitsSince, with - before it to turn it, "
       "found \"--gpus\""},
      {{{"labelSelector", "team in"}},
       "labelSelector: expected ( behind in and notin at byte 7, found the end"},
      {{{"limit", "0"}}, "limit: expected a number from 1 to 1000000, found \"0\""},
      {{{"limit", "-1"}}, "limit: expected a number from 1 to 1000000, found \"-1\""},
      {{{"limit", "5x"}}, "limit: expected a number from 1 to 1000000, found \"5x\""},
      {{{"limit", "99999999999999999999"}},
       "limit: expected a number from 1 to 1000000, found \"99999999999999999999\""},
      {{{"limit", ""}}, "limit: expected a number from 1 to 1000000, found \"\""},
  };
  for (const auto& [options, message] : rows) {
    const absl::StatusOr<PodListQuery> query = Read(options);
    EXPECT_EQ(query.status(), absl::InvalidArgumentError(message));
  }
}

TEST(PodListTest, LabelsThatAreNotToldAreAChange) {
  PodView pod = AllPods().front();
  const auto digest = [&pod](const Labels& labels) {
    pod.labels = std::make_shared<const Labels>(labels);
    return DigestOf(pod, "told");
  };
  const uint64_t plain = digest({});
  EXPECT_EQ(plain, digest({}));
  EXPECT_NE(plain, digest({{"team", "a"}}));
  EXPECT_NE(digest({{"team", "b"}}), digest({{"team", "a"}}));
  EXPECT_NE(DigestOf(pod, "told"), DigestOf(pod, "told otherwise"));
}

}  // namespace THIS_FILE
}  // namespace tranche
