// How well we follow one resource of the API server.
//
// A plain value; any thread. Counts are since the start.
#pragma once

#include <chrono>
#include <cstdint>

namespace tranche::kube {

struct ResourceStatus {
  bool synced = false;  // a complete list was handed over
  bool absent = false;  // the last list was refused: not installed (404) or not ours to read (403)
  std::chrono::steady_clock::time_point heard;  // last event, bookmark, list or reconnect
  int64_t relists = 0;
  int64_t reconnects = 0;
  int64_t failures = 0;
  int64_t undecodable = 0;  // versions of objects that could not be read
  int64_t unreadable = 0;   // objects whose newest version could not be read
  int64_t drifted = 0;      // objects that differed from a fresh list; any is a missed event
};

}  // namespace tranche::kube
