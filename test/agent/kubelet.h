// A kubelet for device plugins: registration, ListAndWatch, admission of pods through a device
// manager for each resource, pod-resources, restarts; over real sockets in a folder.
//
// Thread rule: one thread; gRPC's come on top. Waits end after a minute at the latest.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/agent/device_plugin.grpc.pb.h"
#include "scheduler/agent/pod_resources.grpc.pb.h"
#include "test/fakes/device_manager.h"

namespace tranche::fakes {

class Kubelet {
 public:
  // Listens on kubelet.sock in `folder`, and on pod-resources.sock there.
  explicit Kubelet(std::string folder, uint64_t seed = 1);
  ~Kubelet();

  // Waits until the plugin has told these, id -> healthy. False: it did not in a minute.
  bool WaitForDevices(const std::map<std::string, bool>& devices,
                      const std::string& resource = kGpus);
  int registrations() const;
  std::vector<std::string> resources() const;
  // As the plugin of the resource told them last.
  std::map<std::string, bool> Devices(const std::string& resource) const;

  // Each call is about one resource that the pod's containers ask for.
  absl::Status Admit(const ManagedPod& pod, const std::string& resource = kGpus);
  absl::Status Start(const std::string& uid, const std::string& container,
                     const std::string& resource = kGpus);
  void End(const std::string& uid);
  // Knows a pod that something else refused.
  void Know(const ManagedPod& pod);
  // Ends, removes every socket in the folder and begins anew; pods are to be admitted again.
  void Restart(bool with_checkpoint);
  // What a container was given: of the environment, or the names of CDI devices.
  Ids Given(const std::string& uid, const std::string& container,
            const std::string& resource = kGpus) const;

  // All that the container was given that was served last.
  v1beta1::ContainerAllocateResponse LastGiven() const;

  static constexpr const char* kGpus = "nvidia.com/gpu";

 private:
  struct Followed;
  class Calls;
  class Registry;
  class Lister;

  void Listen();
  void EndListening();
  void Follow(const std::string& resource, const std::string& endpoint);
  Followed& Of(const std::string& resource);  // under the lock

  const std::string folder_;
  const uint64_t seed_;
  mutable std::mutex mutex_;
  std::condition_variable told_;
  std::map<std::string, std::unique_ptr<Followed>> followed_;  // by resource; none ever goes
  int registrations_ = 0;
  v1beta1::ContainerAllocateResponse last_given_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Lister> lister_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tranche::fakes
