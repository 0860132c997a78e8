#include "scheduler/ledger/journal.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/check.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

void AddInteger(std::string& content, int64_t value) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  content.append(bytes, sizeof(bytes));
}

void AddText(std::string& content, std::string_view text) {
  AddInteger(content, static_cast<int64_t>(text.size()));
  content.append(text);
}

void AddDetails(std::string& content, const EntryRow& entry) {
  if (entry.kind == EntryKind::kOpen) {
    const IntervalRow& row = entry.opened;
    AddInteger(content, row.number);
    for (const std::string* text : {&row.uid, &row.pod.ns, &row.pod.name, &row.node, &row.leaf,
                                    &row.workload_class, &row.devices}) {
      AddText(content, *text);
    }
    // Older intervals have none, and keep their hash. No account's kind, which comes next, begins
    // as it does.
    if (!row.workload.empty()) AddText(content, row.workload);
  }
  if (entry.kind == EntryKind::kWindow) {
    AddText(content, entry.closing.budget_uid);
    AddInteger(content, MillisOf(entry.closing.span.start));
    AddInteger(content, MillisOf(entry.closing.span.end));
    AddText(content, FormatAmounts(entry.closing));
  }
  if (entry.kind == EntryKind::kRestored) {
    const RestoredUse& use = entry.restored;
    const TimeSpan span = SpanOf(use);
    const GpuTime time = TimeOf(use);
    AddText(content, NameOf(use.of));
    AddText(content, use.name);
    AddText(content, use.use.model);
    AddInteger(content, MillisOf(span.start));
    AddInteger(content, MillisOf(span.end));
    AddText(content, FormatInt128(time.compute));
    AddText(content, FormatInt128(time.memory));
    AddText(content, FormatDetail(use));
    AddText(content, use.mark.ledger);
    AddInteger(content, use.mark.entry);
  }
}

std::optional<std::vector<Int128>> Numbers(std::string_view text) {
  std::vector<Int128> numbers;
  while (true) {
    const std::size_t space = text.find(' ');
    const std::optional<Int128> number = ParseInt128(text.substr(0, space));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (space == std::string_view::npos) return numbers;
    text.remove_prefix(space + 1);
  }
}

}  // namespace

std::string FormatAmounts(const WindowClosing& closing) {
  std::string text;
  for (const Int128 amount :
       {closing.base, closing.carried_in, closing.debt_in, closing.used, closing.debt_out}) {
    text += FormatInt128(amount) + ' ';
  }
  text += fmt::format("{}", closing.carried_out.size());
  for (const Int128 amount : closing.carried_out) text += ' ' + FormatInt128(amount);
  return text;
}

bool ParseAmounts(std::string_view text, WindowClosing& closing) {
  const std::optional<std::vector<Int128>> read = Numbers(text);
  if (!read) return false;
  const std::vector<Int128>& numbers = *read;
  constexpr std::size_t kFixed = 6;
  if (numbers.size() < kFixed || numbers[5] != static_cast<Int128>(numbers.size() - kFixed)) {
    return false;
  }
  closing.base = numbers[0];
  closing.carried_in = numbers[1];
  closing.debt_in = numbers[2];
  closing.used = numbers[3];
  closing.debt_out = numbers[4];
  closing.carried_out.assign(numbers.begin() + kFixed, numbers.end());
  return true;
}

TimeSpan SpanOf(const RestoredUse& use) {
  return use.of == RestoredUse::Of::kBudget ? use.stand.window : use.use.span;
}

GpuTime TimeOf(const RestoredUse& use) {
  return use.of == RestoredUse::Of::kBudget ? UsedOf(use.stand) : use.use.time;
}

std::string FormatDetail(const RestoredUse& use) {
  if (use.of == RestoredUse::Of::kLeaf) return "";
  const BudgetStand& stand = use.stand;
  std::string text = FormatInt128(stand.debt_in) + fmt::format(" {}", stand.carried_in.size());
  for (const Int128 amount : stand.carried_in) text += ' ' + FormatInt128(amount);
  text += fmt::format(" {}", stand.parts.size());
  for (const auto& [span, used] : stand.parts) {
    text += fmt::format(" {} {} {} {}", MillisOf(span.start), MillisOf(span.end),
                        FormatInt128(used.compute), FormatInt128(used.memory));
  }
  return text;
}

bool ParseDetail(std::string_view text, RestoredUse& use) {
  if (use.of == RestoredUse::Of::kLeaf) return text.empty();
  const std::optional<std::vector<Int128>> read = Numbers(text);
  if (!read) return false;
  const std::vector<Int128>& numbers = *read;
  std::size_t at = 0;
  const auto left = [&] { return static_cast<Int128>(numbers.size() - at); };
  if (left() < 2) return false;
  use.stand.debt_in = numbers[at++];
  const Int128 carried = numbers[at++];
  if (carried < 0 || carried >= left()) return false;
  for (Int128 i = 0; i < carried; ++i) use.stand.carried_in.push_back(numbers[at++]);
  const Int128 parts = numbers[at++];
  constexpr std::size_t kColumns = 4;
  if (parts < 0 || left() % kColumns != 0 || parts != left() / kColumns) return false;
  for (Int128 i = 0; i < parts; ++i, at += kColumns) {
    const auto moment = [&](std::size_t column) {
      return Instant(Millis(static_cast<int64_t>(numbers[at + column])));
    };
    use.stand.parts.push_back({{moment(0), moment(1)}, {numbers[at + 2], numbers[at + 3]}});
  }
  return true;
}

