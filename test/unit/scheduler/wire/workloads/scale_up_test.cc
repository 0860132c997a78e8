// Events by which autoscalers say that they raise nodes for a pod.
#include "scheduler/wire/workloads/scale_up.h"

#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kPod = R"({"kind":"Pod","namespace":"a","name":"p","uid":"u"})";

std::string EventJson(std::string_view fields, std::string_view regards = kPod) {
  return R"({"metadata":{"name":"e"},"involvedObject":)" + std::string(regards) + "," +
         std::string(fields) + "}";
}

// "u 1700000000000", "u" without a time, "-" for another event, or the error.
std::string Text(const std::string& json) {
  Parser parser;
  const auto found = DecodeScaleUp(parser.Parse(json).value());
  if (!found.ok()) return std::string(found.status().message());
  if (!*found) return "-";
  const auto& told = (*found)->told;
  return (*found)->pod.str() +
         (told ? " " + std::to_string(told->time_since_epoch().count()) : std::string());
}

TEST(ScaleUps, WhatAutoscalersSay) {
  struct Row {
    const char* what;
    std::string json, found;
  };
  const Row rows[] = {
      {"cluster-autoscaler",
       EventJson(R"("reason":"TriggeredScaleUp","firstTimestamp":"2023-11-14T22:13:20Z",
                    "lastTimestamp":"2023-11-14T22:20:00Z","count":3,
                    "message":"pod triggered scale-up: [{gpu-pool 1->2 (max: 8)}]")"),
       "u 1700000000000"},
      {"Karpenter", EventJson(R"("reason":"Nominated","firstTimestamp":"2023-11-14T22:13:20Z",
                    "message":"Pod should schedule on: nodeclaim/gpu-2hfk8")"),
       "u 1700000000000"},
      {"Karpenter, of a machine that has joined", EventJson(R"("reason":"Nominated",
                    "message":"Pod should schedule on: nodeclaim/gpu-2hfk8, node/ip-10-0-0-1")"),
       "-"},
      {"Karpenter, of a node that is there",
       EventJson(R"("reason":"Nominated","message":"Pod should schedule on: node/ip-10-0-0-1")"),
       "-"},
      {"by the newer API",
       EventJson(R"("reason":"TriggeredScaleUp","firstTimestamp":null,"lastTimestamp":null,
                    "eventTime":"2023-11-14T22:13:20.000000Z")"),
       "u 1700000000000"},
      {"a time that is none", EventJson(R"("reason":"TriggeredScaleUp","firstTimestamp":"soon")"),
       "u"},
      {"no node for it", EventJson(R"("reason":"NotTriggerScaleUp")"), "-"},
      {"of a node", EventJson(R"("reason":"TriggeredScaleUp")", R"({"kind":"Node","uid":"u"})"),
       "-"},
      {"of a pod without uid", EventJson(R"("reason":"TriggeredScaleUp")", R"({"kind":"Pod"})"),
       "-"},
      {"of nothing", R"({"reason":"TriggeredScaleUp"})", "-"},
      {"no event", "[]", "expected object, found array, in event"},
      {"a reason that is no text", EventJson(R"("reason":7)"),
       "expected text, found number 7, in event.reason"},
  };
  for (const Row& row : rows) EXPECT_EQ(Text(row.json), row.found) << row.what;
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
