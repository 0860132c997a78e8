// A kubelet's device manager, as it treats one device plugin: which ids it chooses for a container,
// what it asks the plugin, what it writes down and forgets. Pods are admitted one by one.
//
// Ids that nobody chose for it are taken in no order, by seed. Written from the behaviour of
// Kubernetes 1.3x: init containers give their ids on to later containers of the pod, ids are
// counted as taken before Allocate is called, a start asks PreStartContainer, and the checkpoint
// brings ids back after a restart.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tranche::fakes {

using Ids = std::vector<std::string>;

struct ManagedContainer {
  std::string name;
  int64_t count = 0;
  bool init = false;     // sidecars too
  bool sidecar = false;  // an init container that keeps running
};

struct ManagedPod {
  std::string uid, ns, name;
  std::vector<ManagedContainer> containers;  // init containers first
};

// What the kubelet asks of a plugin.
class PluginCalls {
 public:
  virtual ~PluginCalls() = default;
  virtual absl::StatusOr<Ids> Prefer(const Ids& available, const Ids& keep, int64_t size) = 0;
  // What the container is given to see, by the answer.
  virtual absl::StatusOr<Ids> Allocate(const Ids& ids) = 0;
  virtual absl::Status PreStart(const Ids& ids) = 0;
};

class DeviceManager {
 public:
  explicit DeviceManager(uint64_t seed) : random_(seed) {}

  // As ListAndWatch said last: id -> healthy.
  void SetDevices(std::map<std::string, bool> devices) { devices_ = std::move(devices); }
  // Knows the pod from now on, and asks for its devices. Error: the pod is refused; it stays known
  // until End.
  absl::Status Admit(const ManagedPod& pod, PluginCalls& plugin);
  // Error: the container does not start.
  absl::Status Start(const std::string& uid, const std::string& container, PluginCalls& plugin);
  // The pod has ended; what it held is free once another pod is admitted.
  void End(const std::string& uid);
  // Begins anew with the checkpoint, or without it. Pods are to be admitted again; until all are,
  // what the others held stays taken.
  void Restart(bool with_checkpoint);
  void AllAdmitted() { ready_ = true; }
  // Knows a pod that something else than its devices refuses.
  void Know(const ManagedPod& pod) { known_[pod.uid] = pod; }

  struct Listed {
    std::string uid, ns, name;
    std::map<std::string, Ids> containers;  // app containers and sidecars, empty ones too
  };
  // As pod-resources lists them.
  std::vector<Listed> List() const;
  // What a container was given to see; by uid and container.
  const std::map<std::pair<std::string, std::string>, Ids>& given() const { return given_; }
  bool Knows(const std::string& uid) const { return known_.contains(uid); }

 private:
  using Key = std::pair<std::string, std::string>;  // uid, container

  void FreeWhatEnded();
  absl::StatusOr<Ids> Choose(int64_t count, const std::set<std::string>& reusable,
                             PluginCalls& plugin);
  void TakeAny(std::set<std::string>& chosen, std::set<std::string> from, int64_t count);
  std::set<std::string> Taken() const;

  std::mt19937_64 random_;
  bool ready_ = true;
  std::map<std::string, bool> devices_;
  std::map<std::string, ManagedPod> known_;
  std::map<Key, Ids> book_;   // the checkpoint
  std::map<Key, Ids> given_;  // lives with the containers, not with the kubelet
  std::set<std::string> in_flight_;
};

}  // namespace tranche::fakes
