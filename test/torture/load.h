// Random but lawful work for a ledger, and a slow, plain book of what the ledger must then say.
//
// Deterministic: the same seed, start and open intervals give the same batches in any process.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/metering.h"

namespace tranche::torture {

// What goes to the ledger in one Append: there as a whole or not at all.
struct Batch {
  std::vector<MeterEvent> events;
  std::vector<WindowClosing> closings;
};
using Log = std::vector<Batch>;

// What tells an event from its repeats.
std::string KeyOf(const MeterEvent& event);

inline Instant Noon() {
  return Instant(std::chrono::sys_days(std::chrono::year(2026) / 11 / 1)) + std::chrono::hours(12);
}

class Load {
 public:
  // `life` makes the pods' names unique; `open`: what earlier lives left open, ascending.
  Load(uint64_t seed, int life, Instant start, const std::vector<OpenInterval>& open);
  Batch Next();
  Instant now() const { return now_; }
  void Pass(Millis time) { now_ += time; }

 private:
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  MeterEvent About(MeterKind kind, const OpenInterval& interval) const;
  void Add(Batch& batch, MeterEvent event);
  void AddOne(Batch& batch);
  void Start(Batch& batch);
  void End(Batch& batch, PodUid uid);
  void AddClosing(Batch& batch);

  std::mt19937_64 random_;
  int life_;
  Instant now_;
  uint64_t sequence_ = 0;
  uint64_t added_ = 0;  // events that repeat no other
  int pods_ = 0;
  std::map<PodUid, OpenInterval> open_;
  std::deque<MeterEvent> recent_;   // for repeats
  std::vector<MeterEvent> closed_;  // closes without a refund yet; `until` holds the start
};

// The oracle: applies batches one after the other and prints figures as text, one line each.
class Book {
 public:
  void Apply(const Batch& batch);
  // Every interval and part that lasted, every sum of the report that is not zero, every open
  // interval, event and closing, sorted.
  std::vector<std::string> Figures(Instant now) const;
  std::vector<OpenInterval> Open() const;  // ascending uid

 private:
  struct Interval {
    OpenInterval opened;
    std::optional<Instant> end;
    bool estimated = false;
    std::string devices;
    Millis refunded{0};
  };
  std::map<std::string, std::string> events_;  // by key, as lines
  std::map<std::pair<PodUid, int>, Interval> intervals_;
  std::map<std::pair<std::string, Instant>, WindowClosing> closings_;
};

// The lines of Book::Figures, one kind each; the checks print what a ledger says with them too.
std::string IntervalLine(const OpenInterval& interval, const MeterPart& part,
                         std::optional<Instant> end, bool estimated, const std::string& devices,
                         const GpuTime& time, const GpuTime& refunded);
std::string ReportLine(const std::string& leaf, const std::string& model, const GpuTime& time);
std::string OpenLine(const OpenInterval& interval);
std::string EventLine(const MeterEvent& event);
std::string ClosingLine(const WindowClosing& closing);

}  // namespace tranche::torture
