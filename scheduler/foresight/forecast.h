// When the pods that wait are expected to start: rehearsed forward from a copy of the cluster.
//
// Work ends when it said it would (tranche.dev/expected-runtime), else as work of its like did
// (runtimes.h), drawn anew for each rehearsal. Where everything that is waited for was declared one
// rehearsal tells it exactly. Work of which nothing is known never ends in a rehearsal: whoever
// needs its devices gets no time, and is told whose.
//
// Work comes as it came during the last day, of namespaces, classes and sizes of which pods are
// there to be taken as an example; gangs are left out.
//
// Pure and deterministic: the same copy, runtimes and seed give the same forecasts. Cost: a restart
// and a rehearsal each, one to ForecastRules::most_rehearsals of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/engine/replica_walk.h"
#include "scheduler/foresight/runtimes.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct Forecast {
  PodUid uid;
  std::string leaf;            // by its namespace; empty: none, or not known
  std::string workload_class;  // empty: none
  std::string gang;            // empty: none
  // Not before; nullopt: it was not seen to start.
  std::optional<Instant> earliest;
  // By then it has started with a chance of 10, 50 and 90 %; nullopt: no such time is known.
  std::optional<Instant> p10;
  std::optional<Instant> p50;
  std::optional<Instant> p90;
  std::string because;  // a sentence
};

// Spans that were shown for pods that then started, by where in them that was.
struct JudgedSpans {
  int64_t before = 0;
  int64_t within = 0;
  int64_t after = 0;
  friend bool operator==(const JudgedSpans&, const JudgedSpans&) = default;
};

struct Forecasts {
  Instant at;
  uint64_t version = 0;  // of the books they were made from
  int rehearsals = 0;
  bool exact = false;  // every end that was waited for is declared, and nobody else is to come
  std::map<PodName, Forecast> pods;
  JudgedSpans judged;  // earlier ones; none where nobody keeps a record
};

struct ForecastRules {
  uint64_t seed = 1;
  // Asked now and then; false: nobody wants the answer any more. Null: somebody does.
  std::function<bool()> may_go_on = nullptr;
  Millis horizon = std::chrono::hours(24 * 30);
  // Pods and ends that all rehearsals together may come to, at least one rehearsal.
  int64_t work = 60'000;
  int most_rehearsals = 21;
  // Pods that come in a rehearsal, and for how long they do.
  int64_t most_arrivals = 2'000;
  Millis arrivals_for = std::chrono::hours(24 * 3);
  // Rounds of planning of a rehearsal are as many as go into this by pods and nodes, at least
  // sixteen: one takes tens of milliseconds in a large cluster.
  int64_t planning = 400'000;
};

Forecasts Foretell(const ClusterCopy& copy, const Runtimes& runtimes,
                   const ForecastRules& rules = {});

}  // namespace tranche
