#include "scheduler/ledger/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/ledger/bill/workload_text.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/check.h"
#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// 55 million GPUs; sums of thousands of such entries stay within int64.
constexpr int64_t kMostQuanta = 1'000'000'000'000'000;
// Years 1677 to 2262.
constexpr int64_t kMostMillis = 9'223'372'036'854;

bool InRange(Instant at) { return MillisOf(at) >= -kMostMillis && MillisOf(at) <= kMostMillis; }

void AddTo(int64_t& sum, int64_t amount) {
  TRANCHE_CHECK(!__builtin_add_overflow(sum, amount, &sum));
}

EntryKind EntryKindOf(FleetKind kind) {
  switch (kind) {
    case FleetKind::kNode:
      return EntryKind::kFleet;
    case FleetKind::kPrice:
      return EntryKind::kPrice;
    case FleetKind::kStranded:
      return EntryKind::kStranded;
  }
  return EntryKind::kFleet;
}

std::vector<Posting> Reversed(std::vector<Posting> postings) {
  for (Posting& posting : postings) {
    posting.compute = -posting.compute;
    posting.memory = -posting.memory;
  }
  return postings;
}

}  // namespace

std::string Malformed(const MeterEvent& event) {
  if (event.uid.empty()) return "expected a pod UID, found none";
  if (event.interval < 0) return fmt::format("expected interval >= 0, found {}", event.interval);
  if (!InRange(event.at) || !InRange(event.until)) return "expected a time of years 1677 to 2262";
  for (const MeterPart& part : event.parts) {
    for (const int64_t quanta : {part.charge.compute, part.charge.memory}) {
      if (quanta < 0 || quanta > kMostQuanta) {
        return fmt::format("expected 0 to {} quanta, found {}", kMostQuanta, quanta);
      }
    }
  }
  return "";
}

std::string Malformed(const WindowClosing& closing) {
  if (!InRange(closing.span.start) || !InRange(closing.span.end) ||
      closing.span.end <= closing.span.start) {
    return "expected a budget window that ends after its start";
  }
  return "";
}

std::string Malformed(const RestoredUse& use) {
  const TimeSpan span = SpanOf(use);
  if (use.name.empty()) return "expected a name of what is restored, found none";
  if (!InRange(use.mark.at) || !InRange(span.start) || !InRange(span.end) ||
      span.end <= span.start) {
    return "expected a restored span that ends after its start";
  }
  std::vector<Int128> amounts = use.stand.carried_in;
  amounts.insert(amounts.end(), {use.stand.debt_in, TimeOf(use).compute, TimeOf(use).memory});
  for (const Int128 amount : amounts) {
    if (amount < 0 || amount > kMostCheckpointed) {
      return fmt::format("expected restored amounts of 0 to 10^36, found {}", FormatInt128(amount));
    }
  }
  return "";
}

std::string Malformed(const FleetFact& fact) {
  const bool of_kind = fact.kind == FleetKind::kStranded;
  if (of_kind ? fact.key.size() > kMostNote || !ReadStrandedText(fact.key).ok()
              : !IsFleetName(fact.key)) {
    return fmt::format("expected a {}, found '{}'",
                       of_kind ? "kind of GPU" : "node's or price's name", fact.key.substr(0, 63));
  }
  if (fact.text.size() > kMostNote) {
    return fmt::format("expected at most {} bytes about {}, found {}", kMostNote, fact.key,
                       fact.text.size());
  }
  return "";
}

absl::Status Book::Apply(const MeterEvent& event, int64_t written) {
  switch (event.kind) {
    case MeterKind::kOpen:
      return Open(event, written);
    case MeterKind::kRunning:
      return Run(event, written);
    case MeterKind::kClose:
    case MeterKind::kVoid:
      if (TRANCHE_PLANTED(ends_are_not_written)) break;
      return End(event, written);
    case MeterKind::kRefund:
      return Refund(event, written);
  }
  return absl::OkStatus();
}

