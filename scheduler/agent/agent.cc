#include "scheduler/agent/agent.h"

#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "scheduler/agent/kubelet.h"
#include "scheduler/agent/pods.h"
#include "scheduler/agent/register.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

constexpr const char* kSocketName = "tranche-node.sock";
constexpr std::chrono::milliseconds kApiTimeout{2'000};
constexpr std::chrono::milliseconds kKubeletTimeout{2'000};
constexpr std::chrono::milliseconds kPause{200};
// A kubelet that takes this long to open its stream does not want it, or lost it.
constexpr std::chrono::seconds kDeafFor{30};
constexpr std::chrono::seconds kShutdown{2};
constexpr int kMostThreads = 8;
constexpr int64_t kNanos = 1'000'000'000;

PluginOptions OptionsOf(const Config& config, int looks) {
  PluginOptions options;
  options.give_by = config.give_by;
  options.cdi_kind = config.cdi_kind;
  options.looks = looks;
  options.pause = [] { std::this_thread::sleep_for(kPause); };
  return options;
}

Sources SourcesOf(const Config& config, kube::Credentials credentials) {
  Sources sources;
  sources.pods = [config, credentials = std::move(credentials)] {
    return ReadPods(credentials, config.node, config.resource, kApiTimeout);
  };
  sources.kubelet = [config] {
    return ListKubeletPods(config.pod_resources, config.resource, kKubeletTimeout);
  };
  return sources;
}

}  // namespace

Agent::Agent(Config config, kube::Credentials credentials, int looks)
    : config_(std::move(config)),
      credentials_(std::move(credentials)),
      kubelet_socket_(config_.plugin_folder + "/kubelet.sock"),
      own_socket_(config_.plugin_folder + "/" + kSocketName),
      plugin_(OptionsOf(config_, looks), SourcesOf(config_, credentials_)) {}

Agent::~Agent() { EndServing(); }

std::optional<Agent::SocketFile> Agent::SocketAt(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return SocketFile{found.st_dev, found.st_ino,
                    found.st_ctim.tv_sec * kNanos + found.st_ctim.tv_nsec};
}

void Agent::EndServing() {
  if (!server_) return;
  plugin_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  server_->Wait();
  server_.reset();
  plugin_.Resume();
}

absl::Status Agent::Serve() {
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

bool Agent::IsDeaf(Time now) {
  if (connected()) heard_ = now;
  return now - heard_ >= kDeafFor;
}

absl::Status Agent::LookAndTell(Time now) {
  if (looked_at_ && now - *looked_at_ < config_.look_period) return absl::OkStatus();
  looked_at_ = now;
  cards_.Update(LookAtCards(config_.nvml));
  plugin_.SetCards(cards_.cards());
  const std::string text = RenderRegister(cards_.cards());
  if (text == written_) return absl::OkStatus();
  TRANCHE_RETURN_IF_ERROR(WriteRegister(credentials_, config_.node, text, kApiTimeout));
  written_ = text;
  return absl::OkStatus();
}

absl::Status Agent::Step(Time now) {
  const absl::Status told = LookAndTell(now);
  const absl::Status registered = Register(now);
  return told.ok() ? registered : told;
}

absl::Status Agent::Register(Time now) {
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
  if (deaf)
    spdlog::warn("the kubelet does not listen: does another plugin serve {}?", config_.resource);
  if (registered_with_ != kubelet) plugin_.Forget();
  registered_with_.reset();
  TRANCHE_RETURN_IF_ERROR(Serve());
  TRANCHE_RETURN_IF_ERROR(
      RegisterPlugin(kubelet_socket_, kSocketName, config_.resource, kKubeletTimeout));
  registered_with_ = kubelet;
  heard_ = now;
  spdlog::info("registered {} with the kubelet: {} GPUs", config_.resource, cards_.cards().size());
  return absl::OkStatus();
}

}  // namespace tranche::agent
