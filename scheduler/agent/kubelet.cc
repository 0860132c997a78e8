#include "scheduler/agent/kubelet.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "scheduler/agent/device_plugin.grpc.pb.h"
#include "scheduler/agent/pod_resources.grpc.pb.h"
#include "scheduler/wire/json/resource_amount.h"

namespace tranche::agent {
namespace {

constexpr const char* kVersion = "v1beta1";
constexpr int kMostAnswerBytes = 16 * 1024 * 1024;

// A channel of its own for each call: a kubelet that restarts leaves a new socket of the same name.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status Lost(const std::string& socket, const grpc::Status& status) {
  return absl::UnavailableError(fmt::format("kubelet ({}): {}", socket, status.error_message()));
}

void AddHolding(Holding holding, std::vector<Holding>& holdings) {
  std::sort(holding.ids.begin(), holding.ids.end());
  if (!holding.ids.empty()) holdings.push_back(std::move(holding));
}

void SetDeadline(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

}  // namespace

absl::StatusOr<std::vector<KubeletPod>> ListKubeletPods(const std::string& socket,
                                                        const std::string& resource,
                                                        const std::string& whole,
                                                        std::chrono::milliseconds timeout) {
  const auto stub = v1::PodResourcesLister::NewStub(ChannelTo(socket));
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  v1::ListPodResourcesResponse answer;
  const grpc::Status status = stub->List(&context, {}, &answer);
  if (!status.ok()) return Lost(socket, status);
  std::vector<KubeletPod> pods;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    KubeletPod known{{pod.namespace_(), pod.name()}, {}, {}};
    for (const v1::ContainerResources& container : pod.containers()) {
      Holding holding{container.name(), {}};
      Holding other{container.name(), {}};
      for (const v1::ContainerDevices& devices : container.devices()) {
        const std::string& name = devices.resource_name();
        if (name != resource && name != whole && !name.starts_with(wire::kMigKeyPrefix)) continue;
        std::vector<std::string>& ids = name == resource ? holding.ids : other.ids;
        ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
      }
      AddHolding(std::move(holding), known.holdings);
      AddHolding(std::move(other), known.others);
    }
    pods.push_back(std::move(known));
  }
  return pods;
}

absl::Status RegisterPlugin(const std::string& socket, const std::string& endpoint,
                            const std::string& resource, std::chrono::milliseconds timeout) {
  const auto stub = v1beta1::Registration::NewStub(ChannelTo(socket));
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  request.mutable_options()->set_pre_start_required(true);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  return status.ok() ? absl::OkStatus() : Lost(socket, status);
}

}  // namespace tranche::agent
