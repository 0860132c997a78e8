// The read-only API's JSON (DESIGN section 9) from the engine's views.
//
// Text is appended as it goes, no tree is built: 5,000 nodes of 8 GPUs take tens of milliseconds.
// `index` and `uuid` of devices are null where knowledge is counts: nobody knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/advice/right_size.h"
#include "scheduler/api/lists/pod_list.h"
#include "scheduler/controllers/card_readings.h"
#include "scheduler/engine/engine.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/host/recent_events.h"
#include "scheduler/ports/provisioning.h"

namespace tranche {

// Where a node stands, by the labels of its network; empty: no label says. And what it costs.
struct NodePlace {
  std::string nvlink_domain;  // machines whose GPUs are joined by NVLink
  std::string rack;
  std::string zone;
  // Of all its GPUs for an hour, at this moment; nullopt: nobody says.
  std::optional<int64_t> micros_per_hour = std::nullopt;
  std::string currency = {};
};

// Lists say how much GPUs are used of pods that do nothing alone: numbers that are new every minute
// would have all of a list sent again.
enum class UseShown : uint8_t { kOfIdle, kAll };

// For callers who are told no version.
std::string EncodeNodes(std::span<const NodeView> nodes);
// Entries of the list. `places`: of each node.
std::vector<std::string> EncodeEach(std::span<const NodeView> nodes,
                                    std::span<const NodePlace> places);
// `total`: how many there are where some may be left out, as "total". `forecasts`: of those that
// wait, as "forecast"; null: none are shown. For callers who are told no version.
std::string EncodePods(std::span<const PodView> pods,
                       std::optional<std::size_t> total = std::nullopt,
                       const Forecasts* forecasts = nullptr);
// The same of entries that EncodePod has made, with what is known of the look at them.
struct PodListNotes {
  std::optional<std::size_t> total = std::nullopt;
  std::string version;
  bool complete = true;
  std::span<const PodKey> gone = {};  // where it is not complete
};
std::string EncodePods(std::span<const std::string_view> entries, const PodListNotes& notes);
struct NodeListNotes {
  std::string version;
  bool complete = true;
  std::span<const NodeName> gone = {};  // where it is not complete
};
std::string EncodeNodes(std::span<const std::string_view> entries, const NodeListNotes& notes);
// One entry of the lists alone. `readings`: what its GPUs did at `now`, which lists do not have, as
// it is new every minute; null: nobody measures them.
std::string EncodeNode(const NodeView& node, const NodePlace& place,
                       const CardReadings* readings = nullptr, Instant now = {});
// What is known of one pod beside what the engine says. Null: nothing.
struct PodNotes {
  const Forecasts* forecasts = nullptr;
  std::shared_ptr<const RightSize> right_size = nullptr;  // as "rightSize"
  // What an autoscaler was asked for its gang, as "provisioning".
  std::optional<ProvisioningFound> provisioning = std::nullopt;
};
std::string EncodePod(const PodView& pod, const PodNotes& notes = {},
                      UseShown use = UseShown::kAll);
std::string EncodeGang(const GangView& gang);
std::string EncodeGangs(std::span<const GangView> gangs);
std::string EncodeEvents(const RecentEvents::Answer& answer);
// The pod's entry plus nodes, plan and advice.
std::string EncodeExplanation(const Explanation& explanation, const PodNotes& notes = {});
// {"earliest","p10","p50","p90","because"}, times or null.
std::string EncodeForecast(const Forecast& forecast);
std::string EncodeWhatIf(std::span<const WhatIfResult> results);

}  // namespace tranche
