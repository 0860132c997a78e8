// GET /api/v1/forecast and /api/v1/forecast/NS/NAME: when pods that wait are expected to start.
//
// NAME is a pod, or a gang: of that the last of its pods counts. Times are null where none can be
// given, and for pods that have their place already; `because` says why. Forecasts are as fresh as
// the forecaster makes them, and say of when they are.
//
// Thread rule: any thread. Answers are made on a thread of their own; what waits for it is bounded.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string>

#include "scheduler/api/router.h"
#include "scheduler/controllers/forecaster.h"

namespace tranche {

class ForecastApi {
 public:
  static constexpr int kMostWaiting = 64;

  // Both outlive it.
  ForecastApi(EngineHost& host, Forecaster& forecaster) : host_(host), forecaster_(forecaster) {}
  // Gives up the answers in the making.
  ~ForecastApi() {
    forecaster_.Stop();
    pool_.join();
  }
  ForecastApi(const ForecastApi&) = delete;
  ForecastApi& operator=(const ForecastApi&) = delete;
  void AddTo(Router& router);
  // Has them made anew where they are outdated; waits for nothing.
  void Refresh();

 private:
  void Ask(http::Request request, http::Responder respond);
  http::Response Answer(const http::Request& request);
  http::Response One(const PodName& name);

  EngineHost& host_;
  Forecaster& forecaster_;
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> refreshing_ = false;
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
