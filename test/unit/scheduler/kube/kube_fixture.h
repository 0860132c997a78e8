// What the tests of the Kubernetes client share: small objects, short waits, and a client against
// the fake API server.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/kube/cluster.h"
#include "scheduler/kube/writes/write_requests.h"
#include "test/fakes/api_server.h"
#include "test/unit/scheduler/kube/recording_events.h"

namespace tranche::kube {

inline constexpr const char* kPods = "/api/v1/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";
inline constexpr const char* kNamespaces = "/api/v1/namespaces";
inline constexpr const char* kPriorityClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";
inline constexpr const char* kPolicies = "/apis/tranche.dev/v1alpha1/gpupolicies";
inline constexpr const char* kQuotas = "/apis/tranche.dev/v1alpha1/gpuquotas";
inline constexpr const char* kViews = "/apis/tranche.dev/v1alpha1/gpuquotaviews";

inline constexpr const char* kReclaims = "/apis/tranche.dev/v1alpha1/gpureclaims";
inline constexpr const char* kDisruptionBudgets = "/apis/policy/v1/poddisruptionbudgets";

using fakes::Json;

// Printed by name when a row fails.
inline void PrintTo(WriteResult::Kind kind, std::ostream* out) {
  constexpr const char* kNames[] = {"done", "rejected", "not sent", "unknown"};
  *out << kNames[static_cast<int>(kind)];
}

inline Json Pod(const std::string& name, const std::string& uid, const std::string& node = "") {
  Json pod = {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", uid}}},
              {"spec", {{"containers", Json::array({{{"name", "main"}}})}}},
              {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

inline Json Node(const std::string& name, const std::string& uid = "") {
  return {{"metadata", {{"name", name}, {"uid", uid.empty() ? "uid-" + name : uid}}},
          {"spec", Json::object()},
          {"status", {{"allocatable", Json::object()}, {"capacity", Json::object()}}}};
}

// Over the pods of namespace team with label app=`app`.
inline Json DisruptionBudget(const std::string& name, const std::string& app, int allowed) {
  return {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", "uid-" + name}}},
          {"spec", {{"selector", {{"matchLabels", {{"app", app}}}}}}},
          {"status", {{"disruptionsAllowed", allowed}}}};
}

// Waits in the order of milliseconds; periodic work is off unless a test turns it on.
inline Timing QuickTiming() {
  Timing timing;
  timing.request = std::chrono::milliseconds(5'000);
  timing.backoff_first = std::chrono::milliseconds(5);
  timing.backoff_cap = std::chrono::milliseconds(50);
  timing.watch_short = std::chrono::milliseconds(20);
  timing.absent_retry = std::chrono::milliseconds(30);
  timing.bind_backoff = std::chrono::milliseconds(5);
  return timing;
}

inline Options PlainOptions(uint16_t port) {
  Options options;
  options.credentials.host = "127.0.0.1";
  options.credentials.port = port;
  options.credentials.tls = false;
  options.timing = QuickTiming();
  return options;
}

inline bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// The answer of `write`, a function that takes a callback.
template <typename Write>
WriteResult Written(Write write) {
  auto answered = std::make_shared<std::promise<WriteResult>>();
  write([answered](WriteResult result) { answered->set_value(std::move(result)); });
  return answered->get_future().get();
}

inline WriteResult BindAndWait(Cluster& cluster, BindingWrite write) {
  return Written([&](auto done) { cluster.Bind(std::move(write), std::move(done)); });
}

inline PodLookup GetAndWait(Cluster& cluster, PodName pod, PodUid uid) {
  auto answered = std::make_shared<std::promise<PodLookup>>();
  cluster.GetPod(std::move(pod), std::move(uid),
                 [answered](PodLookup lookup) { answered->set_value(std::move(lookup)); });
  return answered->get_future().get();
}

}  // namespace tranche::kube
