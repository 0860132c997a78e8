#include "scheduler/advice/use_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tranche {
namespace {

constexpr Millis kWholeHour = std::chrono::hours(1);

bool SameDevices(const WorkHistory& work, const PodSample& sample) {
  return std::ranges::equal(work.devices, sample.devices, {}, &DeviceHistory::device,
                            &DeviceSample::device);
}

}  // namespace

// What was measured of other devices is nothing of these.
void UseHistory::Begin(const PodSample& sample, Instant now, Record& record) {
  if (!SameDevices(record.work, sample)) {
    record.work = {};
    for (const DeviceSample& device : sample.devices) {
      record.work.devices.push_back({device.device, 0, std::nullopt});
    }
  }
  record.began = now;
  record.last = now;
  record.samples = 0;
  record.sums.assign(sample.devices.size(), 0);
}

bool UseHistory::Add(const PodSample& sample, Instant now, Record& record) {
  record.last = now;
  ++record.samples;
  const bool over = now - record.began >= kWholeHour;
  for (std::size_t i = 0; i < sample.devices.size(); ++i) {
    const DeviceSample& told = sample.devices[i];
    DeviceHistory& device = record.work.devices[i];
    if (told.memory) {
      device.most_memory = std::max(device.most_memory.value_or(*told.memory), *told.memory);
    }
    record.sums[i] += told.permille;
    // Rounded up: an hour in which it did a little is none without work.
    const int64_t mean = (record.sums[i] + record.samples - 1) / record.samples;
    if (over) device.busiest_hour = std::max(device.busiest_hour, static_cast<int>(mean));
  }
  if (!over) return false;
  ++record.work.hours;
  Begin(sample, now, record);
  return true;
}

void UseHistory::Restore(std::vector<PodWork> pods) {
  for (PodWork& pod : pods) records_[pod.uid].work = std::move(pod.work);
}

std::vector<PodUid> UseHistory::Note(std::span<const PodSample> pods, Instant now) {
  std::vector<PodUid> grown;
  std::map<PodUid, Record> left = std::exchange(records_, {});
  for (const PodSample& pod : pods) {
    const auto known = left.find(pod.uid);
    if (pod.devices.empty()) {
      // Silence: what is known stays, and the hour begins anew when it is told again.
      if (known != left.end()) records_.insert(left.extract(known));
      continue;
    }
    Record record;
    if (known != left.end()) record = std::move(known->second);
    const bool goes_on =
        SameDevices(record.work, pod) && now >= record.last && now - record.last <= kUseGoodFor;
    if (!goes_on) Begin(pod, now, record);
    if (Add(pod, now, record)) grown.push_back(pod.uid);
    records_.emplace(pod.uid, std::move(record));
  }
  return grown;
}

const WorkHistory* UseHistory::Find(const PodUid& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? nullptr : &found->second.work;
}

}  // namespace tranche
