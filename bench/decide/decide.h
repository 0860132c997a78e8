// tranche-bench decide: how long one decision (filter + prioritize) takes, seen from
// kube-scheduler.
//
// Protocol (benchmarks E): the server is a process of its own on another core, asked over loopback
// HTTP/1.1 with keep-alive, on one connection as kube-scheduler does; requests start at fixed times
// (open loop), and latency counts from the time a request was due, so that a stall shows in every
// request it delays. Beside it stands the floor: the same bytes read, scanned and answered by a
// bare handler in the same server. With `quota` a second server holds the same fleet with teams
// declared, with `beside` one that another program serves. All are asked in turns, so that what
// else the machine does meets all of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

struct DecideOptions {
  ProfileOptions profile;
  uint64_t seed = 42;
  int rate = 2000;  // decisions per second
  int seconds = 10;
  int pods = 500;      // different waiting pods, asked for again and again
  std::string server;  // the tranche program
  std::string out;     // JSON file; empty: none
  bool quota = false;  // measure with teams, quotas and budgets beside without
  std::string beside;  // another tranche program, such as an older build; empty: none
};

absl::Status RunDecide(const DecideOptions& options);

// The floor's server; returns when its standard input ends or it is killed.
absl::Status ServeFloor(uint16_t port);

}  // namespace tranche::bench
