// One node's kubelet with the device plugin or agent beside it: admits bound pods one by one, gives
// them devices, runs them for as long as they last, ends them when they are deleted, and tells the
// API server.
//
// What a container really got goes to the history as kGranted, whatever the objects say.
//
// Sources: real-control-plane section 6 (graceful deletion); node-inventory sections 4 and 7 (the
// kubelet picks any free device, a lack is UnexpectedAdmissionError); request-dialects section 4.4
// (HAMi's agent, in test/fakes/agents/hami_agent.h); dra section 4 (claims are prepared before
// containers start).
//
// Faults (kAgent) come from Kubelets.
//
// Thread rule: one thread. Steps run as the node's actor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/claims/prepared_claims.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/agent_node.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/pod_view.h"

namespace tranche::sim {

// Annotations by which users of the simulation tell how their pods behave. Real clusters have no
// such words; Tranche does not know them.
inline constexpr const char* kRuntimeKey = "sim.example/runtime-ms";
inline constexpr const char* kFailsKey = "sim.example/fails";

struct KubeletOptions {
  int hami_minor = 8;
  SimTime most_admission = std::chrono::milliseconds(300);
  SimTime most_pull = std::chrono::milliseconds(2'000);
};

class Kubelet {
 public:
  Kubelet(Loop& loop, History& history, ApiServer& api, Machine machine, KubeletOptions options,
          uint64_t seed);

  const std::string& name() const { return machine_.name; }
  const Machine& machine() const { return machine_; }
  // A pod of this node as the kubelet hears of it.
  void Hear(const Change& change);
  // One that it ran before the world began.
  void Adopt(const Stored& pod, Json devices);
  // tranche-node; null: another hands out its cards.
  AgentNode* agent() { return agent_ ? &*agent_ : nullptr; }
  // It does nothing until then; containers go on.
  void Hold(SimTime until) { loop_.Hold(actor_, until); }
  // The machine is gone, and all that ran on it.
  void Vanish();

 private:
  enum class Stage : uint8_t { kWaiting, kStarting, kRunning, kOver };
  struct Run {
    std::string key;
    Stage stage = Stage::kWaiting;
    std::vector<int> cards;      // of a stock node, by number
    std::vector<int> instances;  // of a MIG node
    bool granted = false;
    bool ending = false;
    SimTime started{0};
  };

  void Admit(const std::string& uid);
  // What it gives; nullopt: `problem` says what is missing.
  std::optional<Json> Allocate(const PodView& pod, Run& run, std::string& problem);
  std::optional<Json> AllocateCards(int64_t count, Run& run, std::string& problem);
  std::optional<Json> AllocateInstances(const PodView& pod, Run& run, std::string& problem);
  std::optional<Json> AllocateHami(const PodView& pod, std::string& problem);
  void Refuse(const std::string& uid, const std::string& problem);
  void Started(const std::string& uid);
  void FinishAfter(const Stored& pod);
  void Granted(const std::string& uid, const Run& run, Json devices);
  void Finish(const std::string& uid, const char* phase, const char* reason);
  void Leave(const std::string& uid, SimTime grace);
  void Kill(const std::string& uid);
  void Release(const std::string& uid, Run& run);
  void PatchStatus(const std::string& uid, const Run& run, Json status,
                   std::function<void(const Answer&)> done = nullptr);
  Write WriteOf(const std::string& key, const char* method) const;
  // The pod, if it is still that one.
  StoredPtr Now(const std::string& uid) const;

  Loop& loop_;
  History& history_;
  ApiServer& api_;
  const Machine machine_;
  const KubeletOptions options_;
  Draws draws_;
  const Actor actor_;
  PreparedClaims prepared_;
  std::optional<AgentNode> agent_;
  std::map<std::string, Run> runs_;  // by uid; kept until its end was seen
};

}  // namespace tranche::sim
