// The device plugin: answers the kubelet's calls by what the turns decide.
//
// Thread rule: SetCards, Forget, Stop and streams from any thread; the calls come on gRPC's. A call
// blocks its thread while it looks and while instances are made, at most as long as the patience
// and the time limits of either.
// No lock is held meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/agent/device_plugin.grpc.pb.h"
#include "scheduler/turns/look.h"
#include "scheduler/turns/turns.h"

namespace tranche::agent {

// How containers are given their GPUs.
enum class GiveBy : uint8_t {
  kEnvironment,  // NVIDIA_VISIBLE_DEVICES, for NVIDIA's container runtime
  kCdi,          // names of CDI devices, for runtimes that know CDI
};

struct PluginOptions {
  GiveBy give_by = GiveBy::kEnvironment;
  std::string cdi_kind = "nvidia.com/gpu";  // the kind of the devices in the CDI specification
  std::string profile;                      // of the MIG instances it gives; empty: GPUs
  std::string mps_pipe;                     // folder of the MPS daemon's sockets, of shared GPUs
  int looks = 15;                           // before what cannot be told is refused
  // Lets some time go by before another look.
  std::function<void()> pause;
};

// Where looks come from. Called from any thread.
struct Sources {
  std::function<absl::StatusOr<std::vector<BoundPod>>()> pods;
  std::function<absl::StatusOr<std::vector<KubeletPod>>()> kubelet;
  // Of MIG instances (MigWorker): their UUIDs, and whether they are there.
  std::function<absl::StatusOr<std::string>(const Grant&, const DeviceId&)> provide;
  std::function<absl::Status(const DeviceId&)> check;
};

class Plugin final : public v1beta1::DevicePlugin::Service {
 public:
  Plugin(PluginOptions options, Sources sources);

  // What ListAndWatch tells from now on.
  void SetCards(const std::vector<Card>& cards);
  // A new kubelet admits every pod again.
  void Forget();
  // Ends the streams, so that the server can shut down. Until Resume they end at once.
  void Stop();
  void Resume();
  int streams() const;  // of ListAndWatch that are open

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* answer) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* answer) override;

 private:
  // A look, and in `why` what kept the API server's part away. Error: the kubelet did not answer.
  absl::StatusOr<Look> LookAround(std::string& why) const;
  // Asks the turns, and again after a pause where another look may tell more.
  template <typename Answer>
  Answer Patiently(const std::function<Answer(Turns&, const Look&)>& ask);
  absl::StatusOr<std::vector<std::string>> UuidsOf(const Grant& grant);
  void Give(const Grant& grant, const std::vector<std::string>& uuids,
            v1beta1::ContainerAllocateResponse& answer) const;
  void Limit(const std::vector<Part>& parts, v1beta1::ContainerAllocateResponse& answer) const;

  const PluginOptions options_;
  const Sources sources_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  Turns turns_ ABSL_GUARDED_BY(mutex_);
  std::vector<Card> cards_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // of the cards
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tranche::agent
