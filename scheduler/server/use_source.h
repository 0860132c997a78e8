// Asks Prometheus every minute how much GPUs are used, and tells the engine.
//
// Thread rule: Begin and End from one thread, in that order; the rest from any. The question, and
// what becomes of the answer, has a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/use_history.h"
#include "scheduler/controllers/card_readings.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/ledger.h"
#include "scheduler/server/config.h"

namespace tranche {

// What is asked where the configuration has no query: of every card and MIG instance, as
// dcgm-exporter measures them, the busiest moment of the last two minutes, how much it was in use
// in them, and the most memory; of cards how warm they are and what power they take.
extern const char* const kUseQuery;
// Path and query below the URL of Prometheus. Where the configuration has no query, what HAMi's
// monitor says of pods on shared cards is asked for too.
std::string UseTarget(const UseOptions& options);

class UseSource {
 public:
  // Asks nobody where the options name nobody. All outlive this. `ledger`: told what pods did;
  // null: nobody is. `before`: what it knew.
  UseSource(const UseOptions& options, Host& host, const Clock& clock, Ledger* ledger,
            std::vector<PodWork> before);
  ~UseSource();
  UseSource(const UseSource&) = delete;
  UseSource& operator=(const UseSource&) = delete;

  void Begin();
  // At once: an answer that is awaited is given up. Idempotent.
  void End();
  // nullopt: nobody is asked.
  std::optional<metrics::UseRow> row() const;
  std::optional<UseHistory> history() const;
  std::shared_ptr<const CardReadings> readings() const;  // null: nothing is known

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null: nobody is asked
};

}  // namespace tranche
