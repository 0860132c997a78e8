// HAMi's device plugin, 2.4 to 2.10, and its ancestor of 4paradigm: finds its pod by the lock on
// the node, else takes the first pod on the node that seems to wait for it.
// Source: request-dialects sections 4.3, 4.4, 5.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/fakes/agents/agent_text.h"
#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

// The names an agent of this family goes by.
struct HamiKeys {
  std::string lock;       // of the node; empty: knows no lock
  std::string node;       // which node the pod was given
  std::string bind_time;  // a pod without it was not bound by the scheduler
  std::string phase;      // allocating, then success or failed
  std::string to_allocate;
  std::string mig;  // empty: MIG instances are told by a suffix of the UUID
};

class HamiAgent : public NodeAgent {
 public:
  // `minor`: of version 2.x.
  HamiAgent(FakePods& pods, int minor);

  std::vector<std::string> resources() const override { return {"nvidia.com/gpu"}; }
  Service Allocate(const DeviceCall& call) override;

 protected:
  HamiAgent(FakePods& pods, int minor, HamiKeys keys);

 private:
  struct Instance {
    std::string uid;
    std::string node;
    int card = 0;
    int start = 0;
    int size = 0;
  };
  // The pod it takes itself to be called for. nullopt: `problem` says why it cannot tell.
  std::optional<FakePod> Pick(const FakeNode& node, std::string& problem) const;
  // The named pod gets phase failed, and its lock goes.
  Service Fail(const FakePod& pod, const std::string& node, const std::string& why);
  // Reads the MIG annotation for container `place`; empty: `problem` says why.
  std::vector<Grant> Cut(const FakePod& pod, const FakeNode& node, std::size_t place,
                         const std::vector<ListedDevice>& devices, TextPatch& patch,
                         std::string& problem);
  void ForgetEnded();
  void Unlock(const FakePod& pod, const std::string& node);

  FakePods& pods_;
  const int minor_;
  const HamiKeys keys_;
  std::vector<Instance> instances_;  // it cut and has not torn down
};

class FourPdAgent : public HamiAgent {
 public:
  explicit FourPdAgent(FakePods& pods);
};

}  // namespace tranche::fakes
