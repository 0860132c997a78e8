// Looks after a leader's ledger: says what is wrong with it, makes copies, and tries again to take
// up one that could not be.
//
// Thread rule: Begin and End from one thread, the rest from any. What takes long is done on a
// thread of its own, so that neither verbs nor scrapes wait for a disk.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/ledger/worker.h"
#include "scheduler/server/config.h"

namespace tranche {

struct LedgerCareHooks {
  // The ledger is not to be trusted: what quota or a budget would count waits, or does no more.
  std::function<void(bool closed)> close;
  // Whether the file can be taken up by now; what it opened is closed again.
  std::function<absl::Status()> try_again;
  // It can. Metering cannot begin in the middle: only a new start takes the file and the pods
  // together. Null: nobody would start the process again.
  std::function<void(const std::string& why)> restart = nullptr;
  ledger::Workers workers = nullptr;  // null: a thread
};

class LedgerCare {
 public:
  // `book` null: it could not be taken up, and `why` says for what reason.
  LedgerCare(const ServeConfig& config, ledger::SqliteLedger* book, const std::string& why,
             LedgerCareHooks hooks);
  ~LedgerCare();
  LedgerCare(const LedgerCare&) = delete;
  LedgerCare& operator=(const LedgerCare&) = delete;

  void Begin();
  void End();
  // Logs what has changed for better or worse, and closes or opens what quota counts.
  void Tick();

  // What is wrong now.
  LedgerProblems problems() const;
  // "" or one fixed line for whoever asks whether the server is ready.
  std::string Note() const;
  // Seconds since the newest copy was made, or since the start where there is none; nullopt: there
  // is no ledger to copy.
  std::optional<int64_t> copy_age() const;

 private:
  // What is due now; how long until the next.
  std::optional<std::chrono::milliseconds> Step();
  // Both return when to come again.
  std::chrono::milliseconds TryAgain();
  std::chrono::milliseconds CopyWhenDue();
  void Set(LedgerFault fault, const std::string& text);

  const ServeConfig& config_;
  ledger::SqliteLedger* const book_;
  const LedgerCareHooks hooks_;
  const Instant began_;              // by the machine's clock
  std::chrono::milliseconds pause_;  // the thread's own, as what follows
  bool begun_work_ = false;

  mutable std::mutex mutex_;
  bool stop_ = false;
  LedgerProblems own_;                    // beside those of the ledger's health
  LedgerProblems told_;                   // as logged
  std::unique_ptr<ledger::Worker> work_;  // null before Begin
};

}  // namespace tranche
