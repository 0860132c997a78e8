// An engine whose future is asked for.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/foresight/forecast.h"
#include "scheduler/foresight/plan.h"
#include "scheduler/foresight/replica.h"
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {

class ForesightTest : public EngineReclaimTest {
 protected:
  ForesightTest() { engine_.FinishRestore(now_); }

  static PodRequest Lasting(PodRequest request, Millis runtime) {
    request.expected_runtime = runtime;
    return request;
  }
  // Waits from now on, as its object says.
  void Wait(const PodRequest& request) {
    PodFacts pod = test::Pending(request);
    pod.created = now_;
    pod.owner = "owner-of-" + request.name.name;
    engine_.UpsertPod(pod, now_);
  }
  // Runs from now on, and its controller would make it anew.
  void Started(const PodRequest& request, const std::string& node) {
    Run(request, node, "owner-of-" + request.name.name);
  }
  ClusterCopy Copy() {
    ReplicaWalk walk;
    while (!walk.done()) engine_.CopySlice(walk, now_);
    return walk.Take();
  }
  Forecasts Ahead(const ForecastRules& rules = {}) { return Foretell(Copy(), runtimes_, rules); }
  // Minutes from now, "never" where there is no time.
  std::string In(const std::optional<Instant>& at) const {
    if (!at) return "never";
    const auto ms = (*at - now_).count();
    return ms % 60'000 == 0 ? std::to_string(ms / 60'000) : std::to_string(ms) + "ms";
  }
  using EngineReclaimTest::In;
  // "a at 60", in minutes, by name; of one whose times differ "a at 10/60/90".
  static std::vector<std::string> Names(const std::vector<PodName>& pods) {
    std::vector<std::string> names;
    for (const PodName& pod : pods) names.push_back(pod.str());
    return names;
  }
  std::vector<std::string> Starts(const Forecasts& forecasts) const {
    std::vector<std::string> starts;
    for (const auto& [name, forecast] : forecasts.pods) {
      std::string text = name.name + " at " + In(forecast.p50);
      if (forecast.p10 != forecast.p90) {
        text = fmt::format("{} at {}/{}/{}", name.name, In(forecast.p10), In(forecast.p50),
                           In(forecast.p90));
      }
      starts.push_back(std::move(text));
    }
    return starts;
  }

  Runtimes runtimes_;
};

}  // namespace tranche
