// Turns journal entries back into the events and open intervals they were made of.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/facts/metering.h"
#include "scheduler/ledger/journal.h"

namespace tranche::ledger {

// Feed entries in id order, from the first that happened at or after `from`; then Finish.
class HistoryBuilder {
 public:
  // Looks an earlier entry of an interval up: its open or running one; id 0 when there is none.
  using Lookup = std::function<absl::StatusOr<EntryRow>(int64_t interval, EntryKind kind)>;
  HistoryBuilder(Instant from, const AccountTable& accounts, Lookup lookup);

  absl::Status Add(const EntryRow& entry);
  // `open`: the intervals open now. Fills events and open of the history. Of several of one pod the
  // newest stays open; the others end where the next begins. Returns these ends, which the file
  // lacks.
  absl::StatusOr<std::vector<MeterEvent>> Finish(const std::vector<int64_t>& open,
                                                 MeterHistory& history);
  // So many entries will be added at most.
  void Expect(int64_t entries) { events_.reserve(static_cast<std::size_t>(entries)); }

 private:
  struct Known {
    MeterEvent open;
    std::optional<MeterEvent> running;
    bool given = false;  // both are among events_
  };
  absl::StatusOr<Known*> Find(int64_t interval);
  MeterEvent FromOpen(const EntryRow& entry) const;
  static MeterEvent Like(const MeterEvent& open, const EntryRow& entry, MeterKind kind);
  void Give(Known& known);
  std::vector<MeterEvent> EndAllButNewest(std::vector<OpenInterval>& open);

  int64_t from_;
  const AccountTable& accounts_;
  Lookup lookup_;
  std::unordered_map<int64_t, Known> known_;  // by interval; looked up, never walked
  EntryRow refund_;                           // the start entry whose end comes next
  std::vector<MeterEvent> events_;
};

}  // namespace tranche::ledger
