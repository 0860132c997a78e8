#include "test/torture/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tranche::torture {
namespace {

constexpr const char* kModels[] = {"h100", "h200", "l4"};
constexpr const char* kLeaves[] = {"team-a", "team-b", "", "team-\xc3\xa9t\xc3\xa9"};
constexpr const char* kClasses[] = {"inference-prod", "training", "scavenger", ""};

int64_t Ms(Instant at) { return at.time_since_epoch().count(); }

std::string Text(Int128 amount) {
  // Below 2^127 / 10^18 in both halves for every amount a test makes.
  constexpr Int128 kHalf = 1'000'000'000'000'000'000;
  const std::string sign = amount < 0 ? "-" : "";
  const Int128 size = amount < 0 ? -amount : amount;
  return fmt::format("{}{}.{:018}", sign, static_cast<int64_t>(size / kHalf),
                     static_cast<int64_t>(size % kHalf));
}

std::string Text(const GpuTime& time) { return Text(time.compute) + "/" + Text(time.memory); }

std::string Text(const MeterPart& part) {
  return fmt::format("{}:{}/{}", part.model, part.charge.compute, part.charge.memory);
}

// Their order says nothing.
std::string Text(const std::vector<MeterPart>& parts) {
  std::vector<std::string> texts;
  for (const MeterPart& part : parts) texts.push_back(Text(part));
  std::sort(texts.begin(), texts.end());
  return fmt::format("{}", fmt::join(texts, "+"));
}

GpuTime TimeOf(const Charge& charge, Millis duration) {
  const Int128 factor = Int128{duration.count()} * kUnitWeight;
  return {charge.compute * factor, charge.memory * factor};
}

void Grow(GpuTime& sum, const GpuTime& more, int sign) {
  sum.compute += sign * more.compute;
  sum.memory += sign * more.memory;
}

}  // namespace

std::string KeyOf(const MeterEvent& event) {
  return fmt::format("{} {} {} {}", event.uid.str(), event.interval, static_cast<int>(event.kind),
                     event.kind == MeterKind::kRefund ? Ms(event.at) : 0);
}

// ---- Load

Load::Load(uint64_t seed, int life, Instant start, const std::vector<OpenInterval>& open)
    : random_(seed), life_(life), now_(start) {
  for (const OpenInterval& interval : open) open_[interval.uid] = interval;
}

Batch Load::Next() {
  Batch batch;
  now_ += Millis(Below(300));
  const uint64_t count = 1 + Below(3);
  const uint64_t added_before = added_;
  for (uint64_t i = 0; i < count; ++i) AddOne(batch);
  // Never beside repeats alone: by these nobody could tell whether the batch was written.
  if (Below(10) == 0 && added_ > added_before) AddClosing(batch);
  return batch;
}

MeterEvent Load::About(MeterKind kind, const OpenInterval& interval) const {
  MeterEvent event;
  event.kind = kind;
  event.at = now_;
  event.uid = interval.uid;
  event.interval = interval.interval;
  event.pod = interval.pod;
  event.node = interval.node;
  event.leaf = interval.leaf;
  event.workload_class = interval.workload_class;
  if (kind != MeterKind::kRunning) event.parts = interval.parts;
  return event;
}

void Load::Add(Batch& batch, MeterEvent event) {
  event.sequence = ++sequence_;
  ++added_;
  recent_.push_back(event);
  if (recent_.size() > 40) recent_.pop_front();
  batch.events.push_back(std::move(event));
}

void Load::AddOne(Batch& batch) {
  const uint64_t dice = Below(100);
  if (dice < 5 && !recent_.empty()) {
    MeterEvent repeat = recent_[Below(recent_.size())];
    repeat.sequence = ++sequence_;
    batch.events.push_back(std::move(repeat));
    return;
  }
  if (dice < 12 && !closed_.empty()) {
    const auto place = closed_.begin() + static_cast<std::ptrdiff_t>(Below(closed_.size()));
    MeterEvent refund = *place;
    closed_.erase(place);
    refund.kind = MeterKind::kRefund;
    // The second half of the interval; `until` holds its start, `at` its end.
    const Instant start = refund.until;
    refund.until = refund.at;
    refund.at = start + (refund.until - start) / 2;
    refund.estimated = false;
    refund.devices.clear();
    refund.note = "NodeLost";
    if (refund.at < refund.until) Add(batch, std::move(refund));
    return;
  }
  if (dice < 50 || open_.empty()) return Start(batch);
  const auto place = std::next(open_.begin(), static_cast<std::ptrdiff_t>(Below(open_.size())));
  OpenInterval& interval = place->second;
  if (dice < 70 && !interval.running.has_value()) {
    interval.running = now_;
    return Add(batch, About(MeterKind::kRunning, interval));
  }
  if (dice < 76 && !interval.running.has_value()) {
    MeterEvent gone = About(MeterKind::kVoid, interval);
    open_.erase(place);
    return Add(batch, std::move(gone));
  }
  End(batch, place->first);
}

