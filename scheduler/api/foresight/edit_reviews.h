// POST /admission/edits: before an object of ours is created, changed or deleted, whoever does it
// is told how many pods would be evicted at once; GPUPolicy evictingEdits has it refused where the
// object does not agree to so many.
//
// The trail of edits (host/edit_trail.h) keeps the name of whoever makes an edit that is allowed,
// and tells it once the cluster shows the change.
//
// What would be is worked out as for POST /api/v1/plan, on a thread of its own, in the time that
// API servers wait. An edit that could not be judged in time, or at all, is allowed, and the answer
// says so: nobody is kept from mending a cluster by one who foretells. Only numbers are told: the
// port is open to the cluster, and the names of pods are not everybody's.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>

#include "scheduler/api/router.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/wire/protocol/admission_review.h"
#include "scheduler/wire/protocol/edit_review.h"

namespace tranche {

class EditReviews {
 public:
  // Of the five seconds that charts give a webhook.
  static constexpr std::chrono::milliseconds kPatience{3'000};
  // Reviews that are under way or wait for one that is.
  static constexpr int kMost = 4;

  // Both outlive it.
  EditReviews(Host& host, metrics::Metrics& metrics, std::chrono::milliseconds patience = kPatience)
      : host_(host), metrics_(metrics), patience_(patience) {}
  // Gives up the answer in the making.
  ~EditReviews() {
    stopping_ = true;
    pool_.join();
  }
  EditReviews(const EditReviews&) = delete;
  EditReviews& operator=(const EditReviews&) = delete;
  void AddTo(Router& router);

 private:
  using Steady = std::chrono::steady_clock;

  void Review(const http::Request& request, const http::Responder& respond);
  wire::AdmissionAnswer Judge(const wire::EditAsk& ask, Steady::time_point until);

  Host& host_;
  metrics::Metrics& metrics_;
  const std::chrono::milliseconds patience_;
  std::atomic<int> under_way_ = 0;
  std::atomic<bool> stopping_ = false;
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
