#include "scheduler/advice/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

constexpr std::chrono::hours kHour{1};

Instant HourOf(Instant time) { return std::chrono::floor<std::chrono::hours>(time); }

// Of each card, in thousandths of it.
int64_t MilliOf(const Ask& ask) {
  if (ask.resource == Resource::kGpu) return kWholeGpu.count();
  if (ask.resource != Resource::kShare) return 0;
  if (ask.exclusive || ask.memory.kind == MemoryNeed::Kind::kWholeCard) return kWholeGpu.count();
  int64_t memory = 0;
  if (ask.memory.kind == MemoryNeed::Kind::kMilliOfCard) memory = ask.memory.value;
  if (ask.memory.kind == MemoryNeed::Kind::kPercentOfCard) memory = ask.memory.value * 10;
  return std::max(ask.compute.count(), memory);
}

DemandKind KindOf(const Ask& ask) {
  DemandKind kind;
  kind.devices = 0;
  kind.milli = MilliOf(ask);
  if (ask.resource == Resource::kMig) kind.mig_profile = ask.mig.profile;
  if (ask.resource == Resource::kShare && ask.memory.kind == MemoryNeed::Kind::kMib) {
    kind.mib = ask.memory.value;
  }
  return kind;
}

// The most devices of this kind (its count aside) that the pod holds at a time.
int64_t DevicesOf(const PodRequest& request, const DemandKind& kind) {
  int64_t lasting = 0;   // app containers and sidecars
  int64_t sidecars = 0;  // of these, the ones that have begun
  int64_t starting = 0;  // an init container and the sidecars before it
  for (std::size_t container = 0; container < request.containers.size(); ++container) {
    int64_t count = 0;
    for (const Ask& ask : request.asks) {
      if (ask.container == static_cast<int>(container) && KindOf(ask) == kind) count += ask.count;
    }
    const ContainerRole role = request.containers[container].role;
    if (role == ContainerRole::kInit) {
      starting = std::max(starting, sidecars + count);
      continue;
    }
    lasting += count;
    if (role == ContainerRole::kSidecar) sidecars += count;
  }
  return std::max(lasting, starting);
}

}  // namespace

std::vector<DemandKind> KindsOf(const PodRequest& request, const std::string& workload_class) {
  std::vector<DemandKind> kinds;
  // The containers of a pod ask for much the same, however many there are.
  for (const Ask& ask : request.asks) {
    DemandKind kind = KindOf(ask);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
  }
  for (DemandKind& kind : kinds) {
    kind.devices = DevicesOf(request, kind);
    kind.workload_class = workload_class;
    kind.models = fmt::format("{}", fmt::join(request.models_any, ","));
  }
  std::ranges::sort(kinds);
  return kinds;
}

DemandLog::Hour& DemandLog::Record::Newest() {
  const int64_t hour = HourOf(last).time_since_epoch() / kHour;
  return ring[static_cast<std::size_t>((hour % kHours + kHours) % kHours)];
}

// A peak is only what lasted: a pod that goes in the moment another comes was never beside it.
void DemandLog::Record::AdvanceTo(Instant now) {
  if (now - last >= kHour * kHours) {
    // Nothing of before is left; the time between was all alike.
    ring.fill({pods, pods * Millis(kHour).count(), 0});
    last = HourOf(now);
    Newest() = Hour{};
  }
  while (last < now) {
    const Instant border = HourOf(last) + kHour;
    const Instant until = std::min(now, border);
    Newest().peak = std::max(Newest().peak, pods);
    Newest().pod_ms += pods * (until - last).count();
    last = until;
    if (until == border) Newest() = Hour{};
  }
}

DemandLog::Record* DemandLog::Find(const DemandKind& kind, Instant now) {
  const auto found = records_.find(kind);
  if (found == records_.end()) return nullptr;
  found->second.AdvanceTo(now);
  return &found->second;
}

DemandLog::Record* DemandLog::FindOrAdd(const DemandKind& kind, Instant now) {
  if (Record* known = Find(kind, now)) return known;
  if (records_.size() == kMostKinds) {
    // The one nobody has wanted for the longest time makes room.
    auto oldest = records_.end();
    for (auto at = records_.begin(); at != records_.end(); ++at) {
      if (at->second.pods > 0) continue;
      if (oldest == records_.end() || at->second.last < oldest->second.last) oldest = at;
    }
    if (oldest == records_.end()) return nullptr;
    records_.erase(oldest);
  }
  Record& record = records_[kind];
  record.last = now;
  return &record;
}

DemandLog::Record* DemandLog::Begin(const DemandKind& kind, Instant now) {
  if (since_ == Instant()) since_ = now;
  Record* record = FindOrAdd(kind, now);
  if (record == nullptr) return nullptr;
  ++record->pods;
  ++record->waiting;
  return record;
}

void DemandLog::WasThere(const DemandKind& kind, Instant now) { Begin(kind, now); }

void DemandLog::Began(const DemandKind& kind, Instant now) {
  Record* const record = Begin(kind, now);
  if (record != nullptr) ++record->Newest().arrivals;
}

void DemandLog::Placed(const DemandKind& kind, Instant now) {
  Record* record = Find(kind, now);
  if (record != nullptr) record->waiting = std::max<int64_t>(record->waiting - 1, 0);
}

void DemandLog::Ended(const DemandKind& kind, bool was_placed, Instant now) {
  Record* record = Find(kind, now);
  if (record == nullptr) return;
  record->pods = std::max<int64_t>(record->pods - 1, 0);
  if (!was_placed) record->waiting = std::max<int64_t>(record->waiting - 1, 0);
  record->waiting = std::min(record->waiting, record->pods);
}

std::vector<DemandRow> DemandLog::Rows(Instant now) const {
  const Instant oldest = HourOf(now) - kHour * (kHours - 1);
  const int64_t span = (now - std::max(since_, oldest)).count();
  std::vector<DemandRow> rows;
  for (const auto& [kind, known] : records_) {
    Record record = known;
    record.AdvanceTo(now);
    DemandRow row{kind, record.pods, record.waiting, record.pods, 0, 0};
    int64_t pod_ms = 0;
    for (const Hour& hour : record.ring) {
      row.peak = std::max(row.peak, hour.peak);
      row.arrivals += hour.arrivals;
      pod_ms += hour.pod_ms;
    }
    // A thousand times a week of pods stays within 63 bits up to ten million pods.
    row.mean_milli = span > 0 ? pod_ms * 1000 / span : record.pods * 1000;
    if (row.peak > 0 || row.arrivals > 0) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tranche
