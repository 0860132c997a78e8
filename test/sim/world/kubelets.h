// All machines of the cluster and their kubelets: nodes come, go, and come back under the same name
// with other hardware.
//
// Faults: kAgent (a kubelet stands still and its node goes NotReady, an agent says something wrong
// about its node, GPUs vanish for a while).
//
// Source: node-inventory section 7; hazards rows 13, 26, 33, 34, 36.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/informer.h"
#include "test/sim/world/kubelet.h"

namespace tranche::sim {

class Kubelets {
 public:
  Kubelets(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiServer& api,
           KubeletOptions options, uint64_t seed);

  void Start();
  void Quiet();
  // Hears of machines that join, and of nodes that leave (nullptr).
  using HearMachine = std::function<void(const std::string& node, const Machine*)>;
  void OnMachines(HearMachine hear) { hear_machine_ = std::move(hear); }
  // A machine joins. `who` makes its Node.
  void Join(Machine machine, const std::string& who);
  // It goes, and its Node with it.
  void Leave(const std::string& name, const std::string& who);
  const std::map<std::string, std::unique_ptr<Kubelet>>& all() const { return kubelets_; }
  // How many machines of that name there were.
  int lives(const std::string& name) const;

 private:
  void Hear(const Change& change);
  void Disturb();
  void StandStill(Kubelet& kubelet, Draws& draws);
  void Lie(Kubelet& kubelet, Draws& draws);
  void DisturbAgent(Kubelet& kubelet, Draws& draws);
  void TellRegister(const Machine& machine, int dead);
  // What an agent tells that takes another machine's cards, or none at all, for some of its own.
  std::vector<std::string> OthersCards(const Machine& machine, Draws& draws) const;
  void LoseGpus(const Kubelet& kubelet, Draws& draws);
  void SetReady(const std::string& node, const char* status);
  // What the node really has, said again.
  void Mend(const std::string& node);
  void PatchNode(const std::string& node, const std::string& who, const char* subresource,
                 Json body);

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  const KubeletOptions options_;
  Draws draws_;
  const Actor self_;
  bool quiet_ = false;
  HearMachine hear_machine_;
  std::map<std::string, std::unique_ptr<Kubelet>> kubelets_;  // by node
  std::map<std::string, int> lives_;
  std::map<std::string, SimTime> disturbed_until_;
  std::vector<std::unique_ptr<Kubelet>> gone_;  // steps of theirs may still be due
  Informer pods_;
};

}  // namespace tranche::sim