EntryRow Book::Blank(const MeterEvent& event, EntryKind kind, int64_t at, int64_t written) const {
  EntryRow entry;
  entry.kind = kind;
  entry.at = at;
  entry.written = written;
  entry.epoch = epoch_;
  entry.note = event.note;
  if (event.estimated) entry.flags |= kEstimatedFlag;
  // A refund is about the past by nature.
  if (event.kind != MeterKind::kRefund && written - MillisOf(event.at) > kLateAfter.count()) {
    entry.flags |= kLateFlag;
  }
  return entry;
}

absl::StatusOr<int64_t> Book::EndOlder(const MeterEvent& event, int64_t written) {
  int64_t free = MillisOf(event.at);
  const std::string uid = event.uid.str();
  while (true) {
    const auto older = open_.lower_bound({uid, std::numeric_limits<int64_t>::min()});
    if (older == open_.end() || older->first.first != uid) return free;
    if (TRANCHE_PLANTED(two_open_intervals_stay)) return free;
    free = std::max(free, older->second.since);
    MeterEvent end = event;
    end.kind = MeterKind::kClose;
    end.interval = static_cast<int>(older->first.second);
    end.estimated = true;
    end.note = kEndLost;
    TRANCHE_RETURN_IF_ERROR(End(end, written));
  }
}

absl::Status Book::Open(const MeterEvent& event, int64_t written) {
  const IntervalKey key(event.uid.str(), event.interval);
  if (open_.contains(key)) {
    ++ignored_;
    return absl::OkStatus();
  }
  const IntervalRow row{last_interval_ + 1,
                        key.first,
                        key.second,
                        event.pod,
                        event.node.str(),
                        event.leaf,
                        event.workload_class,
                        event.devices,
                        WorkloadText(event.controller, event.labels.get(), kept_labels_)};
  TRANCHE_RETURN_IF_ERROR(insert_interval_.RunWith(row.id, row.uid, row.number, row.pod.ns,
                                                   row.pod.name, row.node, row.leaf,
                                                   row.workload_class, row.devices, row.workload));
  if (database_->changes() == 0) {  // closed long ago
    ++ignored_;
    return absl::OkStatus();
  }
  last_interval_ = row.id;
  TRANCHE_ASSIGN_OR_RETURN(const int64_t at, EndOlder(event, written));
  EntryRow entry = Blank(event, EntryKind::kOpen, at, written);
  entry.opened = row;
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Posting> postings,
                           Move(event.parts, kHeld, kPool, event.leaf, event.workload_class));
  entry.interval = row.id;
  entry.postings = postings;
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  open_[key] = {row.id, entry.at, false, std::move(postings)};
  return insert_open_.RunWith(row.id, entry.id);
}

absl::Status Book::Run(const MeterEvent& event, int64_t written) {
  const auto found = open_.find({event.uid.str(), event.interval});
  if (found == open_.end() || found->second.running) {
    ++ignored_;
    return absl::OkStatus();
  }
  OpenRecord& record = found->second;
  EntryRow entry =
      Blank(event, EntryKind::kRunning, std::max(MillisOf(event.at), record.since), written);
  entry.interval = record.interval;
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  record.running = true;
  return set_running_.RunWith(entry.id, record.interval);
}

absl::Status Book::End(const MeterEvent& event, int64_t written) {
  const auto found = open_.find({event.uid.str(), event.interval});
  if (found == open_.end()) {
    ++ignored_;
    return absl::OkStatus();
  }
  OpenRecord& record = found->second;
  const bool voided = event.kind == MeterKind::kVoid;
  // Nothing ends before it began: a clock that stepped back must not yield negative use.
  const int64_t at = voided ? record.since : std::max(MillisOf(event.at), record.since);
  EntryRow entry = Blank(event, voided ? EntryKind::kVoid : EntryKind::kClose, at, written);
  entry.interval = record.interval;
  entry.postings = Reversed(std::move(record.postings));
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  open_.erase(found);
  return delete_open_.RunWith(entry.interval);
}

