// The calls about one pod: writing its Binding, reading it back, and having it scheduled again.
//
// Thread rule: coroutines of the writing thread. Source: kube-client-protocol sections 4 and 11.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "scheduler/kube/api_client.h"
#include "scheduler/ports/cluster_api.h"

namespace tranche::kube {

// The body of POST .../pods/NAME/binding. The uid in it is a precondition of the write.
std::string EncodeBinding(const BindingWrite& write);
// What an answer to that POST proves.
WriteResult JudgeBinding(wire::Parser& parser, const ApiAnswer& answer);

class PodCalls {
 public:
  PodCalls(ApiClient& client, StopSignal& stop, const Timing& timing)
      : client_(client), stop_(stop), timing_(timing) {}

  // One POST; again only after a 429, which the server did not run, while time is left.
  boost::asio::awaitable<WriteResult> Bind(BindingWrite write, TimePoint deadline);
  // A condition of our own with a new time: kube-scheduler takes the update of a waiting pod as
  // reason to try it again (kube-scheduler-extender 3.7). One PATCH, no retries.
  boost::asio::awaitable<WriteResult> Poke(PodName pod, PodUid uid, Instant when,
                                           TimePoint deadline);
  boost::asio::awaitable<PodLookup> Get(PodName pod, PodUid uid, TimePoint deadline);

 private:
  // Waits before another try of a throttled call. False when it would not come before `deadline`.
  boost::asio::awaitable<bool> WaitForTurn(const ApiStatus& status, int tries, TimePoint deadline);

  ApiClient& client_;
  StopSignal& stop_;
  const Timing timing_;
  wire::Parser parser_;
};

}  // namespace tranche::kube
