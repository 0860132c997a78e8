#include "test/agent/kubelet.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

namespace tranche::fakes {
namespace {

constexpr std::chrono::seconds kPatience{60};

absl::Status Refused(const grpc::Status& status) {
  return absl::FailedPreconditionError(status.error_message());
}

Ids Split(const std::string& text) {
  Ids ids;
  std::istringstream stream(text);
  for (std::string id; std::getline(stream, id, ',');) ids.push_back(id);
  return ids;
}

}  // namespace

// The manager's calls, over the socket. The lock is let go meanwhile, as the real one does.
class Kubelet::Calls : public PluginCalls {
 public:
  Calls(v1beta1::DevicePlugin::Stub& plugin, std::unique_lock<std::mutex>& lock,
        v1beta1::ContainerAllocateResponse& last_given)
      : plugin_(plugin), lock_(lock), last_given_(last_given) {}

  absl::StatusOr<Ids> Prefer(const Ids& available, const Ids& keep, int64_t size) override {
    v1beta1::PreferredAllocationRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : available) container.add_available_device_ids(id);
    for (const std::string& id : keep) container.add_must_include_device_ids(id);
    container.set_allocation_size(static_cast<int32_t>(size));
    v1beta1::PreferredAllocationResponse answer;
    const grpc::Status status = Unlocked([&](grpc::ClientContext& context) {
      return plugin_.GetPreferredAllocation(&context, request, &answer);
    });
    if (!status.ok()) return Refused(status);
    const auto& ids = answer.container_responses(0).device_ids();
    return Ids(ids.begin(), ids.end());
  }

  absl::StatusOr<Ids> Allocate(const Ids& ids) override {
    v1beta1::AllocateRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : ids) container.add_devices_ids(id);
    v1beta1::AllocateResponse answer;
    const grpc::Status status = Unlocked(
        [&](grpc::ClientContext& context) { return plugin_.Allocate(&context, request, &answer); });
    if (!status.ok()) return Refused(status);
    const auto& given = answer.container_responses(0);
    last_given_ = given;
    Ids seen;
    for (const auto& device : given.cdi_devices()) seen.push_back(device.name());
    const auto visible = given.envs().find("NVIDIA_VISIBLE_DEVICES");
    return visible == given.envs().end() ? seen : Split(visible->second);
  }

  absl::Status PreStart(const Ids& ids) override {
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : ids) request.add_devices_ids(id);
    v1beta1::PreStartContainerResponse answer;
    const grpc::Status status = Unlocked([&](grpc::ClientContext& context) {
      return plugin_.PreStartContainer(&context, request, &answer);
    });
    return status.ok() ? absl::OkStatus() : Refused(status);
  }

 private:
  template <typename Call>
  grpc::Status Unlocked(Call call) {
    grpc::ClientContext context;
    lock_.unlock();
    const grpc::Status status = call(context);
    lock_.lock();
    return status;
  }

  v1beta1::DevicePlugin::Stub& plugin_;
  std::unique_lock<std::mutex>& lock_;
  v1beta1::ContainerAllocateResponse& last_given_;
};

// A resource and the plugin that serves it.
struct Kubelet::Followed {
  explicit Followed(uint64_t seed) : manager(seed) {}
  ~Followed() { End(); }

  void End() {
    if (watch) watch->TryCancel();
    if (follower.joinable()) follower.join();
    watch.reset();
  }

  DeviceManager manager;
  std::map<std::string, bool> devices;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin;
  std::unique_ptr<grpc::ClientContext> watch;
  std::thread follower;
};

class Kubelet::Registry : public v1beta1::Registration::Service {
 public:
  explicit Registry(Kubelet& kubelet) : kubelet_(kubelet) {}
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    if (request->version() != "v1beta1" || !request->options().pre_start_required() ||
        !request->options().get_preferred_allocation_available()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "another version or other options"};
    }
    {
      const std::lock_guard<std::mutex> lock(kubelet_.mutex_);
      ++kubelet_.registrations_;
    }
    kubelet_.Follow(request->resource_name(), request->endpoint());
    return grpc::Status::OK;
  }

 private:
  Kubelet& kubelet_;
};

