// GET /api/v1/audit: the books against themselves and the cluster, looked at now.
//
// {"at","walks","faults":[{"kind","where","text"}],"setAside":[...],"leftOut","bookFaults":{kind:
// times since the start}}. It changes nothing; the self-check mends what can be mended. The engine
// is held for less than two milliseconds at a time. One look at a time: who asks meanwhile is
// answered by the next one, together with all who ask until that begins. 503 where too many ask,
// and where a look takes over a minute.
//
// Thread rule: any thread. Answers are worked out on a thread of their own.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/api/router.h"
#include "scheduler/controllers/audit_run.h"

namespace tranche {

class AuditApi {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::chrono::seconds kWhole{60};
  // For the API server to say which pods it has.
  static constexpr std::chrono::seconds kLookups{5};

  struct Hooks {
    // What is set aside besides: objects of the cluster. May be empty.
    std::function<std::vector<AuditNote>()> set_aside;
    // Comparisons that the self-check has ended.
    std::function<int64_t()> walks;
  };

  // Host and pods outlive it.
  AuditApi(Host& host, PodWrites& pods, Hooks hooks)
      : host_(host), pods_(pods), hooks_(std::move(hooks)) {}
  // Gives up the look under way.
  ~AuditApi();
  AuditApi(const AuditApi&) = delete;
  AuditApi& operator=(const AuditApi&) = delete;
  void AddTo(Router& router);

 private:
  void Ask(http::Responder respond);
  // Looks until nobody waits any more.
  void Serve();
  http::Response Look();
  // Pods that hold something and that neither the watch nor the API server has.
  std::vector<AuditNote> Forgotten(AuditRun& run);

  Host& host_;
  PodWrites& pods_;
  const Hooks hooks_;
  int64_t looks_ = 0;  // of the thread below
  absl::Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<http::Responder> waiting_ ABSL_GUARDED_BY(mutex_);
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
