// When a pod was bound, began and ended.
#include "scheduler/wire/pods/pod_times.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

// Times of one day as "hh:mm:ss", "-" for unknown: bound, started, running, finished.
std::string TimesOf(std::string_view status, std::string_view node = "n1") {
  const absl::StatusOr<PodFacts> pod = TryPod(fmt::format(
      R"({{"metadata":{{"name":"p"}},"spec":{{"nodeName":"{}"}},"status":{{{}}}}})", node, status));
  if (!pod.ok()) return std::string(pod.status().message());
  std::string text;
  for (const std::optional<Instant>& time :
       {pod->bound_at, pod->started_at, pod->running_at, pod->finished_at}) {
    if (!text.empty()) text += ' ';
    text += time ? FormatTime(*time).substr(11, 8) : "-";
  }
  return text;
}

constexpr std::string_view kBound =
    R"("conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-03-01T09:00:00Z"},
       {"type":"PodScheduled","status":"True","lastTransitionTime":"2026-03-01T08:00:00Z"}],
       "startTime":"2026-03-01T08:00:01Z")";

std::string With(std::string_view phase, std::string_view app, std::string_view init = "") {
  return fmt::format(R"({},"phase":"{}","containerStatuses":[{}],"initContainerStatuses":[{}])",
                     kBound, phase, app, init);
}
std::string Running(std::string_view since) {
  return fmt::format(R"({{"state":{{"running":{{"startedAt":"2026-03-01T{}Z"}}}}}})", since);
}
std::string Ended(std::string_view from, std::string_view to) {
  return fmt::format(R"({{"state":{{"terminated":{{"startedAt":"2026-03-01T{}Z",)"
                     R"("finishedAt":"2026-03-01T{}Z"}}}}}})",
                     from, to);
}
constexpr std::string_view kWaiting = R"({"state":{"waiting":{"reason":"PodInitializing"}}})";

TEST(PodTimes, ADisruptedPodIsOneThatSomebodyTakesAway) {
  const auto disrupted = [](const char* type, const char* status, const char* node = "n1") {
    const auto pod =
        TryPod(fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"nodeName":"{}"}},)"
                           R"("status":{{"conditions":[{{"type":"{}","status":"{}"}}]}}}})",
                           node, type, status));
    return pod.ok() && pod->disrupted;
  };
  EXPECT_TRUE(disrupted("DisruptionTarget", "True"));
  EXPECT_FALSE(disrupted("DisruptionTarget", "False"));
  EXPECT_FALSE(disrupted("Ready", "True"));
  EXPECT_FALSE(disrupted("DisruptionTarget", "True", "")) << "it never ran";
}

TEST(PodTimes, TellBindingStartRunAndEnd) {
  struct Row {
    const char* what;
    std::string status;
    const char* expected;
  };
  const std::string done = Ended("08:00:05", "08:00:09");
  for (const Row& row : std::vector<Row>{
           {"nothing said", "", "- - - -"},
           {"bound, nothing started", std::string(kBound), "08:00:00 08:00:01 - -"},
           {"not scheduled",
            R"("conditions":[{"type":"PodScheduled","status":"False",)"
            R"("lastTransitionTime":"2026-03-01T08:00:00Z"}])",
            "- - - -"},
           {"the earliest of two apps",
            With("Running", Running("08:01:00") + "," + Running("08:00:30")),
            "08:00:00 08:00:01 08:00:30 -"},
           {"init containers do not count as running", With("Pending", kWaiting.data(), done),
            "08:00:00 08:00:01 - -"},
           {"one of two has ended", With("Running", done + "," + Running("08:00:06")),
            "08:00:00 08:00:01 08:00:05 -"},
           {"all have ended", With("Succeeded", done + "," + Ended("08:00:06", "08:00:08")),
            "08:00:00 08:00:01 08:00:05 08:00:09"},
           {"a sidecar ends last", With("Succeeded", done, Ended("08:00:02", "08:00:12")),
            "08:00:00 08:00:01 08:00:05 08:00:12"},
           {"a sidecar still runs", With("Running", done, Running("08:00:02")),
            "08:00:00 08:00:01 08:00:05 -"},
           {"between two restarts",
            With("Running", R"({"state":{"waiting":{}},"lastState":{"terminated":{"startedAt":)"
                            R"("2026-03-01T08:00:04Z","finishedAt":"2026-03-01T08:00:06Z"}}})"),
            "08:00:00 08:00:01 08:00:04 -"},
           {"restarted: the first start counts",
            With("Running",
                 R"({"state":{"running":{"startedAt":"2026-03-01T08:00:08Z"}},"lastState":)"
                 R"({"terminated":{"startedAt":"2026-03-01T08:00:04Z",)"
                 R"("finishedAt":"2026-03-01T08:00:06Z"}}})"),
            "08:00:00 08:00:01 08:00:04 -"},
           {"failed before the app began", With("Failed", kWaiting.data(), done),
            "08:00:00 08:00:01 - 08:00:09"},
           {"only init containers are listed yet",
            fmt::format(R"({},"initContainerStatuses":[{}])", kBound, done),
            "08:00:00 08:00:01 - -"},
           {"fractions and offsets", R"("startTime":"2026-03-01T10:00:01.999+02:00")",
            "- 08:00:01 - -"},
           {"unreadable", R"("startTime":"yesterday")", "- - - -"},
           {"never", R"("startTime":"1970-01-01T00:00:00Z")", "- - - -"},
           {"null", R"("startTime":null,"conditions":null,"containerStatuses":null)", "- - - -"},
       }) {
    EXPECT_EQ(TimesOf(row.status), row.expected) << row.what;
  }
}

TEST(PodTimes, OfAPodWithoutANodeAreNotRead) {
  EXPECT_EQ(TimesOf(With("Running", Running("08:01:00")), ""), "- - - -");
}

TEST(PodTimes, OfAnotherTypeAreAnError) {
  EXPECT_EQ(TimesOf(R"("startTime":5)"), "expected text, found number 5, in status.startTime");
  EXPECT_EQ(TimesOf(R"("containerStatuses":[1])"),
            "expected object, found number 1, in containerStatuses");
}

TEST(PodTimes, KnowTheDeletion) {
  const auto pod =
      TryPod(R"({"metadata":{"name":"p","deletionTimestamp":"2026-03-01T08:00:00.250Z"}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(FormatTime(pod->deletion_at.value()), "2026-03-01T08:00:00.250Z");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
