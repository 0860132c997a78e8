#include "scheduler/agent/health_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "scheduler/probe/nvml.h"

namespace tranche::agent {
namespace {

constexpr std::chrono::milliseconds kWait{1'000};
// Rounds of kWait before a driver that could not be listened to is tried again.
constexpr int kRest = 10;

std::string WordsOf(const probe::GpuEvent& event) {
  if (!event.xid) return "its memory had an error that ECC could not correct";
  return fmt::format("the driver reported XID {}", *event.xid);
}

}  // namespace

// Graphics engine exception, page fault, channel stopped, channel cleaned up, video decoder
// exception, context switch timeout. Source: NVIDIA's documentation of XID errors, and of what its
// device plugin passes over.
bool IsOfAProgram(uint64_t xid) {
  constexpr std::array<uint64_t, 6> kOfPrograms = {13, 31, 43, 45, 68, 109};
  return std::ranges::find(kOfPrograms, xid) != kOfPrograms.end();
}

HealthWatch::HealthWatch(std::string nvml_library)
    : library_(std::move(nvml_library)), thread_([this] { Watch(); }) {}

HealthWatch::~HealthWatch() {
  ending_ = true;
  thread_.join();
}

std::map<GpuUuid, std::string> HealthWatch::problems() const {
  const absl::MutexLock lock(&mutex_);
  return problems_;
}

void HealthWatch::Watch() {
  while (!ending_) {
    ListenOnce();
    for (int round = 0; round < kRest && !ending_; ++round) std::this_thread::sleep_for(kWait);
  }
}

// Until the driver does not answer any more.
void HealthWatch::ListenOnce() {
  const auto nvml = probe::Nvml::Open(library_);
  if (!nvml.ok()) return;  // looks tell of that
  if (const absl::Status listens = (*nvml)->Listen(); !listens.ok()) {
    spdlog::warn("critical errors of GPUs are not heard of: {}", std::string(listens.message()));
    return;
  }
  while (!ending_) {
    const auto event = (*nvml)->NextEvent(kWait);
    if (!event.ok()) return;
    if (!*event || ((*event)->xid && IsOfAProgram(*(*event)->xid))) continue;
    const absl::MutexLock lock(&mutex_);
    problems_.emplace(GpuUuid((*event)->uuid), WordsOf(**event));
  }
}

}  // namespace tranche::agent
