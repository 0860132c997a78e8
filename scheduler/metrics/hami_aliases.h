// The gauges of HAMi's scheduler under its own names, from our numbers, so that dashboards made for
// HAMi go on (compatibility: hami).
//
// Names and labels are those HAMi exports by default up to 2.8, and with --legacy-metrics after
// that: labels of both are there, so that either's queries match. Memory in bytes, cores in percent
// of a card. Internal to this folder but for the rows.
#pragma once

#include <vector>

#include "scheduler/engine/engine.h"

namespace tranche::metrics {

class Page;

// What they are made of, at the moment of a scrape.
struct HamiRows {
  std::vector<NodeView> nodes;
  std::vector<PodView> pods;
  std::vector<CapRow> caps;
};

void AddHamiAliases(const HamiRows& rows, Page& page);

}  // namespace tranche::metrics
