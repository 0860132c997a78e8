#include "scheduler/agent/plugin.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tranche::agent {
namespace {

// How often an open stream finds out that the kubelet is gone.
constexpr absl::Duration kStreamCheck = absl::Seconds(1);

grpc::Status Told(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  spdlog::warn("refused: {}", std::string(status.message()));
  const auto code = absl::IsUnavailable(status) ? grpc::StatusCode::UNAVAILABLE
                                                : grpc::StatusCode::FAILED_PRECONDITION;
  return {code, "tranche-node: " + std::string(status.message())};
}

template <typename Repeated>
std::vector<std::string> Texts(const Repeated& texts) {
  return {texts.begin(), texts.end()};
}

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename Value>
const absl::Status& StatusOf(const absl::StatusOr<Value>& value) {
  return value.status();
}

}  // namespace

Plugin::Plugin(PluginOptions options, Sources sources)
    : options_(std::move(options)), sources_(std::move(sources)), turns_(options_.profile) {}

void Plugin::SetCards(const std::vector<Card>& cards) {
  const absl::MutexLock lock(&mutex_);
  if (cards == cards_) return;
  for (const Card& card : cards) {
    if (!card.problem.empty()) spdlog::warn("GPU {}: {}", card.uuid.str(), card.problem);
  }
  cards_ = cards;
  ++version_;
  changed_.SignalAll();
}

void Plugin::Forget() {
  const absl::MutexLock lock(&mutex_);
  turns_.Forget();
}

void Plugin::Stop() {
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.SignalAll();
}

void Plugin::Resume() {
  const absl::MutexLock lock(&mutex_);
  stopping_ = false;
}

int Plugin::streams() const {
  const absl::MutexLock lock(&mutex_);
  return streams_;
}

absl::StatusOr<Look> Plugin::LookAround(std::string& why) const {
  Look look;
  // The kubelet first: a pod it knows is in any later list of the API server, unless it is gone.
  auto kubelet = sources_.kubelet();
  if (!kubelet.ok()) return kubelet.status();
  look.kubelet = *std::move(kubelet);
  auto pods = sources_.pods();
  if (pods.ok()) {
    look.pods = *std::move(pods);
  } else {
    why = std::string(pods.status().message());
  }
  const absl::MutexLock lock(&mutex_);
  look.cards = cards_;
  return look;
}

template <typename Answer>
Answer Plugin::Patiently(const std::function<Answer(Turns&, const Look&)>& ask) {
  for (int left = options_.looks - 1;; --left) {
    std::string why;
    const absl::StatusOr<Look> look = LookAround(why);
    std::optional<Answer> answer;
    if (look.ok()) {
      const absl::MutexLock lock(&mutex_);
      answer.emplace(ask(turns_, *look));
    } else {
      answer.emplace(look.status());
    }
    const absl::Status& status = StatusOf(*answer);
    if (!absl::IsUnavailable(status)) return *std::move(answer);
    if (left <= 0) {
      if (why.empty()) return *std::move(answer);
      return absl::UnavailableError(fmt::format("{} ({})", std::string(status.message()), why));
    }
    options_.pause();
  }
}

grpc::Status Plugin::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                            v1beta1::DevicePluginOptions* answer) {
  answer->set_pre_start_required(true);
  answer->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status Plugin::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                  grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  const absl::MutexLock lock(&mutex_);
  ++streams_;
  int64_t told = -1;
  while (!stopping_ && !context->IsCancelled()) {
    if (told == version_) {
      changed_.WaitWithTimeout(&mutex_, kStreamCheck);
      continue;
    }
    told = version_;
    v1beta1::ListAndWatchResponse answer;
    for (const TellableDevice& one : DevicesOf(cards_, options_.profile)) {
      v1beta1::Device& device = *answer.add_devices();
      device.set_id(one.id.str());
      device.set_health(one.healthy ? "Healthy" : "Unhealthy");
    }
    mutex_.Unlock();
    const bool written = writer->Write(answer);
    mutex_.Lock();
    if (!written) break;
  }
  --streams_;
  return grpc::Status::OK;
}

grpc::Status Plugin::GetPreferredAllocation(grpc::ServerContext*,
                                            const v1beta1::PreferredAllocationRequest* request,
                                            v1beta1::PreferredAllocationResponse* answer) {
  for (const auto& container : request->container_requests()) {
    const Offer offer{Texts(container.available_device_ids()),
                      Texts(container.must_include_device_ids()), container.allocation_size()};
    const auto ids = Patiently<absl::StatusOr<std::vector<std::string>>>(
        [&](Turns& turns, const Look& look) { return turns.Open(look, offer); });
    if (!ids.ok()) return Told(ids.status());
    auto& chosen = *answer->add_container_responses();
    for (const std::string& id : *ids) chosen.add_device_ids(id);
  }
  return grpc::Status::OK;
}

