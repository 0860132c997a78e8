// The agent as it runs: serves a device plugin for whole GPUs and one for each MIG profile, and
// keeps an eye on the GPUs.
//
// Thread rule: one thread. gRPC's threads and the one that makes MIG instances come on top.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/agent/cards.h"
#include "scheduler/agent/config.h"
#include "scheduler/agent/endpoint.h"
#include "scheduler/agent/health_watch.h"
#include "scheduler/agent/mig_worker.h"
#include "scheduler/agent/mps_daemon.h"
#include "scheduler/kube/transport/credentials.h"

namespace tranche::agent {

class Agent {
 public:
  using Time = Endpoint::Time;

  // `looks`: how often it looks before what cannot be told is refused, 200 ms apart.
  Agent(Config config, kube::Credentials credentials, int looks = 15);

  // Does what is due: looks at the GPUs, tells of them, serves and registers. Called about once a
  // second. Error: what could not be done and is tried again.
  absl::Status Step(Time now);
  // Of a kubelet that follows what GPUs there are.
  bool connected() const { return endpoints_.at(config_.resource)->connected(); }

 private:
  void AddEndpoint(const std::string& resource, const std::string& socket,
                   const std::string& profile);
  void AddEndpoints();
  void CloseShared();
  absl::Status LookAndTell(Time now);

  const Config config_;
  const kube::Credentials credentials_;
  const int looks_;
  CardList cards_;
  std::unique_ptr<MigWorker> worker_;    // null: no instances are made
  std::unique_ptr<MpsDaemon> mps_;       // null: GPUs are given whole
  std::unique_ptr<HealthWatch> health_;  // null: critical errors are not listened for
  std::map<std::string, std::unique_ptr<Endpoint>> endpoints_;  // by resource
  std::optional<Time> looked_at_;
  std::string seen_;     // the register, as it was last
  std::string written_;  // as the API server has taken it
};

}  // namespace tranche::agent
