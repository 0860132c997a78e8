#include "scheduler/foresight/runtimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "quota/tree/charge.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

constexpr int64_t kAll = kCertain * kCertain;
// No run is taken to be longer.
constexpr Millis kLongestRun = std::chrono::hours(24 * 366);

// -ln(1 - i / 20) in thousandths: when ends come at a steady rate, so many mean times pass until
// that part has ended.
constexpr std::array<int64_t, 21> kSteadyEnds = {0,    51,   105,  163,  223,  288,  357,
                                                 431,  511,  598,  693,  799,  916,  1050,
                                                 1204, 1386, 1609, 1897, 2303, 2996, 4605};

// Between the rows of the table along a line.
int64_t SteadyEnds(int64_t millionths) {
  constexpr int64_t kRow = kCertain / 20;
  const int64_t row = std::clamp<int64_t>(millionths / kRow, 0, 19);
  const auto at = static_cast<std::size_t>(row);
  const int64_t rest = std::clamp<int64_t>(millionths - row * kRow, 0, kRow);
  return kSteadyEnds[at] + (kSteadyEnds[at + 1] - kSteadyEnds[at]) * rest / kRow;
}

bool IsMadeUp(std::string_view part) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  if (std::ranges::all_of(part, digit)) return true;
  // Kubernetes makes them of consonants and digits: five of a pod, up to ten of a ReplicaSet.
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  const bool long_enough = part.size() == 5 || (part.size() >= 8 && part.size() <= 10);
  return long_enough && part.find_first_not_of(kAlphabet) == std::string_view::npos;
}

}  // namespace

Millis SteadyEnd(Millis mean, int64_t millionths) {
  const Int128 after = Int128{mean.count()} * SteadyEnds(millionths) / 1000;
  const Int128 most = kLongestRun.count();
  return Millis(static_cast<int64_t>(after < most ? after : most));
}

std::string StemOf(std::string_view name) {
  for (;;) {
    const std::size_t dash = name.rfind('-');
    if (dash == std::string_view::npos || dash == 0 || !IsMadeUp(name.substr(dash + 1))) break;
    name = name.substr(0, dash);
  }
  return std::string(name);
}

RunKind RunKindOf(const PodName& pod, const std::string& workload_class, MilliGpu gpus) {
  int64_t size = 0;
  if (gpus >= kWholeGpu) {
    size = 1;
    while (size * 1000 < gpus.count()) size *= 2;
  }
  return {pod.ns, StemOf(pod.name), workload_class, size};
}

MilliGpu GpusOf(const PodRequest& request) {
  int64_t milli = 0;
  for (const Ask& ask : request.asks) {
    const bool part = ask.resource == Resource::kShare && ask.compute > MilliGpu();
    const int64_t each = part ? ask.compute.count() : ask.resource == Resource::kGpu ? 1000 : 500;
    milli += ask.count * each;
  }
  return MilliGpu::Of(milli);
}

MilliGpu GpusOf(const std::vector<MeterPart>& parts) {
  return MilliGpuRoundedUp(GpuEquivalents(TotalOf(parts)));
}

SurvivalCurve::SurvivalCurve(std::vector<Run> runs) {
  // What ends at a moment was at risk until then, and so was what is censored then.
  std::ranges::sort(runs, [](const Run& left, const Run& right) {
    return left.ran != right.ran ? left.ran < right.ran : left.ended > right.ended;
  });
  Int128 total = 0;
  int64_t left = kAll;
  auto at_risk = static_cast<int64_t>(runs.size());
  for (const Run& run : runs) {
    total += run.ran.count();
    if (run.ended) {
      ++ends_;
      left = static_cast<int64_t>(Int128{left} * (at_risk - 1) / at_risk);
      if (!steps_.empty() && steps_.back().at == run.ran) {
        steps_.back().left = left;
      } else {
        steps_.push_back({run.ran, left});
      }
    }
    --at_risk;
  }
  if (ends_ > 0) mean_ = Millis(std::max<int64_t>(1, static_cast<int64_t>(total / ends_)));
}

Millis SurvivalCurve::QuantileFrom(Millis age, int64_t millionths) const {
  const auto next = std::ranges::upper_bound(steps_, age, {}, &Step::at);
  const int64_t alive = next == steps_.begin() ? kAll : std::prev(next)->left;
  const int64_t wanted = static_cast<int64_t>(Int128{alive} * (kCertain - millionths) / kCertain);
  const auto found =
      std::find_if(next, steps_.end(), [wanted](const Step& step) { return step.left <= wanted; });
  if (alive > 0 && found != steps_.end()) return found->at;
  // Nothing that ended ran so long: of those that are left then, ends come steadily.
  const int64_t last = steps_.empty() ? 0 : steps_.back().left;
  const Millis from = steps_.empty() ? age : std::max(age, steps_.back().at);
  const int64_t reached = from > age ? last : alive;
  int64_t part = millionths;
  if (reached > 0 && alive > 0) {
    part = kCertain - static_cast<int64_t>(Int128{wanted} * kCertain / reached);
  }
  return from + SteadyEnd(mean_, std::max<int64_t>(part, 0));
}

std::vector<std::string> Runtimes::LevelsOf(const RunKind& kind) {
  std::vector<std::string> levels;
  const std::string rest = fmt::format("{}/{}", kind.workload_class, kind.size);
  if (!kind.stem.empty()) levels.push_back(fmt::format("1/{}/{}/{}", kind.ns, kind.stem, rest));
  levels.push_back(fmt::format("2/{}/{}", kind.ns, rest));
  levels.push_back("3/" + rest);
  levels.push_back("4/" + kind.workload_class);
  levels.emplace_back("5");
  return levels;
}