grpc::Status Plugin::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                              v1beta1::AllocateResponse* answer) {
  for (const auto& container : request->container_requests()) {
    const std::vector<std::string> ids = Texts(container.devices_ids());
    std::optional<absl::StatusOr<Grant>> grant;
    {
      const absl::MutexLock lock(&mutex_);
      grant = turns_.Close(ids);
    }
    if (!grant) {
      grant = Patiently<absl::StatusOr<Grant>>(
          [&](Turns& turns, const Look& look) { return turns.Serve(look, ids); });
    }
    if (!grant->ok()) return Told(grant->status());
    const auto uuids = UuidsOf(**grant);
    if (!uuids.ok()) return Told(uuids.status());
    Give(**grant, *uuids, *answer->add_container_responses());
  }
  return grpc::Status::OK;
}

// Of whole GPUs, and of MIG instances that are made now.
absl::StatusOr<std::vector<std::string>> Plugin::UuidsOf(const Grant& grant) {
  std::vector<std::string> uuids;
  for (const DeviceId& device : grant.devices) {
    if (!device.place) {
      uuids.push_back(device.gpu.str());
      continue;
    }
    auto uuid = sources_.provide(grant, device);
    if (!uuid.ok()) {
      const absl::MutexLock lock(&mutex_);
      turns_.GiveUp(grant.uid);
      return absl::FailedPreconditionError(
          fmt::format("pod {}: {}", grant.pod.str(), std::string(uuid.status().message())));
    }
    uuids.push_back(*std::move(uuid));
  }
  return uuids;
}

void Plugin::Give(const Grant& grant, const std::vector<std::string>& uuids,
                  v1beta1::ContainerAllocateResponse& answer) const {
  std::string visible;
  for (const std::string& uuid : uuids) {
    visible += (visible.empty() ? "" : ",") + uuid;
    if (options_.give_by != GiveBy::kCdi) continue;
    answer.add_cdi_devices()->set_name(fmt::format("{}={}", options_.cdi_kind, uuid));
  }
  if (options_.give_by == GiveBy::kEnvironment) {
    (*answer.mutable_envs())[std::string(kVisibleVariable)] = visible;
  }
  if (!grant.parts.empty()) Limit(grant.parts, answer);
  spdlog::info("container {} of pod {} gets {}", grant.container, grant.pod.str(), visible);
}

// What holds the container to its parts. MPS knows one share of the threads for all GPUs of a
// process: of unequal parts the smallest. A limit that it cannot read it passes over, and gives
// all.
void Plugin::Limit(const std::vector<Part>& parts,
                   v1beta1::ContainerAllocateResponse& answer) const {
  std::string memory;
  MilliGpu threads = kWholeGpu;
  for (const Part& part : parts) {
    // A limit of nothing would leave no room for a context.
    if (part.memory > Mebibytes()) {
      memory +=
          fmt::format("{}{}={}M", memory.empty() ? "" : ",", part.gpu.str(), part.memory.count());
    }
    if (part.compute > MilliGpu()) threads = std::min(threads, part.compute);
  }
  auto& variables = *answer.mutable_envs();
  variables[std::string(kMpsPipeVariable)] = options_.mps_pipe;
  variables[std::string(kMpsMemoryVariable)] = memory;
  variables[std::string(kMpsThreadsVariable)] =
      fmt::format("{}.{}", threads.count() / 10, threads.count() % 10);
  v1beta1::Mount& pipe = *answer.add_mounts();
  pipe.set_container_path(options_.mps_pipe);
  pipe.set_host_path(options_.mps_pipe);
  pipe.set_read_only(false);
}

grpc::Status Plugin::PreStartContainer(grpc::ServerContext*,
                                       const v1beta1::PreStartContainerRequest* request,
                                       v1beta1::PreStartContainerResponse*) {
  const std::vector<std::string> ids = Texts(request->devices_ids());
  absl::Status may = Patiently<absl::Status>(
      [&](Turns& turns, const Look& look) { return turns.MayStart(look, ids); });
  for (const std::string& id : ids) {
    const DeviceId device = ParseDeviceId(id);
    if (may.ok() && device.place) may = sources_.check(device);
  }
  return Told(may);
}

}  // namespace tranche::agent