absl::StatusOr<AccountTable> ReadAccounts(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(Statement rows,
                           database.Prepare("SELECT id, kind, leaf, model, class FROM account"));
  AccountTable accounts;
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return accounts;
    accounts[rows.Integer(0)] = {std::string(rows.Bytes(1)), std::string(rows.Bytes(2)),
                                 std::string(rows.Bytes(3)), std::string(rows.Bytes(4))};
  }
}

HashChain::HashChain()
    : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
  TRANCHE_CHECK(algorithm_ != nullptr && context_ != nullptr);
}

HashChain::~HashChain() {
  EVP_MD_CTX_free(context_);
  EVP_MD_free(algorithm_);
}

HashChain::HashChain(HashChain&& other) noexcept
    : content_(std::move(other.content_)),
      algorithm_(std::exchange(other.algorithm_, nullptr)),
      context_(std::exchange(other.context_, nullptr)) {}

HashChain& HashChain::operator=(HashChain&& other) noexcept {
  std::swap(content_, other.content_);
  std::swap(algorithm_, other.algorithm_);
  std::swap(context_, other.context_);
  return *this;
}

std::string HashChain::Next(std::string_view previous, const EntryRow& entry,
                            const AccountTable& accounts) {
  static const Account kNoAccount;
  content_.assign(previous);
  for (const int64_t value : {entry.id, entry.interval, static_cast<int64_t>(entry.kind), entry.at,
                              entry.written, entry.epoch, entry.flags}) {
    AddInteger(content_, value);
  }
  AddText(content_, entry.note);
  AddDetails(content_, entry);
  for (const Posting& posting : entry.postings) {
    const auto found = accounts.find(posting.account);
    // An account that is missing is damage; without its name the hash shows it.
    const Account& account = found == accounts.end() ? kNoAccount : found->second;
    for (const std::string* text :
         {&account.kind, &account.leaf, &account.model, &account.workload_class}) {
      AddText(content_, *text);
    }
    AddInteger(content_, posting.compute);
    AddInteger(content_, posting.memory);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  TRANCHE_CHECK(EVP_DigestInit_ex(context_, algorithm_, nullptr) == 1);
  TRANCHE_CHECK(EVP_DigestUpdate(context_, content_.data(), content_.size()) == 1);
  TRANCHE_CHECK(EVP_DigestFinal_ex(context_, digest, &size) == 1);
  return std::string(digest, digest + size);
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

Seal& Seal::Add(int64_t value) {
  // Each step is a bijection of the state and of the value, so one changed value always shows.
  state_ ^= static_cast<uint64_t>(value) + 0x9e3779b97f4a7c15U;
  state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9U;
  state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebU;
  state_ ^= state_ >> 31;
  return *this;
}

Seal& Seal::Add(std::string_view text) {
  Add(static_cast<int64_t>(text.size()));
  for (const char byte : text) Add(int64_t{static_cast<unsigned char>(byte)});
  return *this;
}

absl::StatusOr<std::optional<int64_t>> ReadMeta(Database& database, std::string_view key) {
  TRANCHE_ASSIGN_OR_RETURN(Statement query,
                           database.Prepare("SELECT value, seal FROM meta WHERE key = ?"));
  query.Bind(key);
  TRANCHE_ASSIGN_OR_RETURN(const bool row, query.Row());
  if (!row) return std::optional<int64_t>();
  const int64_t value = query.Integer(0);
  const int64_t seal = Seal().Add(key).Add(value).value();
  if (query.Integer(1) != seal) {
    return absl::DataLossError(
        fmt::format("meta '{}': expected seal {}, found {}", key, seal, query.Integer(1)));
  }
  return std::optional<int64_t>(value);
}

absl::StatusOr<Instant> ReadLastTime(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> heartbeat,
                           ReadMeta(database, kHeartbeatKey));
  const absl::StatusOr<int64_t> newest = database.Integer(
      "SELECT max((SELECT coalesce(max(at), 0) FROM entry), coalesce((SELECT written FROM entry "
      "ORDER BY id DESC LIMIT 1), 0))");
  if (!newest.ok()) return newest.status();
  return Instant(Millis(std::max(heartbeat.value_or(0), *newest)));
}

absl::StatusOr<int64_t> ReadLastEpoch(Database& database) {
  return database.Integer("SELECT epoch FROM entry ORDER BY id DESC LIMIT 1");
}

absl::StatusOr<std::string> ReadId(Database& database) {
  std::string id;
  for (const std::string_view key : {kIdHighKey, kIdLowKey}) {
    TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> half, ReadMeta(database, key));
    if (!half) return std::string();
    id += fmt::format("{:016x}", static_cast<uint64_t>(*half));
  }
  return id;
}

absl::StatusOr<bool> HasRestored(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  return version >= 2;
}

absl::StatusOr<bool> HasFleet(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  return version >= 3;
}

absl::StatusOr<bool> HasWorkload(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  return version >= 6;
}

absl::Status MakeId(Database& database, IdOf of) {
  const absl::StatusOr<std::string> known = ReadId(database);
  if (!known.ok()) return known.status();
  if (!known->empty() && of == IdOf::kFile) return absl::OkStatus();
  int64_t halves[2];
  sqlite3_randomness(sizeof(halves), halves);
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  absl::Status status = WriteMeta(database, kIdHighKey, halves[0]);
  if (status.ok()) status = WriteMeta(database, kIdLowKey, halves[1]);
  return status.ok() ? transaction.Commit() : status;
}

absl::Status WriteMeta(Database& database, std::string_view key, int64_t value) {
  TRANCHE_ASSIGN_OR_RETURN(Statement write, database.Prepare(kWriteMeta));
  return WriteMeta(write, key, value);
}

absl::Status WriteMeta(Statement& write, std::string_view key, int64_t value) {
  return write.RunWith(key, value, Seal().Add(key).Add(value).value());
}

}  // namespace tranche::ledger