absl::Status Book::Refund(const MeterEvent& event, int64_t written) {
  const int64_t at = MillisOf(event.at);
  find_interval_.Bind(event.uid.str(), int64_t{event.interval});
  TRANCHE_ASSIGN_OR_RETURN(const bool known, find_interval_.Row());
  if (!known || event.until <= event.at) {
    find_interval_.Reset();
    ++ignored_;
    return absl::OkStatus();
  }
  const int64_t interval = find_interval_.Integer(0);
  const std::string leaf(find_interval_.Bytes(1));
  const std::string workload_class(find_interval_.Bytes(2));
  find_interval_.Reset();

  find_refund_.Bind(interval, at, event.note);
  TRANCHE_ASSIGN_OR_RETURN(const bool repeated, find_refund_.Row());
  if (repeated) {
    find_refund_.Reset();
    ++ignored_;
    return absl::OkStatus();
  }
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Posting> postings,
                           Move(event.parts, kRefunded, kReturned, leaf, workload_class));
  EntryRow start = Blank(event, EntryKind::kRefundStart, at, written);
  start.interval = interval;
  start.postings = postings;
  TRANCHE_RETURN_IF_ERROR(Add(start));
  EntryRow end = Blank(event, EntryKind::kRefundEnd, MillisOf(event.until), written);
  end.interval = interval;
  end.postings = Reversed(std::move(postings));
  return Add(end);
}

absl::Status Book::Record(const WindowClosing& closing, int64_t written) {
  const std::string amounts = FormatAmounts(closing);
  const int64_t start = MillisOf(closing.span.start);
  const int64_t until = MillisOf(closing.span.end);
  newest_closing_.Bind(closing.budget_uid, start);
  TRANCHE_ASSIGN_OR_RETURN(const bool row, newest_closing_.Row());
  const bool repeated =
      row && newest_closing_.Integer(0) == until && newest_closing_.Bytes(1) == amounts;
  newest_closing_.Reset();
  if (repeated) {
    ++ignored_;
    return absl::OkStatus();
  }
  EntryRow entry;
  entry.kind = EntryKind::kWindow;
  entry.at = until;
  entry.written = written;
  entry.epoch = epoch_;
  entry.closing = closing;
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  return insert_closing_.RunWith(entry.id, closing.budget_uid, start, until, amounts);
}

absl::StatusOr<GpuTime> Book::Lacking(const RestoredUse& use) {
  // The sums are read from the tables.
  TRANCHE_RETURN_IF_ERROR(WriteRollups());
  ReportQuery query;
  query.from = use.use.span.start;
  query.to = use.use.span.end;
  query.leaf = use.name;
  query.now = use.use.span.end;
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<ReportRow> rows, SumUsage(*database_, query));
  GpuTime lacking = use.use.time;
  for (const ReportRow& row : rows) {
    if (row.leaf == use.name && row.model == use.use.model) lacking -= row.time;
  }
  return GpuTime{std::max<Int128>(0, lacking.compute), std::max<Int128>(0, lacking.memory)};
}

absl::StatusOr<bool> Book::IsRestored(const RestoredUse& use) {
  find_restored_.Bind(use.name, use.mark.ledger, MillisOf(use.mark.at));
  const absl::StatusOr<bool> row = find_restored_.Row();
  find_restored_.Reset();
  return row;
}

