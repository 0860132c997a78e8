// Everything a serving process is made of, put together once: addresses and who may ask there, the
// cluster, and the services of a leader (server/leader.h), which begin at once or when an election
// is won.
//
//   election:  standby (cluster -> buffer) --lease gained--> ledger, services, fresh lists -> leads
//              leads --lease lost--> hooks.lost, at once;  Stop gives the lease back
//
// Thread rule: Start and Stop from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "scheduler/server/config.h"

namespace tranche {

namespace kube {
class Reviews;
}

// What only the process can do for itself. From threads of the runtime; must not call Stop.
struct RuntimeHooks {
  // The lease was lost: nothing may be written any more, and nothing of what is in memory counts.
  std::function<void(const std::string& why)> lost;
  // To be stopped in order and started again.
  std::function<void(const std::string& why)> restart;
  // Says who callers are instead of the API server; outlives the runtime. Null: the API server.
  kube::Reviews* reviews = nullptr;
};

class Runtime {
 public:
  // SIGTERM to exit has 10 s; the last two are for joining threads.
  static constexpr std::chrono::milliseconds kDrainTime{8'000};

  explicit Runtime(ServeConfig config, RuntimeHooks hooks = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Loads objects, connects, listens. Errors: what is wrong with configuration, files,
  // credentials or the address.
  absl::Status Start();
  uint16_t port() const;         // 0: nothing is served in plain text
  uint16_t tls_port() const;     // 0: nothing is served over TLS
  uint16_t pages_port() const;   // 0: pages have no address of their own
  uint16_t probes_port() const;  // 0: health has no address of its own
  bool leads() const;            // decides, or will once it knows the cluster
  // Not ready at once; then requests in flight are finished, the watch ends, threads are joined,
  // the lease is given back. Idempotent.
  void Stop();

 private:
  const ServeConfig config_;
  const RuntimeHooks hooks_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche
