// An engine with teams, for its tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/builders/policies.h"
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {

class EngineQuotaTest : public EngineTest {
 protected:
  static GpuPolicy Defaults() {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    return policy;
  }
  void Declare(test::Objects objects, const GpuPolicy& defaults = Defaults()) {
    engine_.SetPolicies(test::Declare(std::move(objects)), defaults, now_);
  }
  void Pass(Millis time) {
    now_ += time;
    engine_.Tick(now_);
  }

  static PodRequest In(const std::string& ns, PodRequest request,
                       const std::string& priority_class = "") {
    request.name.ns = ns;
    request.priority_class = priority_class;
    return request;
  }
  static PodRequest Pod(const std::string& ns, const std::string& name, int64_t gpus,
                        const std::string& priority_class = "") {
    return In(ns, test::WholePod(name, gpus), priority_class);
  }
  // The cluster shows the pod, and kube-scheduler asks for it: the nodes, or why there is none.
  std::string Try(const PodRequest& request) {
    engine_.UpsertPod(test::Pending(request), now_);
    std::string nodes;
    for (const std::string& node : Filter(request)) nodes += (nodes.empty() ? "" : " ") + node;
    return nodes.empty() ? std::string(Describe(answer_.reason).code) : nodes;
  }
  PodView View(const PodRequest& request) { return *engine_.Pod(request.uid); }
  std::string Why(const PodRequest& request) {
    return std::string(Describe(View(request).reason).code);
  }
  // The server says the pod is bound there, with the devices the engine gave it.
  PodFacts BoundFacts(const PodRequest& request, const std::string& node) {
    PodFacts pod = test::Bound(request, node, View(request).allocation);
    pod.bound_at = now_;
    return pod;
  }

  std::vector<std::string> Requeued() {
    std::vector<std::string> names;
    for (const auto& [name, uid] : std::exchange(engine_.effects().requeue, {}))
      names.push_back(name.name);
    return names;
  }

  // "open one.0 at 60", "refund one.0 from 60 to 90 NodeLost"; a mark for estimates.
  static std::string Text(const MeterEvent& event) {
    static constexpr const char* kKinds[] = {"open", "running", "close", "void", "refund"};
    const auto seconds = [](Instant at) { return (at - test::At(0)).count() / 1000; };
    std::string text = fmt::format("{} {}.{} ", kKinds[static_cast<int>(event.kind)],
                                   event.pod.name, event.interval);
    text += event.kind == MeterKind::kRefund
                ? fmt::format("from {} to {}", seconds(event.at), seconds(event.until))
                : fmt::format("at {}", seconds(event.at));
    if (!event.note.empty()) text += " " + event.note;
    if (event.estimated) text += " estimated";
    return text;
  }
  std::vector<std::string> Metered() {
    std::vector<std::string> texts;
    closings_ = std::exchange(engine_.effects().closings, {});
    for (const MeterEvent& event : std::exchange(engine_.effects().metering, {})) {
      texts.push_back(Text(event));
      journal_.push_back(event);
    }
    return texts;
  }

  std::vector<MeterEvent> journal_;
  std::vector<WindowClosing> closings_;
};

}  // namespace tranche
