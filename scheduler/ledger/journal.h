// One entry of the journal as a value, the bytes its hash covers, and a reader of entries in order.
//
// Amounts are quanta, times Unix milliseconds. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "quota/budget/budget.h"
#include "scheduler/facts/metering.h"
#include "scheduler/ledger/sqlite/sqlite.h"

struct evp_md_ctx_st;
struct evp_md_st;

namespace tranche::ledger {

// As stored in entry.kind.
enum class EntryKind : int64_t {
  kOpen = 1,
  kRunning = 2,
  kClose = 3,
  kVoid = 4,
  kRefundStart = 5,  // a refund over [at, until) is two entries, of successive ids
  kRefundEnd = 6,
  kWindow = 7,     // a budget window ended; no postings, a row in window_closing
  kRestored = 8,   // taken over from a checkpoint; no postings, a row in restored
  kFleet = 9,      // what a node offers from then on, in the note; no postings
  kPrice = 10,     // a price in force from then on, likewise
  kStranded = 11,  // how many free GPUs of one kind are stranded from then on, likewise
};
inline constexpr int64_t kEstimatedFlag = 1;
inline constexpr int64_t kLateFlag = 2;
// The note of an end that was never told, at the moment the pod was opened again.
inline constexpr const char* kEndLost = "EndLost";
// Later than this after it happened, an entry is marked late.
inline constexpr Millis kLateAfter{60'000};

// Which accounts a delta moves between: an amount and its negative, so that every entry sums to 0.
inline constexpr const char* kHeld = "held";          // by leaf, model, class
inline constexpr const char* kPool = "pool";          // by model
inline constexpr const char* kRefunded = "refunded";  // by leaf, model, class
inline constexpr const char* kReturned = "returned";  // by model

struct Account {
  std::string kind;
  std::string leaf;
  std::string model;
  std::string workload_class;
  friend auto operator<=>(const Account&, const Account&) = default;
};
// Only what people hold and get back is reported; the other two accounts mirror it.
inline bool IsReported(const Account& account) {
  return account.kind == kHeld || account.kind == kRefunded;
}

struct Posting {
  int64_t account = 0;
  int64_t compute = 0;
  int64_t memory = 0;
  friend bool operator==(const Posting&, const Posting&) = default;
};

// A time one pod was metered; a row of its own because several entries refer to it.
struct IntervalRow {
  int64_t id = 0;
  std::string uid;
  int64_t number = 0;
  PodName pod;
  std::string node;
  std::string leaf;
  std::string workload_class;
  std::string devices;
  std::string workload = {};  // bill/workload_text.h; "": nothing is known
};

struct EntryRow {
  int64_t id = 0;
  int64_t interval = 0;  // 0: none
  EntryKind kind = EntryKind::kOpen;
  int64_t at = 0;
  int64_t written = 0;
  int64_t epoch = 0;
  int64_t flags = 0;
  std::string note;
  std::string hash;               // 32 bytes
  std::vector<Posting> postings;  // ascending account
  IntervalRow opened;             // of kOpen
  WindowClosing closing;          // of kWindow
  RestoredUse restored;           // of kRestored
};

std::string FormatAmounts(const WindowClosing& closing);
// False when `text` was not made by FormatAmounts.
bool ParseAmounts(std::string_view text, WindowClosing& closing);

// Columns of `restored`.
inline constexpr const char* kOfBudget = "budget";
inline constexpr const char* kOfLeaf = "leaf";
inline const char* NameOf(RestoredUse::Of of) {
  return of == RestoredUse::Of::kBudget ? kOfBudget : kOfLeaf;
}
TimeSpan SpanOf(const RestoredUse& use);
GpuTime TimeOf(const RestoredUse& use);
// Columns of a budget that the others do not hold; "" of a leaf.
std::string FormatDetail(const RestoredUse& use);
bool ParseDetail(std::string_view text, RestoredUse& use);

using AccountTable = std::map<int64_t, Account>;
absl::StatusOr<AccountTable> ReadAccounts(Database& database);

// The chain: hash(n) = SHA-256(hash(n - 1), content of n), where content is every field of the
// entry and the rows that belong to it, accounts by name, each text with its length before it.
class HashChain {
 public:
  HashChain();
  ~HashChain();
  HashChain(HashChain&&) noexcept;
  HashChain& operator=(HashChain&&) noexcept;

  // `accounts` must hold the accounts of all postings.
  std::string Next(std::string_view previous, const EntryRow& entry, const AccountTable& accounts);

 private:
  std::string content_;
  evp_md_st* algorithm_;
  evp_md_ctx_st* context_;
};
// What stands before the first entry.
inline const std::string kNoHash(32, '\0');
std::string Hex(std::string_view bytes);

// A check value for rows that no hash covers; a single changed field never keeps it. Against decay
// of the medium, not against forgery.
class Seal {
 public:
  Seal& Add(int64_t value);
  Seal& Add(std::string_view text);
  int64_t value() const { return static_cast<int64_t>(state_); }

 private:
  uint64_t state_ = 0;
};

// Sealed numbers in the table meta.
// Errors: DataLoss when the seal is broken. nullopt: no such key.
absl::StatusOr<std::optional<int64_t>> ReadMeta(Database& database, std::string_view key);
absl::Status WriteMeta(Database& database, std::string_view key, int64_t value);
// The same by a statement that was prepared before, of kWriteMeta.
inline constexpr const char* kWriteMeta =
    "INSERT OR REPLACE INTO meta(key, value, seal) VALUES (?, ?, ?)";
absl::Status WriteMeta(Statement& write, std::string_view key, int64_t value);
inline constexpr std::string_view kCleanKey = "clean";          // 1: closed in order
inline constexpr std::string_view kHeartbeatKey = "heartbeat";  // newest, Unix ms
// The two halves of the ledger's id.
inline constexpr std::string_view kIdHighKey = "id_high";
inline constexpr std::string_view kIdLowKey = "id_low";
inline constexpr std::string_view kCheckedKey = "checked";  // checked_balance is as of this entry

// The ledger's id as 32 hex digits; "" in a file that was never written to by this version.
absl::StatusOr<std::string> ReadId(Database& database);
// Assigns a random identity if the file has none, or has gone another way than the one it had.
enum class IdOf : uint8_t { kFile, kFork };
absl::Status MakeId(Database& database, IdOf of);

// Files of version 1, which only a writer takes further, have no table `restored`.
absl::StatusOr<bool> HasRestored(Database& database);
// Files of versions 1 and 2 tell nothing of the fleet.
absl::StatusOr<bool> HasFleet(Database& database);
// Of intervals of versions before 6 nobody knows who made their pods.
absl::StatusOr<bool> HasWorkload(Database& database);

// The newest of all times: of entries, of when they were written, of the heartbeat. 1970 in an
// empty file.
absl::StatusOr<Instant> ReadLastTime(Database& database);

// Of the last entry; 0: there is none.
absl::StatusOr<int64_t> ReadLastEpoch(Database& database);

// Walks entries by ascending id with all that belongs to them. Sequential: three to four table
// scans side by side. A read transaction is open between Start and Finish.
class EntryCursor {
 public:
  static absl::StatusOr<EntryCursor> Make(Database& database);
  absl::Status Start(int64_t first_id);
  // False at the end. `entry` is overwritten.
  absl::StatusOr<bool> Next(EntryRow& entry);
  void Finish();

 private:
  absl::Status ReadInterval(EntryRow& entry);
  absl::Status ReadClosing(EntryRow& entry);
  absl::Status ReadRestored(EntryRow& entry);
  absl::Status ReadPostings(EntryRow& entry);

  Statement entries_;
  Statement postings_;
  Statement intervals_;
  Statement closing_;
  Statement restored_;
  bool posting_left_ = false;
  int64_t interval_at_ = 0;  // the row intervals_ stands on; 0: not started
};

}  // namespace tranche::ledger
