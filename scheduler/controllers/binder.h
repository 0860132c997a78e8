// The bind protocol: one POST whose outcome is found out, never guessed.
//
// The engine reserves, the API server decides, and the reservation ends only on proof. An answer
// of the server that is lost or unclear is settled by reading the pod and judging by content:
//
//   bound here with our annotation   success
//   bound elsewhere, gone, replaced  the reservation goes back, Error
//   still unbound                    the very same POST again, until the caller's deadline; then
//                                    the caller gets an Error and the bind is pursued further
//
// A bind to a node whose agent could confuse it with another pod waits for its turn before the
// POST, and takes the agent's lock on the node where there is one; both beyond the caller's
// deadline if need be.
//
// Success is never reported without a binding: kube-scheduler would leave the pod pending for good.
// Calls for a pod and node whose bind is under way share its outcome.
// Source: kube-client-protocol section 11; hazards A3-A7, A20; request-dialects sections 4.4, 15.
//
// Thread rule: any thread. Answers come on any thread, exactly once, no lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "scheduler/host/host.h"
#include "scheduler/host/timers.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/node_writes.h"
#include "scheduler/ports/pod_writes.h"

namespace tranche {

struct BinderOptions {
  std::chrono::milliseconds deadline{4'000};  // kube-scheduler gives up after 5 s
  std::chrono::milliseconds retry{100};       // before the same POST again, doubling
  std::chrono::milliseconds pursue_first{1'000};
  std::chrono::milliseconds pursue_last{30'000};
  std::chrono::milliseconds alarm_after{60'000};
  // A POST whose answer was lost may still arrive for as long as the API server works on one
  // request (its --request-timeout, 60 s by default). Until then no later refusal is proof.
  std::chrono::milliseconds late_arrival{60'000};
  // After a third refusal of the same kind, doubling up to 32 times that.
  std::chrono::milliseconds refusal_rest{10'000};
  std::chrono::milliseconds lock_retry{20};  // while another pod has the node's lock, doubling
  std::chrono::milliseconds lock_retry_last{500};
  Millis lock_stale{300'000};     // older locks of others are taken over, as agents do themselves
  std::string placeholder_image;  // of pods that hold a GPU for those who share it
  Millis lock_unbound{5'000};     // likewise, where the pod they name has no node
};

struct BindAnswer {
  metrics::Result result = metrics::Result::kFailed;
  std::string error;  // empty: bound. A fixed sentence otherwise.
};

class Binder {
 public:
  using Reply = std::function<void(BindAnswer)>;

  Binder(Host& host, PodWrites& pods, NodeWrites& nodes, Timers& timers, metrics::Metrics& metrics,
         BinderOptions options = {});
  ~Binder();
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  void Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Reply reply);
  // Takes in what the engine wants done about agents (EffectSinks::agents); may outlive this.
  std::function<void(const AgentWork& work)> AgentSink();
  // Binds without proof yet, those pursued in the background included.
  int64_t in_progress() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // shared with callbacks that may come later than the last call
};

}  // namespace tranche
