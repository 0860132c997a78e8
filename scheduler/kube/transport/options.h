// How a client reaches the API server, and what it may do there.
//
// A plain value; any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "scheduler/kube/transport/credentials.h"
#include "scheduler/kube/transport/timing.h"

namespace tranche::kube {

class Platform;
class ServerClock;

struct Options {
  Credentials credentials;
  std::string user_agent = "tranche";
  std::chrono::milliseconds bind_timeout{4'000};  // of one call; below kube-scheduler's 5 s
  bool resource_quotas = false;                   // watch ResourceQuotas too
  // Asked right before a write is sent; false: it is not (kNotSent). Null: always true. With it the
  // server gives up at the call's deadline, and what a connection has not delivered when
  // it ends is thrown away: no write of ours arrives long after we were allowed to make it.
  std::function<bool()> may_write;
  // Begin as one who follows what another Tranche writes, until Refresh.
  bool follow = false;
  std::shared_ptr<ServerClock> server_clock = nullptr;  // told of every answer; null: nobody is
  Timing timing;
  Platform* platform = nullptr;  // outlives the client; null: sockets and threads
};

}  // namespace tranche::kube
