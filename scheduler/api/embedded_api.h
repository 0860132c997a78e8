// /embedded/v1/...: the hands-on side of the embedded cluster; not there with a real one.
//
// POST apply and delete take one object or a List, POST clock moves a manual clock, GET objects
// returns what is stored. Each answers after the engine has seen the event.
// Thread rule: any thread.
#pragma once

#include <functional>
#include <optional>

#include "scheduler/api/router.h"
#include "scheduler/embedded/cluster.h"
#include "scheduler/host/clocks.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

// Does everything that is due and returns when to come back; nullopt: nothing waits for time.
using DueWork = std::function<std::optional<Instant>()>;

// `clock`: the manual clock, or nullptr where time cannot be moved; `run_due` follows its steps.
// All must outlive the router.
void AddEmbeddedApi(embedded::Cluster& cluster, EngineHost& host, ManualClock* clock,
                    DueWork run_due, Router& router);

// Does what is due of the cluster and of the engine, also what only becomes due by doing it:
// evictions, what follows from them, further planning. One call at a time.
std::optional<Instant> RunDue(embedded::Cluster& cluster, EngineHost& host, const Clock& clock);

}  // namespace tranche
