// /embedded/v1/...: the hands-on side of the embedded cluster; not there with a real one.
//
// POST apply and delete take one object or a List, POST clock moves a manual clock, GET objects
// returns what is stored. Each answers after the engine has seen the event.
// Thread rule: any thread.
#pragma once

#include "scheduler/app/host.h"
#include "scheduler/app/router.h"
#include "scheduler/embedded/clocks.h"
#include "scheduler/embedded/cluster.h"

namespace tranche::app {

// `clock`: the manual clock, or nullptr where time cannot be moved. All must outlive the router.
void AddEmbeddedApi(embedded::Cluster& cluster, Host& host, ManualClock* clock, Router& router);

// Does everything that is due at `now`, of the cluster and of the engine, also what only becomes
// due by doing it. Returns when to come back; nullopt: nothing waits for time.
std::optional<Instant> RunDue(embedded::Cluster& cluster, Host& host, const Clock& clock);

}  // namespace tranche::app
