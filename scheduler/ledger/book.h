// The writer's side of the tables: takes events, adds entries and keeps what is derived from them.
//
// The caller surrounds Apply, Record, Beat and Flush with one transaction and, when that fails,
// throws the Book away and loads a new one: its memory is then ahead of the file. Balances and
// rollups are summed up in memory and written once per transaction, by Flush.
//
// Thread rule: one thread. Cost: an event two to five inserts; Flush one write per account and day
// that changed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/facts/fleet.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

// Can this event be written at all? What cannot is refused before it is queued: one line of the
// journal that the tables reject would stop every later one. Empty: it can.
std::string Malformed(const MeterEvent& event);
std::string Malformed(const WindowClosing& closing);
std::string Malformed(const RestoredUse& use);
std::string Malformed(const FleetFact& fact);

class Book {
 public:
  // `database` must outlive the book and be at the current version.
  static absl::StatusOr<Book> Load(Database& database, int64_t epoch);
  // Labels of pods that are kept from now on, by which bills tell them apart.
  void KeepLabels(std::vector<std::string> keys) { kept_labels_ = std::move(keys); }

  // Adds the event's entries; an event that is there already, or that closes what is not open, adds
  // none. `written`: the newest time known.
  absl::Status Apply(const MeterEvent& event, int64_t written);
  absl::Status Record(const WindowClosing& closing, int64_t written);
  // Of a leaf what the file lacks, as of all that was applied before; of a budget the whole, unless
  // the same checkpoint or a later one of the same ledger is there.
  absl::Status Restore(RestoredUse use, int64_t written);
  // Enters what is not as the newest entry about the same key says.
  absl::Status Note(const FleetNews& news, int64_t written);
  absl::Status Beat(int64_t now, const std::vector<DecayRow>& decay);
  // Writes balances and rollups; from time to time, or when told to, also a mark that everything up
  // to here has been summed, so that a start checks only what comes later.
  enum class Mark { kWhenDue, kNow };
  absl::Status Flush(Mark mark);

  int64_t last_entry() const { return last_entry_; }
  const std::string& head() const { return head_; }
  const Charge& held() const { return held_; }  // by all open intervals
  int64_t late() const { return late_; }        // entries marked so in this life
  // Entries taken over from checkpoints.
  int64_t restored() const { return restored_; }
  int64_t ignored() const { return ignored_; }  // events that added nothing

 private:
  struct OpenRecord {
    int64_t interval = 0;
    int64_t since = 0;
    bool running = false;
    std::vector<Posting> postings;
  };
  struct Sum {
    int64_t compute = 0;
    int64_t memory = 0;
    bool changed = false;
  };
  struct Rollup {
    int64_t compute = 0;
    int64_t memory = 0;
    Int128 compute_moment = 0;  // sum of delta x (at - day)
    Int128 memory_moment = 0;
    bool changed = false;
  };
  using FleetKey = std::pair<FleetKind, std::string>;
  using IntervalKey = std::pair<std::string, int64_t>;  // uid, number
  using RollupKey = std::pair<int64_t, int64_t>;        // day, account

  explicit Book(Database& database, int64_t epoch) : database_(&database), epoch_(epoch) {}
  absl::Status PrepareAll();
  absl::Status LoadSums();
  absl::Status LoadOpen();

  absl::Status Open(const MeterEvent& event, int64_t written);
  absl::Status Run(const MeterEvent& event, int64_t written);
  absl::Status End(const MeterEvent& event, int64_t written);
  // Ends what is still open of the pod, whose end got lost: at the moment `event` opens the next,
  // marked as estimated. The moment from which the pod may be open again.
  absl::StatusOr<int64_t> EndOlder(const MeterEvent& event, int64_t written);
  absl::Status Refund(const MeterEvent& event, int64_t written);
  // What the file does not have of a leaf's use; and whether a budget's was entered.
  absl::StatusOr<GpuTime> Lacking(const RestoredUse& use);
  absl::StatusOr<bool> IsRestored(const RestoredUse& use);
  absl::Status LoadFleet();
  absl::Status Enter(const FleetFact& fact, int64_t at, int64_t written);
  // Sets id and hash, writes the entry and its postings, adds to the sums.
  absl::Status Add(EntryRow& entry);
  absl::Status AddToSums(const Posting& posting, int64_t at);
  absl::StatusOr<int64_t> AccountId(const Account& account);
  // `parts` moved from the second account to the first, ascending account.
  absl::StatusOr<std::vector<Posting>> Move(const std::vector<MeterPart>& parts, const char* to,
                                            const char* from, const std::string& leaf,
                                            const std::string& workload_class);
  absl::Status WriteRollups();
  EntryRow Blank(const MeterEvent& event, EntryKind kind, int64_t at, int64_t written) const;

  Database* database_;
  int64_t epoch_;
  std::vector<std::string> kept_labels_;
  int64_t last_entry_ = 0;
  int64_t last_interval_ = 0;
  int64_t checked_ = 0;
  std::string head_;
  int64_t late_ = 0;
  int64_t ignored_ = 0;
  int64_t restored_ = 0;
  Charge held_;
  HashChain chain_;
  AccountTable accounts_;
  std::map<Account, int64_t> account_ids_;
  std::map<int64_t, Sum> sums_;  // by account
  std::vector<std::pair<const int64_t, Sum>*> changed_sums_;
  std::map<IntervalKey, OpenRecord> open_;
  // The newest text of each key that is not gone; nullopt: not read yet.
  std::optional<std::map<FleetKey, std::string>> fleet_;
  std::map<RollupKey, Rollup> rollups_;  // those in use
  std::vector<std::pair<const RollupKey, Rollup>*> changed_rollups_;

  Statement insert_interval_;
  Statement insert_entry_;
  Statement insert_posting_;
  Statement insert_open_;
  Statement set_running_;
  Statement delete_open_;
  Statement insert_account_;
  Statement find_interval_;
  Statement find_refund_;
  Statement insert_closing_;
  Statement insert_restored_;
  Statement find_restored_;
  Statement newest_closing_;
  Statement write_balance_;
  Statement read_rollup_;
  Statement write_rollup_;
  Statement write_meta_;
  Statement delete_decay_;
  Statement insert_decay_;
};

}  // namespace tranche::ledger
