// Calls about single objects: a write, and reading a pod or a ConfigMap.
//
// Thread rule: coroutines of the writing thread. Source: kube-client-protocol sections 4 and 11.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/transport/timing.h"
#include "scheduler/ports/cluster_api.h"

namespace tranche::kube {

class ApiCalls {
 public:
  static constexpr int kMaxTries = 10;

  ApiCalls(ApiClient& client, StopSignal& stop, const Timing& timing)
      : client_(client), stop_(stop), timing_(timing) {}

  // Sends once; again, up to `tries` in all, only when throttled (a 429, which the server did not
  // run), while there is time before the request's deadline.
  boost::asio::awaitable<WriteResult> Write(ApiRequest request, int tries);
  // Sends a write that may run twice, and again while no server has taken or refused it, for
  // Timing::write_patience and as long as `wanted` holds. Each time as long as the request's
  // deadline allows the first.
  boost::asio::awaitable<WriteResult> Persist(ApiRequest request, std::function<bool()> wanted);
  // Same with an eviction, whose http_code is the one of the Status. Two answers are the server's
  // last word and never sent again: 429 naming a PodDisruptionBudget, and 500 in a Status without a
  // reason, which says that several budgets cover the pod. Both are kRejected. Any other 5xx is
  // kUnknown, as for every write.
  boost::asio::awaitable<EvictionResult> Evict(ApiRequest request, int tries);
  boost::asio::awaitable<PodLookup> GetPod(PodName pod, PodUid uid, TimePoint deadline);
  // The object at a path. Asks once.
  boost::asio::awaitable<ApiAnswer> Get(std::string target, TimePoint deadline);
  // Asks once.
  boost::asio::awaitable<ConfigMapLookup> ReadConfigMap(NamespacedName map, std::string key,
                                                        TimePoint deadline);

 private:
  struct Verdict {
    WriteResult result;
    ApiStatus status;  // when there was an answer
  };
  // What an answer to a write proves.
  Verdict Judge(const ApiAnswer& answer);
  boost::asio::awaitable<Verdict> Send(ApiRequest request, int tries);
  // Waits before another try of a throttled call. False when it would not come before `deadline`.
  boost::asio::awaitable<bool> WaitForTurn(const ApiStatus& status, int tries, TimePoint deadline);

  ApiClient& client_;
  StopSignal& stop_;
  const Timing timing_;
  wire::LenientParser parser_;
};

}  // namespace tranche::kube
