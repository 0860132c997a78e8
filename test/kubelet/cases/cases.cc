// tranche-kubelet-cases SEED STATES: random nodes and pods, and what Tranche answers to filter.
//
// One JSON object a line: the node as its kubelet knows it, the pod, and the answer, for
// test/kubelet's judge to hold against the kubelet's own code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/engine/engine.h"
#include "scheduler/facts/reason.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/nodes/node_topology.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "test/builders/decoded.h"
#include "test/kubelet/cases/node_state.h"

namespace tranche::test {
namespace {

constexpr std::array<const char*, 4> kPolicies = {"none", "best-effort", "restricted",
                                                  "single-numa-node"};
constexpr std::array<const char*, 2> kScopes = {"container", "pod"};
constexpr int kStatesOfAMachine = 20;  // of each policy and scope

PodFacts Pod(const std::string& json) {
  return Decoded<PodFacts>(json, [](wire::Element pod) { return wire::DecodePod(pod); });
}

// An engine that a cluster of equal machines is told to, one node at a time.
class Asked {
 public:
  // What is worked out of a machine stays as long as a node of it does.
  explicit Asked(NodeState machine) : engine_(EngineOptions()) {
    engine_.SetPolicies(std::make_shared<const PolicySet>(), GpuPolicy(), now_);
    machine.name = "idle";
    engine_.UpsertNode(Decoded<NodeFacts>(NodeObject(machine), wire::DecodeNode), now_);
  }

  // "Sent", or the reason of the refusal.
  std::string Ask(const NodeState& node, const std::string& zones, const std::string& pod) {
    const NodeName name(node.name);
    engine_.UpsertNode(Decoded<NodeFacts>(NodeObject(node), wire::DecodeNode), now_);
    engine_.SetNodeZones(name, Decoded<NodeZones>(zones, wire::DecodeNodeZones), now_);
    std::vector<PodUid> pods;
    for (const RunningPod& running : node.running) {
      PodFacts facts = Pod(RunningObject(node, running));
      pods.push_back(facts.request.uid);
      engine_.UpsertPod(std::move(facts), now_);
    }
    const PodFacts facts = Pod(pod);
    pods.push_back(facts.request.uid);
    engine_.UpsertPod(facts, now_);
    const std::vector<std::string_view> candidates = {node.name};
    FilterAnswer answer;
    engine_.Filter(facts.request, candidates, now_, answer);
    for (const PodUid& uid : pods) engine_.DeletePod(uid, now_);
    engine_.SetNodeZones(name, std::nullopt, now_);
    engine_.DeleteNode(name, now_);
    return answer.chosen.empty() ? std::string(Describe(answer.reason).code) : "Sent";
  }

 private:
  const Instant now_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  Engine engine_;
};

std::string Line(const NodeState& node, const std::string& policy, const std::string& scope,
                 const std::string& pod, const std::string& answer) {
  std::vector<std::string> gpus, running;
  for (const NodeGpu& gpu : node.gpus) {
    gpus.push_back(fmt::format(R"({{"id":"{}","numa":{}}})", gpu.id, gpu.numa));
  }
  for (const RunningPod& one : node.running) {
    running.push_back(fmt::format(R"([{}])", fmt::join(one.gpus, ",")));
  }
  return fmt::format(
      R"({{"policy":"{}","scope":"{}","numaNodes":[{}],"gpus":[{}],"running":[{}],"tells":{},)"
      R"("hidden":{},"pod":{},"answer":"{}"}})",
      policy, scope, fmt::join(node.numa_nodes, ","), fmt::join(gpus, ","), fmt::join(running, ","),
      static_cast<int>(node.tells), HidesGpus(node), pod, answer);
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tranche-kubelet-cases SEED STATES\n";
    return 2;
  }
  Draw draw(std::strtoull(argv[1], nullptr, 10));
  const long states = std::strtol(argv[2], nullptr, 10);
  long cases = 0;
  for (long done = 0; done < states;) {
    NodeState node = draw.Machine();
    Asked asked(node);
    for (int i = 0; i < kStatesOfAMachine && done < states; ++i, ++done) {
      for (const char* policy : kPolicies) {
        for (const char* scope : kScopes) {
          node.name = fmt::format("n{}", ++cases);
          draw.Occupy(node);
          const std::string pod = PodObject(node.name + "-new", draw.Pod(node));
          const std::string answer = asked.Ask(node, ZonesObject(node, policy, scope), pod);
          std::cout << Line(node, policy, scope, pod, answer) << "\n";
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tranche::test

int main(int argc, char** argv) { return tranche::test::Main(argc, argv); }
