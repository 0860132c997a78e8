// A kubelet for a device plugin: registration, ListAndWatch, admission of pods through a device
// manager, pod-resources, restarts; over real sockets in a folder.
//
// Thread rule: one thread; gRPC's come on top. Waits end after a minute at the latest.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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
  bool WaitForDevices(const std::map<std::string, bool>& devices);
  int registrations() const;
  std::string resource() const;

  absl::Status Admit(const ManagedPod& pod);
  absl::Status Start(const std::string& uid, const std::string& container);
  void End(const std::string& uid);
  // Knows a pod that something else refused.
  void Know(const ManagedPod& pod);
  // Ends, removes every socket in the folder and begins anew; pods are to be admitted again.
  void Restart(bool with_checkpoint);
  // What a container was given: of the environment, or the names of CDI devices.
  Ids Given(const std::string& uid, const std::string& container) const;

 private:
  class Calls;
  class Registry;
  class Lister;

  void Listen();
  void EndListening();
  void Follow(const std::string& endpoint);
  void EndFollowing();

  const std::string folder_;
  mutable std::mutex mutex_;
  std::condition_variable told_;
  DeviceManager manager_;
  std::map<std::string, bool> devices_;
  int registrations_ = 0;
  std::string resource_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin_;
  std::unique_ptr<grpc::ClientContext> watch_;
  std::thread follower_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Lister> lister_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tranche::fakes
