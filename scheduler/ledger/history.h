// Turns journal entries back into the events and open intervals they were made of.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/facts/metering.h"
#include "scheduler/ledger/journal.h"

namespace tranche::ledger {

// How what has ended is handed over: as events of the history, or in short beside them.
enum class PastForm : uint8_t { kEvents, kShort };

// Looks an earlier entry of an interval up: its open or running one; id 0 when there is none.
using EntryLookup = std::function<absl::StatusOr<EntryRow>(int64_t interval, EntryKind kind)>;

// What has ended, in short. Feed entries as to a HistoryBuilder, or a stretch of them; of a refund
// both halves. Then Finish.
//
// Nothing of a pod but its times and its kind is kept while entries are read, nor after that: a
// start may meet a million of them.
class EndedReader {
 public:
  EndedReader(Instant from, const AccountTable& accounts, EntryLookup lookup);
  absl::Status Add(const EntryRow& entry);
  // Fills `ended` and `ended_numbers`.
  absl::Status Finish(MeterHistory& history);

 private:
  struct Place {
    std::size_t kind = 0;
    std::size_t life = 0;
  };
  // An interval that is open where the reading is.
  struct Open {
    std::size_t kind = 0;
    EndedNumber number;
    PastLife life;
  };
  absl::StatusOr<Open*> Find(int64_t interval);
  Open FromOpen(const EntryRow& entry);
  // The one kind with all that the open entry says.
  std::size_t KindOf(const EntryRow& open);
  std::size_t PlaceOf(PastKind kind);
  void AddRefund(int64_t interval, const Open& open, const EntryRow& end);

  int64_t from_;
  const AccountTable& accounts_;
  EntryLookup lookup_;
  std::vector<EndedUses> kinds_;
  std::map<PastKind, std::size_t, PastUses::InOrder> places_;
  std::unordered_map<std::string, std::size_t> known_;  // by what open entries say, packed
  std::string key_;                                     // reused
  std::unordered_map<int64_t, Open> open_;              // by interval
  // Given back before anybody said that it ran, by interval.
  std::unordered_multimap<int64_t, Place> early_refunds_;
  std::vector<EndedNumber> numbers_;
  EntryRow refund_;  // the first half of one
};

// Feed entries in id order, from the first that happened at or after `from`; then Finish.
class HistoryBuilder {
 public:
  HistoryBuilder(Instant from, const AccountTable& accounts, EntryLookup lookup);

  absl::Status Add(const EntryRow& entry);
  // `open`: the intervals open now. Fills events and open of the history. Of several of one pod the
  // newest stays open; the others end where the next begins. Returns these ends, which the file
  // lacks.
  absl::StatusOr<std::vector<MeterEvent>> Finish(const std::vector<int64_t>& open,
                                                 MeterHistory& history);

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
  EntryLookup lookup_;
  std::unordered_map<int64_t, Known> known_;  // by interval; looked up, never walked
  EntryRow refund_;                           // the start entry whose end comes next
  std::vector<MeterEvent> events_;
};

}  // namespace tranche::ledger
