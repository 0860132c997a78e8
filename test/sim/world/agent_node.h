// tranche-node on one node of the simulation: the agent's own turns, asked by a model of the
// kubelet's device manager (test/fakes/device_manager.h), with pods as the store has them.
//
// It is asked and answers at once, and always finds the API server: how the agent waits, and what
// it does without that server, is in test/agent and test/property/agent_turns_test.cc.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/turns/turns.h"
#include "test/fakes/device_manager.h"
#include "test/sim/cluster/store.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/pod_view.h"

namespace tranche::sim {

class AgentNode : public fakes::PluginCalls {
 public:
  AgentNode(const Store& store, const Machine& machine, uint64_t seed);

  // What its containers are given to see; nullopt: the kubelet refuses it, and `problem` says why.
  std::optional<Json> Admit(const PodView& pod, std::string& problem);
  // May its containers start? Else `problem` says why not.
  bool MayStart(const PodView& pod, std::string& problem);
  // It has ended, or was refused.
  void End(const std::string& uid) { manager_.End(uid); }
  // The agent begins anew; the kubelet goes on.
  void Restart() { turns_ = agent::Turns(); }
  // So many cards, the first ones, are closed for new work.
  void Close(int dead);

 private:
  absl::StatusOr<fakes::Ids> Prefer(const fakes::Ids& available, const fakes::Ids& keep,
                                    int64_t size) override;
  absl::StatusOr<fakes::Ids> Allocate(const fakes::Ids& ids) override;
  absl::Status PreStart(const fakes::Ids& ids) override;

  agent::Look Look() const;
  void Give(const agent::Grant& grant);

  const Store& store_;
  const Machine& machine_;
  std::vector<agent::Card> cards_;
  agent::Turns turns_;
  fakes::DeviceManager manager_;
  Json given_ = Json::array();  // to the pod that is being admitted
};

}  // namespace tranche::sim
