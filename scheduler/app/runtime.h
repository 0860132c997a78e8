// Everything a serving process is made of, put together once.
//
//   clock -> host (engine) <- cluster (embedded or kubernetes)
//   server -> router -> verbs -> binder -> cluster;  api, pages, embedded api
//
// Thread rule: Start and Stop from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "scheduler/app/config.h"

namespace tranche::app {

class Runtime {
 public:
  // SIGTERM to exit has 10 s; the last two are for joining threads.
  static constexpr std::chrono::milliseconds kDrainTime{8'000};

  explicit Runtime(ServeConfig config);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Loads objects, connects, listens. Errors: what is wrong with configuration, files,
  // credentials or the address.
  absl::Status Start();
  uint16_t port() const;
  uint16_t tls_port() const;  // 0: nothing is served over TLS
  // Not ready at once; then requests in flight are finished, the watch ends, threads are joined.
  // Idempotent.
  void Stop();

 private:
  const ServeConfig config_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::app
