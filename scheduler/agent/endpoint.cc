#include "scheduler/agent/endpoint.h"

#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "scheduler/agent/kubelet.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

constexpr std::chrono::milliseconds kRegisterTimeout{2'000};
// A kubelet that takes this long to open its stream does not want it, or lost it.
constexpr std::chrono::seconds kDeafFor{30};
constexpr std::chrono::seconds kShutdown{2};
constexpr int kMostThreads = 8;
constexpr int64_t kNanos = 1'000'000'000;

}  // namespace

Endpoint::Endpoint(std::string resource, std::string folder, std::string socket,
                   PluginOptions options, Sources sources)
    : resource_(std::move(resource)),
      kubelet_socket_(folder + "/kubelet.sock"),
      name_(std::move(socket)),
      own_socket_(folder + "/" + name_),
      plugin_(std::move(options), std::move(sources)) {}

Endpoint::~Endpoint() { EndServing(); }

std::optional<Endpoint::SocketFile> Endpoint::SocketAt(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return SocketFile{found.st_dev, found.st_ino,
                    found.st_ctim.tv_sec * kNanos + found.st_ctim.tv_nsec};
}

void Endpoint::EndServing() {
  if (!server_) return;
  plugin_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_->Wait();
  server_.reset();
  plugin_.Resume();
}

absl::Status Endpoint::Serve() {
  EndServing();
  unlink(own_socket_.c_str());
  grpc::ResourceQuota quota("plugin");
  quota.SetMaxThreads(kMostThreads);
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.AddListeningPort("unix:" + own_socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin_);
  server_ = builder.BuildAndStart();
  serving_on_ = SocketAt(own_socket_);
  if (!server_ || !serving_on_) {
    return absl::UnavailableError(
        fmt::format("expected to listen on {}, found that it cannot be", own_socket_));
  }
  return absl::OkStatus();
}

bool Endpoint::IsDeaf(Time now) {
  if (connected()) heard_ = now;
  return now - heard_ >= kDeafFor;
}

absl::Status Endpoint::Step(Time now) {
  const auto kubelet = SocketAt(kubelet_socket_);
  if (!kubelet) {
    registered_with_.reset();
    return absl::UnavailableError(
        fmt::format("expected the kubelet's socket {}, found none", kubelet_socket_));
  }
  // A kubelet that starts removes the sockets of all plugins.
  const bool served = server_ && serving_on_ == SocketAt(own_socket_);
  const bool deaf = registered_with_ && IsDeaf(now);
  if (served && registered_with_ == kubelet && !deaf) return absl::OkStatus();
  if (deaf) spdlog::warn("the kubelet does not listen: does another plugin serve {}?", resource_);
  if (registered_with_ != kubelet) plugin_.Forget();
  registered_with_.reset();
  TRANCHE_RETURN_IF_ERROR(Serve());
  TRANCHE_RETURN_IF_ERROR(RegisterPlugin(kubelet_socket_, name_, resource_, kRegisterTimeout));
  registered_with_ = kubelet;
  heard_ = now;
  spdlog::info("registered {} with the kubelet", resource_);
  return absl::OkStatus();
}

}  // namespace tranche::agent