absl::Status Book::Restore(RestoredUse use, int64_t written) {
  bool repeated = false;
  if (use.of == RestoredUse::Of::kLeaf) {
    TRANCHE_ASSIGN_OR_RETURN(const GpuTime lacking, Lacking(use));
    use.use.time = lacking;
    repeated = lacking == GpuTime{};
  } else {
    TRANCHE_ASSIGN_OR_RETURN(repeated, IsRestored(use));
  }
  if (repeated) {
    ++ignored_;
    return absl::OkStatus();
  }
  EntryRow entry;
  entry.kind = EntryKind::kRestored;
  entry.at = MillisOf(use.mark.at);
  entry.written = written;
  entry.epoch = epoch_;
  entry.restored = std::move(use);
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  ++restored_;
  const RestoredUse& kept = entry.restored;
  const TimeSpan span = SpanOf(kept);
  const GpuTime time = TimeOf(kept);
  return insert_restored_.RunWith(entry.id, std::string_view(NameOf(kept.of)), kept.name,
                                  kept.use.model, MillisOf(span.start), MillisOf(span.end),
                                  FormatInt128(time.compute), FormatInt128(time.memory),
                                  FormatDetail(kept), kept.mark.ledger, kept.mark.entry);
}

absl::Status Book::LoadFleet() {
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<FleetEntry> entries, FleetEntries(*database_));
  std::map<FleetKey, std::string> fleet;
  for (const FleetEntry& entry : entries) {
    std::string key;
    bool gone = false;
    if (entry.kind == FleetKind::kNode) {
      const absl::StatusOr<NodeOffer> offer = ReadNodeText(entry.text);
      if (!offer.ok()) continue;  // told anew
      key = offer->node;
      gone = offer->gpus.empty();
    } else if (entry.kind == FleetKind::kStranded) {
      const absl::StatusOr<StrandedGpus> stranded = ReadStrandedText(entry.text);
      if (!stranded.ok()) continue;
      key = KindText(stranded->model, stranded->traits);
    } else {
      const absl::StatusOr<PriceOffer> offer = ReadPriceText(entry.text);
      if (!offer.ok()) continue;
      key = offer->name;
      gone = offer->gone;
    }
    if (gone) {
      fleet.erase({entry.kind, key});
    } else {
      fleet.insert_or_assign({entry.kind, std::move(key)}, entry.text);
    }
  }
  fleet_ = std::move(fleet);
  return absl::OkStatus();
}

absl::Status Book::Enter(const FleetFact& fact, int64_t at, int64_t written) {
  const FleetKey key(fact.kind, fact.key);
  // Of a kind of GPU that is gone nothing is stranded, which is said like any other amount.
  const bool of_kind = fact.kind == FleetKind::kStranded;
  const std::string& said = of_kind && fact.text.empty() ? fact.key : fact.text;
  const auto known = fleet_->find(key);
  const bool gone = said.empty();
  if (known == fleet_->end() ? fact.text.empty() : said == known->second) {
    ++ignored_;
    return absl::OkStatus();
  }
  EntryRow entry;
  entry.kind = EntryKindOf(fact.kind);
  entry.at = at;
  entry.written = written;
  entry.epoch = epoch_;
  entry.note = said;
  if (gone) {
    entry.note = fact.kind == FleetKind::kNode ? GoneNodeText(fact.key) : GonePriceText(fact.key);
  }
  TRANCHE_RETURN_IF_ERROR(Add(entry));
  if (gone) {
    fleet_->erase(known);
  } else {
    fleet_->insert_or_assign(key, said);
  }
  return absl::OkStatus();
}

