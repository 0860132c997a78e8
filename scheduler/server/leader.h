// All that decides and writes: the ledger, the engine's host, what carries its decisions out, and
// the answers that need them. A process has it from the start where it leads alone; where an
// election decides, from the moment it leads.
//
//   clock -> host (engine) <- cluster (embedded or kubernetes)
//   router -> verbs -> binder -> cluster;  api, pages, embedded api
//
// Thread rule: MakeEmbedded or Attach, Begin and End from one thread at a time, in that order;
// router(), readiness() and Describe from any after.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/api/api.h"
#include "scheduler/api/router.h"
#include "scheduler/api/usage_api.h"
#include "scheduler/host/host.h"
#include "scheduler/host/timers.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/server/config.h"
#include "scheduler/server/opened_ledger.h"

namespace tranche {

// What a leader has instead of threads of its own where somebody else decides what runs when: in a
// simulation. What is null is a thread.
struct LeaderThreads {
  Timers* timers = nullptr;  // outlives the leader, and calls nothing once it is to end
  LedgerWorks ledger;
  UsageApi::Behind reader;  // of the ledger, for the page
};

// Resources owned by the process that outlive one leadership.
struct LeaderHooks {
  // Runs long work on another thread than the one that answers verbs.
  std::function<void(std::function<void()>)> later;
  // Adds what the process knows of itself to a scrape: connections, watches, the election.
  std::function<void(metrics::Scrape&)> edges;
  // Whether this process may still write; null: always.
  std::function<bool()> may_write;
  // What the API server's clock says now; null: nothing is known of it.
  std::function<std::optional<ClusterTime>()> cluster_time;
  // Ends the process in order, to be started again.
  std::function<void(const std::string& why)> restart;
  LeaderThreads threads = {};
};

class LeaderServices {
 public:
  // All references outlive this; `metrics` and hooks also the cluster's last answer.
  LeaderServices(const ServeConfig& config, metrics::Metrics& metrics, OpenedLedger opened,
                 int64_t epoch, LeaderHooks hooks);
  ~LeaderServices();
  LeaderServices(const LeaderServices&) = delete;
  LeaderServices& operator=(const LeaderServices&) = delete;

  // The embedded cluster with the configured objects. Errors: what is wrong with a file.
  absl::Status MakeEmbedded();
  // A cluster elsewhere, whose events go to events().
  void Attach(ClusterApi& api);
  // Starts what is done by time.
  void Begin();
  // No new work; requests in flight are finished elsewhere.
  void Drain();
  // Ends what is done by time and closes the ledger. The cluster has stopped. Idempotent.
  void End();

  Host& host();
  ClusterEvents& events();
  const Router& router() const;
  // Beside what the engine knows. Not to be asked when this is gone.
  ApiSources sources();
  int64_t epoch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche
