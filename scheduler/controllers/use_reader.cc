#include "scheduler/controllers/use_reader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

namespace tranche {
namespace {

// Pods told of while the engine is held.
constexpr std::size_t kChunk = 256;

// Of one device. nullopt: not told.
struct Told {
  std::optional<int64_t> busiest;
  std::optional<int64_t> mean;
  std::optional<int64_t> memory;

  // Of several rows the larger amount.
  void Take(const wire::UseRow& row) {
    std::optional<int64_t>* const amount = AmountOf(row.measure);
    if (amount != nullptr) *amount = std::max(amount->value_or(row.amount), row.amount);
  }

 private:
  // nullptr: it is no use of the device.
  std::optional<int64_t>* AmountOf(wire::UseMeasure measure) {
    switch (measure) {
      case wire::UseMeasure::kBusiest:
        return &busiest;
      case wire::UseMeasure::kMean:
        return &mean;
      case wire::UseMeasure::kMemory:
        return &memory;
      case wire::UseMeasure::kOwn:
      case wire::UseMeasure::kCelsius:
      case wire::UseMeasure::kWatts:
        break;
    }
    return nullptr;
  }
};

// By UUID and instance. Without a UUID one row cannot be told from another, and counts once.
using Devices = std::map<std::pair<std::string, std::string>, Told>;

struct RowIndex {
  std::unordered_map<std::string, Told> cards;  // whole ones, by UUID
  std::map<PodName, Devices> pods;
  // What pods do on whole cards themselves, by UUID.
  std::map<PodName, std::map<std::string, int64_t>> own;
};

RowIndex IndexOf(std::span<const wire::UseRow> rows) {
  RowIndex index;
  for (const wire::UseRow& row : rows) {
    if (row.measure == wire::UseMeasure::kOwn) {
      if (row.uuid.empty() || row.pod.name.empty() || !row.instance.empty()) continue;
      int64_t& amount = index.own[row.pod][row.uuid.str()];
      amount = std::max(amount, row.amount);
      continue;
    }
    if (!row.uuid.empty() && row.instance.empty()) index.cards[row.uuid.str()].Take(row);
    if (row.pod.name.empty()) continue;
    index.pods[row.pod][{row.uuid.str(), row.instance}].Take(row);
  }
  const auto unmeasured = [](const auto& entry) { return !entry.second.busiest; };
  std::erase_if(index.cards, unmeasured);
  for (auto& [pod, devices] : index.pods) std::erase_if(devices, unmeasured);
  return index;
}

std::size_t DevicesOf(const Allocation& allocation) {
  std::size_t devices = 0;
  for (const ContainerDevices& container : allocation.containers) {
    devices += container.devices.size();
  }
  return devices;
}

// By its cards; empty: not all of them are known and measured.
Devices ByCards(const Allocation& allocation, const RowIndex& index) {
  if (allocation.knowledge != Knowledge::kExact) return {};
  Devices devices;
  for (const ContainerDevices& container : allocation.containers) {
    for (const Device& device : container.devices) {
      const auto card = index.cards.find(device.uuid.str());
      if (device.mig || card == index.cards.end()) return {};
      devices.try_emplace({device.uuid.str(), ""}, card->second);
    }
  }
  return devices;
}

bool Holds(const PodView& pod) { return pod.state == PodState::kBound; }

struct OwnUse {
  std::optional<int> permille;  // the busiest; nullopt: not all of it is measured
  Devices devices;
};

// UUIDs of cards that more than one of the pods hold.
using SharedCards = std::set<std::string>;

SharedCards SharedOf(std::span<const PodView> pods) {
  std::map<std::string, const PodView*> first;
  SharedCards shared;
  for (const PodView& pod : pods) {
    if (!Holds(pod) || !pod.allocation) continue;
    for (const ContainerDevices& container : pod.allocation->containers) {
      for (const Device& device : container.devices) {
        if (device.uuid.empty()) continue;
        const auto [holder, is_first] = first.try_emplace(device.uuid.str(), &pod);
        if (!is_first && holder->second != &pod) shared.insert(device.uuid.str());
      }
    }
  }
  return shared;
}

OwnUse Measure(const PodView& pod, const RowIndex& index, const SharedCards& shared) {
  if (!pod.allocation || pod.devices_unknown) return {};
  const std::size_t held = DevicesOf(*pod.allocation);
  if (held == 0) return {};
  OwnUse own{std::nullopt, ByCards(*pod.allocation, index)};
  int64_t busiest = 0;
  const auto own_rows = index.own.find(pod.name);
  // The pod's own use, where others use the card too; the card's where nobody tells it.
  const auto take = [&](const Devices& devices) {
    for (const auto& [device, told] : devices) {
      int64_t amount = *told.busiest;
      if (own_rows != index.own.end() && device.second.empty()) {
        const auto row = own_rows->second.find(device.first);
        if (row != own_rows->second.end()) {
          amount = shared.contains(device.first) ? row->second : std::max(amount, row->second);
        }
      }
      busiest = std::max(busiest, amount);
    }
  };
  const auto named = index.pods.find(pod.name);
  if (named != index.pods.end()) {
    if (own.devices.empty() && named->second.size() >= held) own.devices = named->second;
    take(named->second);
  }
  if (own.devices.empty()) return own;
  take(own.devices);
  own.permille = static_cast<int>(busiest);
  return own;
}

PodSample SampleOf(const PodUid& uid, const Devices& devices) {
  PodSample sample{uid, {}};
  for (const auto& [key, told] : devices) {
    DeviceSample device;
    device.device = key.second.empty() ? key.first : key.first + "/" + key.second;
    device.permille = static_cast<int>(told.mean.value_or(*told.busiest));
    if (told.memory) device.memory = Mebibytes::Of(*told.memory);
    sample.devices.push_back(std::move(device));
  }
  return sample;
}

}  // namespace

Measurement MeasurePods(std::span<const PodView> pods, std::span<const wire::UseRow> rows,
                        int idle_permille) {
  const RowIndex index = IndexOf(rows);
  const SharedCards shared = SharedOf(pods);
  Measurement measured;
  // Namespace and gang -> the busiest member; nullopt: one is not measured.
  std::map<std::pair<std::string, std::string>, std::optional<int>> gangs;
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    const OwnUse use = Measure(pod, index, shared);
    const std::optional<int>& own = use.permille;
    measured.pods.push_back({pod.uid, own});
    measured.samples.push_back(SampleOf(pod.uid, use.devices));
    if (pod.gang.empty()) continue;
    const auto [gang, first] = gangs.try_emplace({pod.name.ns, pod.gang}, own);
    if (first || !gang->second) continue;
    gang->second = own ? std::optional(std::max(*gang->second, *own)) : std::nullopt;
  }
  auto next = measured.pods.begin();
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
  const Measurement measured = MeasurePods(pods, rows.rows, idle_permille_);
  metrics::UseRow row;
  std::map<std::pair<std::string, std::string>, std::size_t> idle;  // leaf, class -> devices
  auto next = measured.pods.begin();
  for (const PodView& pod : pods) {
    if (!Holds(pod)) continue;
    const MeasuredPod& use = *next++;
    ++(use.permille ? row.measured : row.unmeasured);
    if (use.idle) idle[{pod.leaf, pod.workload_class}] += DevicesOf(*pod.allocation);
  }
  for (const auto& [key, devices] : idle) {
    row.idle.push_back({key.first, key.second, static_cast<int64_t>(devices)});
  }
  std::span<const MeasuredPod> left = measured.pods;
  Instant now;
  do {
    const auto some = left.first(std::min(kChunk, left.size()));
    left = left.subspan(some.size());
    host_.engine.With(EngineCaller::kEvents, [&some, &now](Engine& engine, Instant at) {
      engine.NoteUse(some, at);
      now = at;
    });
  } while (!left.empty());
  auto readings = std::make_shared<const CardReadings>(ReadingsOf(rows.rows, now));
  const absl::MutexLock lock(&mutex_);
  readings_ = std::move(readings);
  row.failures = row_.failures;
  row_ = std::move(row);
  TellLedger(pods, history_.Note(measured.samples, now), now);
  read_at_ = now;
  if (std::exchange(failing_, false)) spdlog::info("use of GPUs: told again");
  if (rows.unreadable > 0) {
    spdlog::debug("use of GPUs: {} rows say nothing of a GPU or pod", rows.unreadable);
  }
}

// `pods` are as they were before this measurement: a span ends with the one before it.
void UseReader::TellLedger(std::span<const PodView> pods, const std::vector<PodUid>& grown,
                           Instant now) {
  if (ledger_ == nullptr) return;
  std::vector<IdleSpan> idle;
  for (const PodView& pod : pods) {
    if (!pod.use || !pod.use->idle_since) continue;
    idle.push_back({pod.uid, *pod.use->idle_since, pod.use->measured});
  }
  PastNews news;
  news.at = now;
  const auto hand_over = [&] {
    ledger_->NotePast(std::exchange(news, PastNews()));
    news.at = now;
  };
  for (IdleSpan& span : idle_.Note(idle)) {
    news.idle.push_back(std::move(span));
    if (news.idle.size() == kMostTold) hand_over();
  }
  for (const PodUid& uid : grown) {
    news.work.push_back({uid, *history_.Find(uid)});
    if (news.idle.size() + news.work.size() >= kMostTold) hand_over();
  }
  if (!news.empty()) hand_over();
}

void UseReader::NoteFailure(std::string_view why) {
  const absl::MutexLock lock(&mutex_);
  ++row_.failures;
  // Once, until it is told again: it is asked every minute.
  if (std::exchange(failing_, true)) return;
  spdlog::warn("use of GPUs: not told, and what was told is forgotten after {} minutes: {:.512}",
               std::chrono::duration_cast<std::chrono::minutes>(kUseGoodFor).count(), why);
}

UseHistory UseReader::history() const {
  const absl::MutexLock lock(&mutex_);
  return history_;
}

metrics::UseRow UseReader::row(Instant now) const {
  const absl::MutexLock lock(&mutex_);
  metrics::UseRow row = row_;
  row.age_seconds = std::chrono::duration<double>(now - read_at_).count();
  if (now - read_at_ > kUseGoodFor) row.idle.clear();
  return row;
}

}  // namespace tranche
