#include "scheduler/host/host.h"

#include "scheduler/wire/records/allocation_json.h"

namespace tranche {

Host::Host(HostOptions options, Clock& clock)
    : engine(options.engine, clock, options.ledger,
             [this] { return cluster.readiness() == Readiness::kReady; }),
      policies(engine, std::move(options.defaults),
               {options.history.ledger, options.history.last_entry, options.history.restored},
               options.use),
      cluster(engine, policies, options.cache_limit, std::move(options.may_write)) {
  for (OpenInterval& interval : options.history.open) {
    absl::StatusOr<Allocation> held = wire::DecodeAllocation(interval.devices);
    if (held.ok()) interval.allocation = *std::move(held);
  }
  engine.With(EngineCaller::kStart, [&options](Engine& one, Instant now) {
    one.Restore(std::move(options.history));
    one.Recall(options.asked, now);
  });
}

}  // namespace tranche
