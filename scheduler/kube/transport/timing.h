// Every wait of the Kubernetes client, in one place so that tests can shrink them.
//
// Source: kube-client-protocol section 9 (client-go's reflector), where nothing else is said.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace tranche::kube {

using TimePoint = std::chrono::steady_clock::time_point;

struct Timing {
  std::chrono::milliseconds dial{10'000};       // name look-up and TCP; client-go waits 30 s
  std::chrono::milliseconds handshake{10'000};  // TLS
  std::chrono::milliseconds request{60'000};    // one GET or one LIST page: the server's own limit
  std::chrono::milliseconds idle{60'000};       // a pooled connection; servers close theirs at 90 s
  std::chrono::milliseconds token_reread{50'000};

  // timeoutSeconds of a watch is drawn from this range, so that watches do not end together.
  std::chrono::seconds watch_min{300};
  std::chrono::seconds watch_max{600};
  std::chrono::milliseconds watch_guard{30'000};     // past timeoutSeconds we end it ourselves
  std::chrono::milliseconds watch_silence{180'000};  // bookmarks come about once a minute
  std::chrono::milliseconds probe_period{15'000};    // silence after which the server is asked
  std::chrono::milliseconds watch_short{1'000};      // ended sooner, without an event: a failure

  std::chrono::milliseconds backoff_first{800};
  std::chrono::milliseconds backoff_cap{30'000};
  std::chrono::milliseconds backoff_reset{120'000};  // without failure
  std::chrono::milliseconds absent_retry{60'000};    // a custom resource that does not exist
  // Within which all resources are asked for again once the server answers after an outage.
  std::chrono::milliseconds return_spread{500};

  std::chrono::milliseconds drift_period{300'000};  // memory against a fresh list (hazard 8)
  std::chrono::milliseconds drift_grace{10'000};    // for events that are under way

  std::chrono::milliseconds bind_backoff{100};  // 429 without Retry-After, doubling
  // For which a write that may run twice is repeated while no server takes it.
  std::chrono::milliseconds write_patience{10'000};
};

// How long to wait after a failure: doubling from `first` to `cap`, plus a random part as long as
// the wait itself, so that many clients of a restarted server do not come back together.
//
// Thread rule: one thread at a time.
class Backoff {
 public:
  struct Limits {
    std::chrono::milliseconds first{800};
    std::chrono::milliseconds cap{30'000};
    std::chrono::milliseconds reset_after{120'000};  // without failure
  };

  Backoff(Limits limits, uint64_t seed) : limits_(limits), next_(limits.first), random_(seed) {}

  // What failed before says nothing of the next failure.
  void Reset() { failed_before_ = false, next_ = limits_.first; }

  // The wait after a failure at `now`: between d and 2d.
  std::chrono::milliseconds Next(std::chrono::steady_clock::time_point now) {
    if (failed_before_ && now - last_failure_ > limits_.reset_after) next_ = limits_.first;
    failed_before_ = true;
    last_failure_ = now;
    const std::chrono::milliseconds base = next_;
    next_ = std::min(base * 2, limits_.cap);
    std::uniform_int_distribution<int64_t> jitter(0, base.count());
    return base + std::chrono::milliseconds(jitter(random_));
  }

 private:
  Limits limits_;
  std::chrono::milliseconds next_;
  std::chrono::steady_clock::time_point last_failure_;
  bool failed_before_ = false;
  std::mt19937_64 random_;
};

}  // namespace tranche::kube
