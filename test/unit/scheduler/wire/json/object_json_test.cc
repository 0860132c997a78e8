#include "scheduler/wire/json/object_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tranche::wire {
namespace THIS_FILE {

using Json = nlohmann::json;

const Instant kWhen = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + Millis(7);

EventText Event() {
  EventText event;
  event.kind = "Pod";
  event.ns = "team-a";
  event.name = "train-0";
  event.uid = "u1";
  event.warning = true;
  event.reason = "WaitingForQuota";
  event.action = "Scheduling";
  event.note = "a \"note\"";
  event.when = kWhen;
  event.instance = "tranche-0";
  event.serial = 10;
  return event;
}

TEST(EncodeEvent, IsAnEventOfTheApiNextToItsObject) {
  EXPECT_EQ(Json::parse(EncodeEvent(Event())), Json::parse(R"({
    "apiVersion":"events.k8s.io/v1","kind":"Event",
    "metadata":{"name":"train-0.19ca6b1dc07.a","namespace":"team-a"},
    "eventTime":"2026-03-01T00:00:00.007000Z","reportingController":"tranche.dev/scheduler",
    "reportingInstance":"tranche-0","action":"Scheduling","reason":"WaitingForQuota",
    "type":"Warning","note":"a \"note\"","regarding":{"apiVersion":"v1","kind":"Pod",
      "namespace":"team-a","name":"train-0","uid":"u1"}})"));
}

TEST(EncodeEvent, GoesToTheDefaultNamespaceForAClusterWideObject) {
  EventText event = Event();
  event.kind = "GPUQuota";
  event.ns = "";
  event.warning = false;
  const Json json = Json::parse(EncodeEvent(event));
  EXPECT_EQ(json["metadata"]["namespace"], "default");
  EXPECT_EQ(json["regarding"]["apiVersion"], "tranche.dev/v1alpha1");
  EXPECT_FALSE(json["regarding"].contains("namespace"));
  EXPECT_EQ(json["type"], "Normal");
}

TEST(EncodeEvent, KeepsToTheLimitsOfTheApi) {
  EventText event = Event();
  const std::string name = std::string(199, 'a') + "-" + std::string(53, 'b');
  const std::string note = std::string(1023, 'n') + "\xC3\xA9";
  const std::string instance(200, 'h');
  event.name = name;
  event.note = note;
  event.instance = instance;
  const Json json = Json::parse(EncodeEvent(event));
  EXPECT_EQ(json["note"], std::string(1023, 'n')) << "never half a character";
  EXPECT_EQ(json["reportingInstance"], std::string(128, 'h'));
  EXPECT_EQ(json["metadata"]["name"], std::string(199, 'a') + ".19ca6b1dc07.a");
  EXPECT_EQ(json["regarding"]["name"], name);
}

TEST(EncodeEvent, GivesEventsOfOneMomentDifferentNames) {
  EventText event = Event();
  const std::string first = PlaceOf(event).name;
  event.serial = 11;
  EXPECT_NE(PlaceOf(event).name, first);
}

TEST(EncodeCondition, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(EncodeCondition({"PodScheduled", true, "", "", kWhen}),
            R"({"type":"PodScheduled","status":"True",)"
            R"("lastTransitionTime":"2026-03-01T00:00:00.007Z"})");
  EXPECT_EQ(EncodeCondition({"tranche.dev/Waiting", false, "R", "m", kWhen}),
            R"({"type":"tranche.dev/Waiting","status":"False","reason":"R","message":"m",)"
            R"("lastTransitionTime":"2026-03-01T00:00:00.007Z"})");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