void Load::Start(Batch& batch) {
  OpenInterval interval;
  const std::string number = fmt::format("{}-{}", life_, ++pods_);
  interval.uid = PodUid("uid-" + number);
  interval.pod = {"ns-" + std::to_string(Below(3)), "pod-" + number};
  interval.node = NodeName("node-" + std::to_string(Below(5)));
  interval.leaf = kLeaves[Below(std::size(kLeaves))];
  interval.workload_class = kClasses[Below(std::size(kClasses))];
  interval.since = now_;
  const std::size_t parts = 1 + Below(2);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto compute = static_cast<int64_t>(Below(8) * kQuantaPerGpu / 7);
    const auto memory = static_cast<int64_t>((1 + Below(8)) * kQuantaPerGpu / 8);
    interval.parts.push_back({kModels[i + Below(2)], {compute, memory}});
  }
  if (parts == 2 && interval.parts[0].model == interval.parts[1].model) interval.parts.pop_back();
  MeterEvent open = About(MeterKind::kOpen, interval);
  open.devices = fmt::format(R"([{{"name":"main","devices":[{{"index":{}}}]}}])", Below(8));
  open.estimated = Below(20) == 0;
  open_[interval.uid] = std::move(interval);
  Add(batch, std::move(open));
}

// Closes; now and then because the clock stepped, which opens the next interval at once.
void Load::End(Batch& batch, PodUid uid) {
  OpenInterval interval = open_.at(uid);
  open_.erase(uid);
  const bool step = Below(5) == 0;
  MeterEvent close = About(MeterKind::kClose, interval);
  close.estimated = Below(10) == 0;
  if (step) close.note = "ClockStep";
  closed_.push_back(close);
  closed_.back().until = interval.since;
  if (closed_.size() > 40) closed_.erase(closed_.begin());
  Add(batch, std::move(close));
  if (!step) return;
  ++interval.interval;
  interval.since = now_;
  interval.running.reset();
  MeterEvent open = About(MeterKind::kOpen, interval);
  open.note = "ClockStep";
  open_[uid] = std::move(interval);
  Add(batch, std::move(open));
}