class Kubelet::Lister : public v1::PodResourcesLister::Service {
 public:
  explicit Lister(Kubelet& kubelet) : kubelet_(kubelet) {}
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* answer) override {
    const std::lock_guard<std::mutex> lock(kubelet_.mutex_);
    std::map<std::string, v1::PodResources*> pods;  // by uid
    for (const auto& [resource, followed] : kubelet_.followed_) {
      for (const auto& listed : followed->manager.List()) {
        v1::PodResources*& pod = pods[listed.uid];
        if (pod == nullptr) pod = answer->add_pod_resources();
        Add(listed, resource, *pod);
      }
    }
    return grpc::Status::OK;
  }

 private:
  static void Add(const DeviceManager::Listed& listed, const std::string& resource,
                  v1::PodResources& pod) {
    pod.set_namespace_(listed.ns);
    pod.set_name(listed.name);
    for (const auto& [name, ids] : listed.containers) {
      v1::ContainerResources* container = nullptr;
      for (auto& known : *pod.mutable_containers()) {
        if (known.name() == name) container = &known;
      }
      if (container == nullptr) container = pod.add_containers();
      container->set_name(name);
      // One entry for each id, as for devices of several NUMA nodes.
      for (const std::string& id : ids) {
        v1::ContainerDevices& devices = *container->add_devices();
        devices.set_resource_name(resource);
        devices.add_device_ids(id);
      }
    }
  }

  Kubelet& kubelet_;
};

Kubelet::Kubelet(std::string folder, uint64_t seed) : folder_(std::move(folder)), seed_(seed) {
  Listen();
}

Kubelet::~Kubelet() { EndListening(); }

Kubelet::Followed& Kubelet::Of(const std::string& resource) {
  auto& followed = followed_[resource];
  if (!followed) followed = std::make_unique<Followed>(seed_);
  return *followed;
}

void Kubelet::Listen() {
  registry_ = std::make_unique<Registry>(*this);
  lister_ = std::make_unique<Lister>(*this);
  grpc::ServerBuilder builder;
  for (const char* name : {"/kubelet.sock", "/pod-resources.sock"}) {
    builder.AddListeningPort("unix:" + folder_ + name, grpc::InsecureServerCredentials());
  }
  builder.RegisterService(registry_.get());
  builder.RegisterService(lister_.get());
  server_ = builder.BuildAndStart();
}

void Kubelet::EndListening() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  for (const auto& [resource, followed] : followed_) followed->End();
}

void Kubelet::Follow(const std::string& resource, const std::string& endpoint) {
  Followed* followed = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    followed = &Of(resource);
  }
  followed->End();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  followed->plugin = v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
      "unix:" + folder_ + "/" + endpoint, grpc::InsecureChannelCredentials(), arguments));
  followed->watch = std::make_unique<grpc::ClientContext>();
  followed->follower = std::thread([this, followed] {
    const auto stream = followed->plugin->ListAndWatch(followed->watch.get(), {});
    for (v1beta1::ListAndWatchResponse answer; stream->Read(&answer);) {
      const std::lock_guard<std::mutex> lock(mutex_);
      followed->devices.clear();
      for (const auto& device : answer.devices()) {
        followed->devices[device.id()] = device.health() == "Healthy";
      }
      followed->manager.SetDevices(followed->devices);
      told_.notify_all();
    }
  });
}

bool Kubelet::WaitForDevices(const std::map<std::string, bool>& devices,
                             const std::string& resource) {
  std::unique_lock<std::mutex> lock(mutex_);
  return told_.wait_for(lock, kPatience, [&] { return Of(resource).devices == devices; });
}

std::map<std::string, bool> Kubelet::Devices(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto followed = followed_.find(resource);
  return followed == followed_.end() ? std::map<std::string, bool>() : followed->second->devices;
}

int Kubelet::registrations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return registrations_;
}

std::vector<std::string> Kubelet::resources() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [resource, followed] : followed_) names.push_back(resource);
  return names;
}

absl::Status Kubelet::Admit(const ManagedPod& pod, const std::string& resource) {
  std::unique_lock<std::mutex> lock(mutex_);
  Followed& followed = Of(resource);
  Calls calls(*followed.plugin, lock, last_given_);
  return followed.manager.Admit(pod, calls);
}

absl::Status Kubelet::Start(const std::string& uid, const std::string& container,
                            const std::string& resource) {
  std::unique_lock<std::mutex> lock(mutex_);
  Followed& followed = Of(resource);
  Calls calls(*followed.plugin, lock, last_given_);
  return followed.manager.Start(uid, container, calls);
}

void Kubelet::End(const std::string& uid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [resource, followed] : followed_) followed->manager.End(uid);
}

void Kubelet::Know(const ManagedPod& pod) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Of(kGpus).manager.Know(pod);
}

void Kubelet::Restart(bool with_checkpoint) {
  EndListening();
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_socket()) std::filesystem::remove(entry.path());
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [resource, followed] : followed_) {
      followed->devices.clear();
      followed->manager.Restart(with_checkpoint);
    }
  }
  Listen();
}

Ids Kubelet::Given(const std::string& uid, const std::string& container,
                   const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto followed = followed_.find(resource);
  if (followed == followed_.end()) return {};
  const auto& all = followed->second->manager.given();
  const auto given = all.find({uid, container});
  return given == all.end() ? Ids() : given->second;
}

v1beta1::ContainerAllocateResponse Kubelet::LastGiven() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_given_;
}

}  // namespace tranche::fakes
