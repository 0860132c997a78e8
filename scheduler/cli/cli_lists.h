// The commands that list things of a running server: nodes, pods, queue, gangs, events, quota,
// reclaims.
//
// Each returns the exit code: 0 done, 1 where a name is not known, 2 usage or configuration; errors
// are one line on `err`. With options.watch they end when `out` takes no more, or with an error.
#pragma once

#include <iosfwd>

#include "scheduler/cli/cli_ask.h"

namespace tranche {

int ShowNodes(const ClientOptions& options, std::ostream& out, std::ostream& err);
// Pods that hold GPUs, or wait for them.
int ShowPods(const ClientOptions& options, std::ostream& out, std::ostream& err);
// Those that wait, the one that waits longest first.
int ShowQueue(const ClientOptions& options, std::ostream& out, std::ostream& err);
// Pods that are placed all or none.
int ShowGangs(const ClientOptions& options, std::ostream& out, std::ostream& err);
// What happened lately, the newest last.
int ShowEvents(const ClientOptions& options, std::ostream& out, std::ostream& err);
// Quotas, and the budgets where there are any.
int ShowQuota(const ClientOptions& options, std::ostream& out, std::ostream& err);
// Reclaims that run, and those that ended within a day.
int ShowReclaims(const ClientOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tranche
