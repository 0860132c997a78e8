#include "scheduler/controllers/use_reader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace tranche {
namespace {

// Pods told of while the engine is held.
constexpr std::size_t kChunk = 256;

// The busiest of what is known, and of how many devices it is known.
struct Rows {
  int permille = 0;
  std::size_t count = 0;
};

struct RowIndex {
  std::unordered_map<std::string, int> cards;  // whole ones, by UUID
  std::map<PodName, Rows> pods;
};

RowIndex IndexOf(std::span<const wire::UseRow> rows) {
  RowIndex index;
  std::set<std::tuple<PodName, std::string, std::string>> seen;
  for (const wire::UseRow& row : rows) {
    if (!row.uuid.empty() && row.instance.empty()) {
      int& card = index.cards[row.uuid.str()];
      card = std::max(card, row.permille);
    }
    if (row.pod.name.empty()) continue;
    Rows& of_pod = index.pods[row.pod];
    of_pod.permille = std::max(of_pod.permille, row.permille);
    // Without a UUID one row cannot be told from another, and counts once.
    of_pod.count += seen.emplace(row.pod, row.uuid.str(), row.instance).second ? 1 : 0;
  }
  return index;
}

std::size_t DevicesOf(const Allocation& allocation) {
  std::size_t devices = 0;
  for (const ContainerDevices& container : allocation.containers) {
    devices += container.devices.size();
  }
  return devices;
}

// By its cards; nullopt: not all of them are known and measured.
std::optional<int> ByCards(const Allocation& allocation, const RowIndex& index) {
  if (allocation.knowledge != Knowledge::kExact) return std::nullopt;
  int permille = 0;
  for (const ContainerDevices& container : allocation.containers) {
    for (const Device& device : container.devices) {
      const auto card = index.cards.find(device.uuid.str());
      if (device.mig || card == index.cards.end()) return std::nullopt;
      permille = std::max(permille, card->second);
    }
  }
  return permille;
}

std::optional<int> Measure(const PodView& pod, const RowIndex& index) {
  if (!pod.allocation || pod.devices_unknown) return std::nullopt;
  const std::size_t devices = DevicesOf(*pod.allocation);
  if (devices == 0) return std::nullopt;
  std::optional<int> measured = ByCards(*pod.allocation, index);
  const auto named = index.pods.find(pod.name);
  if (named == index.pods.end()) return measured;
  if (!measured && named->second.count < devices) return std::nullopt;
  return std::max(measured.value_or(0), named->second.permille);
}

bool Holds(const PodView& pod) { return pod.state == PodState::kBound; }

}  // namespace

std::vector<MeasuredPod> MeasurePods(std::span<const PodView> pods,
                                     std::span<const wire::UseRow> rows, int idle_permille) {
  const RowIndex index = IndexOf(rows);
  std::vector<MeasuredPod> measured;
  // Namespace and gang -> the busiest member; nullopt: one is not measured.
  std::map<std::pair<std::string, std::string>, std::optional<int>> gangs;
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    const std::optional<int> own = Measure(pod, index);
    measured.push_back({pod.uid, own});
    if (pod.gang.empty()) continue;
    const auto [gang, first] = gangs.try_emplace({pod.name.ns, pod.gang}, own);
    if (first || !gang->second) continue;
    gang->second = own ? std::optional(std::max(*gang->second, *own)) : std::nullopt;
  }
  auto next = measured.begin();
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    if (!pod.gang.empty()) next->permille = gangs.at({pod.name.ns, pod.gang});
    next->idle = next->permille && *next->permille <= idle_permille;
    ++next;
  }
  return measured;
}

void UseReader::Take(const absl::StatusOr<std::string>& answer) {
  // Before all pods are known some members of a gang are not.
  if (host_.cluster.readiness() != Readiness::kReady) return;
  if (!answer.ok()) return NoteFailure(std::string(answer.status().message()));
  const absl::StatusOr<wire::UseRows> rows = wire::DecodeUseRows(*answer);
  if (!rows.ok()) return NoteFailure(std::string(rows.status().message()));
  TakeRows(*rows);
}

void UseReader::TakeRows(const wire::UseRows& rows) {
  const std::vector<PodView> pods = host_.engine.Pods();
  const std::vector<MeasuredPod> measured = MeasurePods(pods, rows.rows, idle_permille_);
  metrics::UseRow row;
  std::map<std::pair<std::string, std::string>, std::size_t> idle;  // leaf, class -> devices
  auto next = measured.begin();
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    const MeasuredPod& use = *next++;
    ++(use.permille ? row.measured : row.unmeasured);
    if (use.idle) idle[{pod.leaf, pod.workload_class}] += DevicesOf(*pod.allocation);
  }
  for (const auto& [key, devices] : idle) {
    row.idle.push_back({key.first, key.second, static_cast<int64_t>(devices)});
  }
  std::span<const MeasuredPod> left = measured;
  Instant now;
  do {
    const auto some = left.first(std::min(kChunk, left.size()));
    left = left.subspan(some.size());
    host_.engine.With(EngineCaller::kEvents, [&some, &now](Engine& engine, Instant at) {
      engine.NoteUse(some, at);
      now = at;
    });
  } while (!left.empty());
  const absl::MutexLock lock(&mutex_);
  row.failures = row_.failures;
  row_ = std::move(row);
  read_at_ = now;
  if (std::exchange(failing_, false)) spdlog::info("use of GPUs: told again");
  if (rows.unreadable > 0) {
    spdlog::debug("use of GPUs: {} rows say nothing of a GPU or pod", rows.unreadable);
  }
}

void UseReader::NoteFailure(std::string_view why) {
  const absl::MutexLock lock(&mutex_);
  ++row_.failures;
  // Once, until it is told again: it is asked every minute.
  if (std::exchange(failing_, true)) return;
  spdlog::warn("use of GPUs: not told, and what was told is forgotten after {} minutes: {:.512}",
               std::chrono::duration_cast<std::chrono::minutes>(kUseGoodFor).count(), why);
}

metrics::UseRow UseReader::row(Instant now) const {
  const absl::MutexLock lock(&mutex_);
  metrics::UseRow row = row_;
  row.age_seconds = std::chrono::duration<double>(now - read_at_).count();
  if (now - read_at_ > kUseGoodFor) row.idle.clear();
  return row;
}

}  // namespace tranche
