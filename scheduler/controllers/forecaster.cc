#include "scheduler/controllers/forecaster.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tranche {
namespace {

// A fleet in which nobody waits need not be copied, nor is it for pods that kube-scheduler is about
// to ask about: most of them start at once.
bool AnybodyWaits(Engine& engine, Instant now) {
  WaitingWalk first;
  engine.WaitingSlice(first);
  const bool one_is_late = first.first_came && now - *first.first_came > Forecaster::kAskedBy;
  return !first.done() || !first.refused.empty() || one_is_late;
}

}  // namespace

void RunNotes::Watch(const Effects& effects) {
  if (effects.metering.empty() && effects.reclaims.evictions.empty()) return;
  const absl::MutexLock lock(&mutex_);
  for (const MeterEvent& event : effects.metering) {
    MeterEvent& noted = notes_.emplace_back().event;
    noted.kind = event.kind;
    noted.at = event.at;
    noted.uid = event.uid;
    noted.interval = event.interval;
    noted.pod = event.pod;
    noted.workload_class = event.workload_class;
    noted.parts = event.parts;
    noted.came = event.came;
  }
  for (const EvictionOrder& order : effects.reclaims.evictions) {
    Note& note = notes_.emplace_back();
    note.event.uid = order.uid;
    note.evicted = true;
  }
  if (notes_.size() <= kMostNoted) return;
  notes_.erase(notes_.begin(), notes_.begin() + kMostNoted / 2);
}

const Runtimes& RunNotes::CatchUp() {
  std::vector<Note> notes;
  {
    const absl::MutexLock lock(&mutex_);
    notes.swap(notes_);
  }
  for (const Note& note : notes) {
    if (note.evicted) {
      runtimes_.NoteEvicted(note.event.uid);
    } else {
      if (note.event.kind == MeterKind::kOpen) record_.NoteStart(note.event.uid, note.event.at);
      runtimes_.Note(note.event);
    }
  }
  return runtimes_;
}

std::shared_ptr<const Forecasts> Forecaster::Latest() const {
  const absl::MutexLock lock(&mutex_);
  return latest_;
}

bool Forecaster::IsOutdated(uint64_t version, Instant now) {
  const std::shared_ptr<const Forecasts> latest = Latest();
  if (latest == nullptr || took_ < kQuick) return true;
  if (std::chrono::steady_clock::now() - made_ < took_ * kRest) return false;
  return version != latest->version || now - latest->at > kOldest;
}

std::shared_ptr<const Forecasts> Forecaster::Fresh() {
  const absl::MutexLock lock(&making_);
  const auto began = std::chrono::steady_clock::now();
  auto made = std::make_shared<Forecasts>();
  const bool anybody_waits =
      host_.With(EngineCaller::kForesight, [&made](Engine& engine, Instant at) {
        made->at = at;
        made->version = engine.Version();
        return AnybodyWaits(engine, at);
      });
  if (anybody_waits) {
    if (!IsOutdated(made->version, made->at)) return Latest();
    ForecastRules rules;
    rules.may_go_on = [this] { return !stopping_; };
    const ClusterCopy copy = host_.Copy();
    // After the copy: whoever no longer waits in it is known to have started.
    *made = Foretell(copy, runs_.CatchUp(), rules);
  } else {
    runs_.CatchUp();
  }
  if (!stopping_) runs_.record().Move(*made);
  made_ = std::chrono::steady_clock::now();
  took_ = made_ - began;
  const absl::MutexLock keep(&mutex_);
  latest_ = std::move(made);
  return latest_;
}

metrics::ForecastSpansRow Forecaster::Spans() const {
  const std::shared_ptr<const Forecasts> latest = Latest();
  if (latest == nullptr) return {};
  return {latest->judged.before, latest->judged.within, latest->judged.after};
}

std::vector<metrics::ExpectedStartRow> Forecaster::Rows(Instant now) const {
  const std::shared_ptr<const Forecasts> latest = Latest();
  if (latest == nullptr) return {};
  std::map<std::pair<std::string, std::string>, std::vector<Instant>> starts;
  for (const auto& [name, forecast] : latest->pods) {
    if (!forecast.p50) continue;
    starts[{forecast.leaf, forecast.workload_class}].push_back(*forecast.p50);
  }
  std::vector<metrics::ExpectedStartRow> rows;
  for (auto& [key, times] : starts) {
    std::ranges::sort(times);
    const Instant median = std::max(times[(times.size() - 1) / 2], now);
    rows.push_back({key.first, key.second, std::chrono::duration<double>(median - now).count()});
  }
  return rows;
}

}  // namespace tranche
