// The engine behind its lock, and the two intakes that feed it: what leads is made of.
//
// Thread rule: that of the parts.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "scheduler/facts/asked_before.h"
#include "scheduler/host/cluster_intake.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/host/policy_intake.h"

namespace tranche {

struct HostOptions {
  EngineOptions engine;
  GpuPolicy defaults;
  // Oldest cache a decision may rest on; zero: any age (the embedded cluster cannot lag).
  std::chrono::milliseconds cache_limit{0};
  // Whether this process may still write what it decides; null: always.
  std::function<bool()> may_write = nullptr;
  // Where metering goes; null: nowhere.
  Ledger* ledger = nullptr;
  MeterHistory history;            // what that ledger remembers
  std::vector<AskedBefore> asked;  // likewise
  UseReading use = UseReading::kOff;
};

struct Host {
  Host(HostOptions options, Clock& clock);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  EngineHost engine;
  PolicyIntake policies;
  ClusterIntake cluster;
};

}  // namespace tranche
