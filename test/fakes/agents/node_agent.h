// What kubelet and the container runtime ask of a node agent, and what it answers.
//
// kubelet calls a device plugin once per container and resource, init containers first, with
// nothing but device ids: each agent guesses the pod by a rule of its own. So that tests can see
// the guess, an answer says whom the agent believes to serve.
// Source: request-dialects sections 1, 4-12.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"

namespace tranche::fakes {

// A part of a card.
struct Grant {
  int card = 0;  // its minor number on the node
  int64_t memory_mib = 0;
  int64_t cores = 0;  // percent
  friend bool operator==(const Grant&, const Grant&) = default;
};

struct ContainerId {
  std::string uid;  // of the pod; empty: none
  std::string container;
  friend bool operator==(const ContainerId&, const ContainerId&) = default;
};

struct DeviceCall {
  std::string node;
  std::string resource;
  std::vector<std::string> ids;
};

struct Service {
  std::string error;     // not empty: the call failed and nothing was given
  ContainerId believed;  // whom the agent thinks this is for; empty: it does not ask
  std::vector<Grant> grants;
  Text env;
};
inline Service ServiceError(std::string error) {
  Service service;
  service.error = std::move(error);
  return service;
}

class NodeAgent {
 public:
  virtual ~NodeAgent() = default;
  // What its plugins register and serve; side resources whose Allocate does nothing are left out.
  virtual std::vector<std::string> resources() const = 0;
  // At admission. An error makes kubelet refuse the pod with UnexpectedAdmissionError.
  virtual Service Allocate(const DeviceCall& call) = 0;
  // When the container is about to start. `owner`: what kubelet's pod-resources API says of these
  // ids. An error keeps the container from starting.
  virtual Service PreStart(const DeviceCall& call, const ContainerId& owner) {
    static_cast<void>(call);
    static_cast<void>(owner);
    return {};
  }
  // The container runtime's hook of agents that have one.
  virtual Service Hook(const std::string& node, const ContainerId& owner) {
    static_cast<void>(node);
    static_cast<void>(owner);
    return {};
  }
  // Of agents that see it: how often a card was let go while somebody still used it.
  virtual int early_ends() const { return 0; }
};

}  // namespace tranche::fakes
