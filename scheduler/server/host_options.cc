#include "scheduler/server/host_options.h"

#include <cstdint>
#include <random>
#include <utility>

namespace tranche {
namespace {

uint64_t DrawSeed() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

}  // namespace

HostOptions MakeHostOptions(const ServeConfig& config, int64_t epoch, ledger::SqliteLedger* book,
                            RunNotes& runs, std::function<bool()> may_write) {
  HostOptions options;
  options.ledger = book;
  if (book != nullptr) {
    options.history = book->TakeHistory();
    runs.Learn(options.history);
  }
  options.engine.tentative_lifetime = config.tentative_lifetime;
  options.engine.namespace_caps = config.hami;
  options.engine.placeholders = config.reservation;
  options.engine.epoch = epoch;
  options.engine.scheduler = config.admission.scheduler_name;
  options.engine.name_seed = DrawSeed();
  options.defaults = PolicyDefaults(config);
  options.may_write = std::move(may_write);
  options.use = config.use.prometheus.empty() ? UseReading::kOff : UseReading::kOn;
  if (config.cluster == ClusterKind::kKubernetes) options.cache_limit = config.cache_limit;
  return options;
}

}  // namespace tranche
