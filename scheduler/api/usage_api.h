// How usage went over time, from the ledger: what the page draws.
//
// GET /api/v1/ledger/series?from&to&step&leaf: GPU-hours by leaf and model in steps of `step`
//   seconds: {"from","to","stepSeconds","rows":[{"leaf","model","gpuHours":["1.250",...]}]}.
//   `to` is now by default, `from` a day before it; at most kMostSteps steps.
// GET /api/v1/burndown/BUDGET: how the running window of a budget was used up: {"name",
//   "windowStart","windowEnd","effective","used","burningPerHour","exhaustsAt",
//   "points":[{"at","used"}]}, GPU-hours at the budget's rates, the last point as of now.
//
// 404 where the server keeps no ledger. Thread rule: any thread. Answers are worked out on a thread
// of their own: the cost grows with the intervals in the span, about 30 us each for a burn-down.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/api/burn_down.h"
#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/ports/clock.h"

namespace tranche {

class UsageApi {
 public:
  static constexpr int64_t kMostSteps = 400;
  // An answer about a budget serves everybody for as long.
  static constexpr std::chrono::seconds kAnswerAge{20};

  // Does one piece of work after another, behind whoever asks.
  using Behind = std::function<void(std::function<void()>)>;

  // `path` empty: there is no ledger. `behind` null: a thread. All must outlive it.
  UsageApi(std::string path, EngineHost& host, const Clock& clock, Behind behind = nullptr);
  // Waits for answers in the making.
  ~UsageApi();
  UsageApi(const UsageApi&) = delete;
  UsageApi& operator=(const UsageApi&) = delete;
  void AddTo(Router& router);
  // On the thread that reads the ledger, behind what it was given before.
  void Later(std::function<void()> work);

 private:
  http::Response Series(const http::Request& request) const;
  http::Response BurnDownOf(const std::string& name);
  absl::StatusOr<std::string> Compute(const BudgetCase& budget) const;

  const std::string path_;
  EngineHost& host_;
  const Clock& clock_;
  using Steady = std::chrono::steady_clock;
  // By budget; only what is done behind touches it.
  std::map<std::string, std::pair<Steady::time_point, std::string>> answers_;
  std::optional<boost::asio::thread_pool> pool_;
  const Behind behind_;
};

}  // namespace tranche
