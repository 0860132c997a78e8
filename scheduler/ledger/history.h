// Turns journal entries back into the events and open intervals they were made of.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
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

// How what has ended is handed over: as events of the history, or apart from it and piece by piece.
enum class PastForm : uint8_t { kEvents, kPieces };

// Lives that ended, and refunds, packed: a tenth of what their events take, and given as such piece
// by piece, so that a start with a million of them does not hold two forms of all of it.
class EndedLives {
 public:
  EndedLives() = default;
  EndedLives(EndedLives&&) = default;
  EndedLives& operator=(EndedLives&&) = default;
  // `end`: a close, a void or a refund. Returns its place, which stands until the first Take.
  std::size_t Add(const MeterEvent& end, Instant since, std::optional<Instant> running);
  void SetRunning(std::size_t place, Instant at) { lives_[place].running = at; }
  // The next so many, as events; those of one life follow each other, without the names of pod and
  // node. Empty: there are no more.
  std::vector<MeterEvent> Take(std::size_t lives);

 private:
  // What many have in common.
  struct Use {
    std::string ns;
    std::string leaf;
    std::string workload_class;
    std::vector<MeterPart> parts;
  };
  struct Life {
    PodUid uid;
    Instant since;
    Instant until;
    std::optional<Instant> running;
    const Use* use = nullptr;
    int interval = 0;
    MeterKind kind = MeterKind::kClose;
  };
  const Use* Shared(const MeterEvent& event);

  std::map<std::string, Use> uses_;  // by all they hold, as text
  std::deque<Life> lives_;
};

// Feed entries in id order, from the first that happened at or after `from`; then Finish.
class HistoryBuilder {
 public:
  // Looks an earlier entry of an interval up: its open or running one; id 0 when there is none.
  using Lookup = std::function<absl::StatusOr<EntryRow>(int64_t interval, EntryKind kind)>;
  // `ended`: where what ended goes instead of the events; null: it is among them.
  HistoryBuilder(Instant from, const AccountTable& accounts, Lookup lookup,
                 EndedLives* ended = nullptr);

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
    bool given = false;                // both are among events_
    std::vector<std::size_t> refunds;  // packed, before anybody said that it ran
  };
  absl::StatusOr<Known*> Find(int64_t interval);
  MeterEvent FromOpen(const EntryRow& entry) const;
  static MeterEvent Like(const MeterEvent& open, const EntryRow& entry, MeterKind kind);
  void Give(Known& known);
  void GiveEnd(Known& known, const MeterEvent& end);
  void GiveRefund(Known& known, MeterEvent refund);
  std::vector<MeterEvent> EndAllButNewest(std::vector<OpenInterval>& open);

  int64_t from_;
  const AccountTable& accounts_;
  Lookup lookup_;
  EndedLives* ended_;
  std::unordered_map<int64_t, Known> known_;  // by interval; looked up, never walked
  EntryRow refund_;                           // the start entry whose end comes next
  std::vector<MeterEvent> events_;
};

}  // namespace tranche::ledger