void Load::AddClosing(Batch& batch) {
  WindowClosing closing;
  closing.budget_uid = "budget-" + std::to_string(Below(3));
  const Instant day = std::chrono::floor<std::chrono::days>(now_);
  closing.span = {day - std::chrono::days(1 + Below(3)), day};
  closing.span.end = closing.span.start + std::chrono::days(1);
  closing.base = kGpuHour * static_cast<int64_t>(Below(100'000));
  closing.used = kGpuHour * static_cast<int64_t>(Below(100'000)) + static_cast<int64_t>(Below(999));
  closing.carried_in = kGpuHour * static_cast<int64_t>(Below(100));
  closing.debt_out = static_cast<int64_t>(Below(7));
  for (uint64_t i = Below(3); i > 0; --i) closing.carried_out.push_back(kGpuHour * int64_t{7} + i);
  batch.closings.push_back(std::move(closing));
}

// ---- Book

void Book::Apply(const Batch& batch) {
  for (const MeterEvent& event : batch.events) {
    const std::string key = KeyOf(event);
    if (events_.contains(key)) continue;
    Interval& interval = intervals_[{event.uid, event.interval}];
    MeterEvent told = event;
    // What never came true ended when it began.
    if (event.kind == MeterKind::kVoid) told.at = interval.opened.since;
    events_[key] = EventLine(told);
    switch (event.kind) {
      case MeterKind::kOpen:
        interval.opened = {event.uid,   event.interval, event.pod,
                           event.node,  event.leaf,     event.workload_class,
                           event.parts, event.at,       std::nullopt};
        interval.devices = event.devices;
        interval.estimated = event.estimated;
        break;
      case MeterKind::kRunning:
        interval.opened.running = event.at;
        break;
      case MeterKind::kClose:
        interval.end = event.at;
        interval.estimated = interval.estimated || event.estimated;
        break;
      case MeterKind::kVoid:
        interval.end = interval.opened.since;
        break;
      case MeterKind::kRefund:
        interval.refunded += event.until - event.at;
        break;
    }
  }
  for (const WindowClosing& closing : batch.closings) {
    closings_[{closing.budget_uid, closing.span.start}] = closing;
  }
}

std::vector<std::string> Book::Figures(Instant now) const {
  std::vector<std::string> lines;
  std::map<std::pair<std::string, std::string>, GpuTime> sums;
  for (const auto& [key, interval] : intervals_) {
    const OpenInterval& opened = interval.opened;
    const Millis held = interval.end.value_or(now) - opened.since;
    if (!interval.end.has_value()) lines.push_back(OpenLine(opened));
    if (held <= Millis(0)) continue;
    for (const MeterPart& part : opened.parts) {
      const GpuTime time = TimeOf(part.charge, held);
      const GpuTime refunded = TimeOf(part.charge, interval.refunded);
      lines.push_back(IntervalLine(opened, part, interval.end, interval.estimated, interval.devices,
                                   time, refunded));
      GpuTime& sum = sums[{opened.leaf, part.model}];
      Grow(sum, time, 1);
      Grow(sum, refunded, -1);
    }
  }
  for (const auto& [key, sum] : sums) {
    if (sum != GpuTime{}) lines.push_back(ReportLine(key.first, key.second, sum));
  }
  for (const auto& [key, line] : events_) lines.push_back(line);
  for (const auto& [key, closing] : closings_) lines.push_back(ClosingLine(closing));
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<OpenInterval> Book::Open() const {
  std::vector<OpenInterval> open;
  for (const auto& [key, interval] : intervals_) {
    if (!interval.end.has_value()) open.push_back(interval.opened);
  }
  return open;
}

// ---- lines

std::string IntervalLine(const OpenInterval& interval, const MeterPart& part,
                         std::optional<Instant> end, bool estimated, const std::string& devices,
                         const GpuTime& time, const GpuTime& refunded) {
  return fmt::format("interval {} {} {} {} {} {} {} from {} to {}{} {} time {} refunded {}",
                     interval.uid.str(), interval.interval, interval.pod.str(), interval.node.str(),
                     interval.leaf, interval.workload_class, Text(part), Ms(interval.since),
                     end.has_value() ? Ms(*end) : -1, estimated ? " estimated" : "", devices,
                     Text(time), Text(refunded));
}

std::string ReportLine(const std::string& leaf, const std::string& model, const GpuTime& time) {
  return fmt::format("report {} {} {}", leaf, model, Text(time));
}

std::string OpenLine(const OpenInterval& interval) {
  return fmt::format("open {} {} {} {} {} {} {} since {} running {}", interval.uid.str(),
                     interval.interval, interval.pod.str(), interval.node.str(), interval.leaf,
                     interval.workload_class, Text(interval.parts), Ms(interval.since),
                     interval.running.has_value() ? Ms(*interval.running) : -1);
}

std::string EventLine(const MeterEvent& event) {
  return fmt::format("event {} {} {} {} {} {} at {} until {}{} {}", KeyOf(event), event.pod.str(),
                     event.node.str(), event.leaf, event.workload_class, Text(event.parts),
                     Ms(event.at), Ms(event.until), event.estimated ? " estimated" : "",
                     event.note);
}

std::string ClosingLine(const WindowClosing& closing) {
  std::string carried;
  for (const Int128 amount : closing.carried_out) carried += " " + Text(amount);
  return fmt::format("closing {} {} {} base {} carried in {} debt in {} used {} debt out {} out{}",
                     closing.budget_uid, Ms(closing.span.start), Ms(closing.span.end),
                     Text(closing.base), Text(closing.carried_in), Text(closing.debt_in),
                     Text(closing.used), Text(closing.debt_out), carried);
}

}  // namespace tranche::torture