absl::Status Book::Note(const FleetNews& news, int64_t written) {
  if (!fleet_) TRANCHE_RETURN_IF_ERROR(LoadFleet());
  const int64_t at = MillisOf(news.at);
  if (news.whole) {
    std::set<FleetKey> there;
    for (const FleetFact& fact : news.facts) there.emplace(fact.kind, fact.key);
    std::vector<FleetFact> gone;
    for (const auto& [key, text] : *fleet_) {
      if (!there.contains(key)) gone.push_back({key.first, key.second, ""});
    }
    for (const FleetFact& fact : gone) TRANCHE_RETURN_IF_ERROR(Enter(fact, at, written));
  }
  for (const FleetFact& fact : news.facts) TRANCHE_RETURN_IF_ERROR(Enter(fact, at, written));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Posting>> Book::Move(const std::vector<MeterPart>& parts, const char* to,
                                                const char* from, const std::string& leaf,
                                                const std::string& workload_class) {
  std::vector<Posting> postings;
  const auto add = [&](int64_t account, const Charge& charge, int sign) {
    auto at = std::lower_bound(postings.begin(), postings.end(), account,
                               [](const Posting& left, int64_t id) { return left.account < id; });
    if (at == postings.end() || at->account != account) at = postings.insert(at, {account, 0, 0});
    at->compute += sign * charge.compute;
    at->memory += sign * charge.memory;
  };
  for (const MeterPart& part : parts) {
    TRANCHE_ASSIGN_OR_RETURN(const int64_t taker,
                             AccountId({to, leaf, part.model, workload_class}));
    TRANCHE_ASSIGN_OR_RETURN(const int64_t giver, AccountId({from, "", part.model, ""}));
    add(taker, part.charge, 1);
    add(giver, part.charge, -1);
  }
  return postings;
}

absl::StatusOr<int64_t> Book::AccountId(const Account& account) {
  if (const auto found = account_ids_.find(account); found != account_ids_.end()) {
    return found->second;
  }
  const int64_t id = accounts_.empty() ? 1 : accounts_.rbegin()->first + 1;
  TRANCHE_RETURN_IF_ERROR(insert_account_.RunWith(id, account.kind, account.leaf, account.model,
                                                  account.workload_class));
  accounts_[id] = account;
  account_ids_[account] = id;
  return id;
}

absl::Status Book::Add(EntryRow& entry) {
  entry.id = last_entry_ + 1;
  entry.hash = chain_.Next(head_, entry, accounts_);
  insert_entry_.Bind(entry.id, entry.interval, static_cast<int64_t>(entry.kind), entry.at,
                     entry.written, entry.epoch, entry.flags, entry.note, Blob{entry.hash});
  TRANCHE_RETURN_IF_ERROR(insert_entry_.Run());
  for (const Posting& posting : entry.postings) {
    TRANCHE_RETURN_IF_ERROR(
        insert_posting_.RunWith(entry.id, posting.account, posting.compute, posting.memory));
    TRANCHE_RETURN_IF_ERROR(AddToSums(posting, entry.at));
  }
  last_entry_ = entry.id;
  head_ = entry.hash;
  if ((entry.flags & kLateFlag) != 0) ++late_;
  return absl::OkStatus();
}

absl::Status Book::AddToSums(const Posting& posting, int64_t at) {
  const auto sum = sums_.try_emplace(posting.account).first;
  AddTo(sum->second.compute, posting.compute);
  AddTo(sum->second.memory, posting.memory);
  if (!std::exchange(sum->second.changed, true)) changed_sums_.push_back(&*sum);
  const Account& account = accounts_[posting.account];
  if (account.kind == kHeld) {
    held_.compute += posting.compute;
    held_.memory += posting.memory;
  }
  if (!IsReported(account)) return absl::OkStatus();
  const int64_t day = DayStart(at);
  const auto [found, inserted] = rollups_.try_emplace({day, posting.account});
  Rollup& rollup = found->second;
  if (inserted) {
    read_rollup_.Bind(day, posting.account);
    TRANCHE_ASSIGN_OR_RETURN(const bool row, read_rollup_.Row());
    if (row) {
      rollup.compute = read_rollup_.Integer(0);
      rollup.memory = read_rollup_.Integer(1);
      rollup.compute_moment = FromHalves(read_rollup_.Integer(2), read_rollup_.Integer(3));
      rollup.memory_moment = FromHalves(read_rollup_.Integer(4), read_rollup_.Integer(5));
      read_rollup_.Reset();
    }
  }
  AddTo(rollup.compute, posting.compute);
  AddTo(rollup.memory, posting.memory);
  rollup.compute_moment += Int128{posting.compute} * (at - day);
  rollup.memory_moment += Int128{posting.memory} * (at - day);
  if (!std::exchange(rollup.changed, true)) changed_rollups_.push_back(&*found);
  return absl::OkStatus();
}

}  // namespace tranche::ledger
