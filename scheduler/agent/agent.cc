#include "scheduler/agent/agent.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "scheduler/agent/kubelet.h"
#include "scheduler/agent/nvml_driver.h"
#include "scheduler/agent/pods.h"
#include "scheduler/agent/register.h"
#include "topology/base/status.h"
#include "topology/mig.h"

namespace tranche::agent {
namespace {

constexpr const char* kSocketName = "tranche-node";
constexpr std::chrono::milliseconds kApiTimeout{2'000};
constexpr std::chrono::milliseconds kKubeletTimeout{2'000};
constexpr std::chrono::milliseconds kPause{200};

std::string PipeOf(const Config& config) { return config.mps_folder + "/pipe"; }

PluginOptions OptionsOf(const Config& config, int looks, const std::string& profile) {
  PluginOptions options;
  options.give_by = config.give_by;
  options.cdi_kind = config.cdi_kind;
  options.profile = profile;
  options.mps_pipe = PipeOf(config);
  options.looks = looks;
  options.pause = [] { std::this_thread::sleep_for(kPause); };
  return options;
}

Sources SourcesOf(const Config& config, const kube::Credentials& credentials,
                  const std::string& resource, MigWorker* worker) {
  Sources sources;
  sources.pods = [config, credentials, resource] {
    return ReadPods(credentials, config.node, resource, kApiTimeout);
  };
  sources.kubelet = [config, resource] {
    return ListKubeletPods(config.pod_resources, resource, config.resource, kKubeletTimeout);
  };
  if (worker == nullptr) return sources;
  sources.provide = [worker](const Grant& grant, const DeviceId& id) {
    return worker->Provide(grant, id);
  };
  sources.check = [worker](const DeviceId& id) { return worker->Check(id); };
  return sources;
}

// By which instances are cleared. The kubelet first, as Plugin has it.
absl::StatusOr<Look> LookForClearing(const Config& config, const kube::Credentials& credentials) {
  Look look;
  TRANCHE_ASSIGN_OR_RETURN(look.kubelet, ListKubeletPods(config.pod_resources, config.resource,
                                                         config.resource, kKubeletTimeout));
  TRANCHE_ASSIGN_OR_RETURN(look.pods,
                           ReadPods(credentials, config.node, config.resource, kApiTimeout));
  return look;
}

}  // namespace

Agent::Agent(Config config, kube::Credentials credentials, int looks)
    : config_(std::move(config)), credentials_(std::move(credentials)), looks_(looks) {
  if (config_.make_mig) {
    worker_ = std::make_unique<MigWorker>(
        std::make_unique<NvmlDriver>(config_.nvml),
        MigWorker::Options{config_.make_patience, [config = config_, credentials = credentials_] {
                             return LookForClearing(config, credentials);
                           }});
  }
  if (config_.slots > 0) {
    mps_ = std::make_unique<MpsDaemon>(
        MpsDaemon::Options{config_.mps_control, PipeOf(config_), config_.log_level == "debug"});
  }
  if (config_.watch_health) health_ = std::make_unique<HealthWatch>(config_.nvml);
  AddEndpoint(config_.resource, fmt::format("{}.sock", kSocketName), "");
}

void Agent::AddEndpoint(const std::string& resource, const std::string& socket,
                        const std::string& profile) {
  if (endpoints_.contains(resource)) return;
  endpoints_[resource] = std::make_unique<Endpoint>(
      resource, config_.plugin_folder, socket, OptionsOf(config_, looks_, profile),
      SourcesOf(config_, credentials_, resource, worker_.get()));
}

// A profile that was there once stays a resource, if one without devices.
void Agent::AddEndpoints() {
  for (const Card& card : cards_.cards()) {
    for (const MigOffer& offer : card.offers) {
      AddEndpoint(FormatMigResource({offer.profile, false}),
                  fmt::format("{}-mig-{}.sock", kSocketName, offer.profile), offer.profile);
    }
  }
}

// While MPS cannot hold containers to their parts.
void Agent::CloseShared() {
  if (mps_->problem().empty()) return;
  std::map<GpuUuid, std::string> problems;
  for (const Card& card : cards_.cards()) {
    if (card.slots > 0) problems.emplace(card.uuid, mps_->problem());
  }
  cards_.Close(problems);
}

absl::Status Agent::LookAndTell(Time now) {
  if (mps_) {
    const std::string before = mps_->problem();
    mps_->Step(now);
    if (mps_->problem() != before) looked_at_.reset();  // what it closed is open again
  }
  const bool due = !looked_at_ || now - *looked_at_ >= config_.look_period;
  if (due) {
    looked_at_ = now;
    cards_.Update(LookAtCards(config_.nvml, {config_.make_mig, config_.slots, config_.mps_only}));
    if (worker_) worker_->Clear(cards_.cards());
    AddEndpoints();
  }
  if (health_) cards_.Close(health_->problems());
  if (mps_) CloseShared();
  if (worker_) cards_.SetClosed(worker_->closed());
  for (const auto& [resource, endpoint] : endpoints_) endpoint->plugin().SetCards(cards_.cards());
  const std::string text = RenderRegister(cards_.cards());
  const bool news = std::exchange(seen_, text) != text;
  if (text == written_ || !(due || news)) return absl::OkStatus();
  TRANCHE_RETURN_IF_ERROR(WriteRegister(credentials_, config_.node, text, kApiTimeout));
  written_ = text;
  return absl::OkStatus();
}

absl::Status Agent::Step(Time now) {
  absl::Status first = LookAndTell(now);
  for (const auto& [resource, endpoint] : endpoints_) {
    const absl::Status status = endpoint->Step(now);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace tranche::agent