void Runtimes::Add(const RunKind& kind, SurvivalCurve::Run run) {
  if (run.ran < Millis(0)) return;
  run.ran = std::min(run.ran, kLongestRun);
  ++runs_;
  for (std::string& key : LevelsOf(kind)) {
    auto [at, fresh] = runs_of_.try_emplace(key);
    at->second.push_back(run);
    if (at->second.size() > kMostRuns) at->second.pop_front();
    if (!fresh) continue;
    kinds_.push_back(std::move(key));
    if (kinds_.size() <= kMostKinds) continue;
    runs_of_.erase(kinds_.front());
    kinds_.pop_front();
  }
}

void Runtimes::NoteBegun(const RunKind& kind, Instant at, std::optional<Instant> came) {
  RunKind unnamed = kind;
  unnamed.stem.clear();
  const std::string key = LevelsOf(unnamed).front();
  const auto found = begun_.find(key);
  if (found == begun_.end() && begun_.size() >= kMostKinds) return;
  std::deque<Begun>& begun = begun_[key];
  // A clock may be ahead of ours.
  if (came) came = std::min(*came, at);
  begun.push_back({at, came});
  while (begun.size() > kMostRuns || at - begun.front().at > kArrivalSpan) begun.pop_front();
}

std::optional<Millis> Runtimes::GapOf(const RunKind& kind, Instant now,
                                      const Present& present) const {
  RunKind unnamed = kind;
  unnamed.stem.clear();
  const auto found = begun_.find(LevelsOf(unnamed).front());
  if (found == begun_.end()) return std::nullopt;
  const Instant from = now - kArrivalSpan;
  int64_t came = present.waits;
  int64_t untold = 0;  // let in, and nobody knows when it came
  bool any = false;
  Instant first = std::min(present.oldest.value_or(now), now);
  for (const Begun& begun : found->second) {
    if (begun.at < from) continue;
    any = true;
    if (begun.came && *begun.came < from) continue;
    ++(begun.came ? came : untold);
    first = std::min(first, begun.came.value_or(begun.at));
  }
  if (!any) return std::nullopt;
  came += present.begun > 0 ? untold * present.fresh / present.begun : untold;
  if (came < kEnough) return std::nullopt;
  return std::max(Millis(1), (now - first) / came);
}

void Runtimes::Note(const MeterEvent& event) {
  switch (event.kind) {
    case MeterKind::kRunning:
      running_[event.uid] = event.at;
      return;
    case MeterKind::kVoid:
      running_.erase(event.uid);
      cut_short_.erase(event.uid);
      return;
    case MeterKind::kClose: {
      const auto began = running_.find(event.uid);
      const bool cut = cut_short_.erase(event.uid) > 0;
      if (began == running_.end()) return;
      const Millis ran = event.at - began->second;
      running_.erase(began);
      Add(RunKindOf(event.pod, event.workload_class, GpusOf(event.parts)), {ran, !cut});
      return;
    }
    case MeterKind::kOpen:
      // Later ones go on with what was let in: the clock was set, its node came back.
      if (event.interval > 0) return;
      NoteBegun(RunKindOf(event.pod, event.workload_class, GpusOf(event.parts)), event.at,
                event.came);
      return;
    case MeterKind::kRefund:
      return;
  }
}

void Runtimes::Learn(const MeterHistory& history) {
  for (const EndedUses& uses : history.ended) {
    if (uses.kind.sign < 0) continue;
    RunKind kind = RunKindOf({uses.kind.ns, ""}, uses.kind.workload_class, GpusOf(uses.kind.parts));
    for (const PastLife& life : uses.lives) {
      if (life.running == PastLife::kNeverRan) continue;
      Add(kind, {life.until - life.running, true});
    }
  }
  for (const OpenInterval& open : history.open) {
    if (open.running) running_[open.uid] = *open.running;
  }
  for (const MeterEvent& event : history.events) Note(event);
}

const std::deque<SurvivalCurve::Run>* Runtimes::RunsOf(const std::string& key) const {
  const auto found = runs_of_.find(key);
  return found == runs_of_.end() ? nullptr : &found->second;
}

void RunCurves::AddRunning(const RunKind& kind, Millis age) {
  for (const std::string& key : Runtimes::LevelsOf(kind)) {
    std::vector<SurvivalCurve::Run>& running = running_[key];
    if (running.size() < Runtimes::kMostRuns) running.push_back({age, false});
  }
}

const SurvivalCurve* RunCurves::CurveOf(const RunKind& kind) {
  const SurvivalCurve* widest = nullptr;
  for (const std::string& key : Runtimes::LevelsOf(kind)) {
    const std::deque<SurvivalCurve::Run>* runs = runtimes_.RunsOf(key);
    if (runs == nullptr) continue;
    auto at = curves_.find(key);
    if (at == curves_.end()) {
      std::vector<SurvivalCurve::Run> all(runs->begin(), runs->end());
      const auto& running = running_[key];
      all.insert(all.end(), running.begin(), running.end());
      at = curves_.emplace(key, SurvivalCurve(std::move(all))).first;
    }
    if (at->second.ends() >= Runtimes::kEnough) return &at->second;
    if (at->second.ends() > 0) widest = &at->second;
  }
  return widest;
}

}  // namespace tranche
