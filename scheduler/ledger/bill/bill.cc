#include "scheduler/ledger/bill/bill.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "policy/prices.h"
#include "policy/selector_text.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/ledger/bill/fleet_times.h"
#include "scheduler/ledger/bill/stranded.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr int64_t kDayMillis = 86'400'000;
constexpr Int128 kGpuHourQuantity = Int128{kQuantaPerGpu} * 3'600'000;
constexpr int64_t kMicrosPerCent = 10'000;
constexpr Int128 kCentMoney = kGpuHourQuantity * kMicrosPerCent;

constexpr std::array<std::pair<std::string_view, BillBy>, 9> kBillBy = {{
    {"team", BillBy::kTeam},
    {"namespace", BillBy::kNamespace},
    {"class", BillBy::kClass},
    {"pod", BillBy::kPod},
    {"owner", BillBy::kOwner},
    {"node", BillBy::kNode},
    {"model", BillBy::kModel},
    {"pool", BillBy::kNodePool},
    {"day", BillBy::kDay},
}};
constexpr std::string_view kLabelPrefix = "label:";

int64_t LargerOf(const Charge& charge) {
  return std::max<int64_t>(0, std::max(charge.compute, charge.memory));
}

// How much of its share was given back at that moment.
int64_t GivenBack(const BillUse& use, int64_t at) {
  Charge sum;
  for (const BillRefund& refund : use.refunds) {
    if (at < refund.from || at >= refund.until) continue;
    sum = AddSaturating(sum, refund.charge);
  }
  return std::min(LargerOf(use.charge), LargerOf(sum));
}

bool IsIdle(const BillUse& use, int64_t at) {
  const auto after = std::ranges::upper_bound(use.idle, at, {}, &BillSpan::from);
  return after != use.idle.begin() && at < std::prev(after)->until;
}

std::string DayText(int64_t at) { return FormatDay(Instant(Millis(at))); }

int64_t DayEnd(int64_t at) {
  const int64_t into = (at % kDayMillis + kDayMillis) % kDayMillis;
  return at - into + kDayMillis;
}

class Biller {
 public:
  Biller(const BillQuery& query, const FleetTimes& fleet)
      : query_(query),
        fleet_(fleet),
        from_(query.from.time_since_epoch().count()),
        to_(query.to.time_since_epoch().count()),
        free_(fleet) {
    bill_.from = query.from;
    bill_.to = query.to;
    bill_.by = query.by;
    bill_.fleet_from = fleet.fleet_from;
    bill_.prices_from = fleet.prices_from;
    bill_.stranded_from = fleet.stranded_from;
  }

  // The GPUs of one model of one node, and who held some of them.
  void Add(const std::string& node, const std::string& model,
           const std::vector<const BillUse*>& uses) {
    node_ = nullptr;
    if (const auto found = fleet_.nodes.find(node); found != fleet_.nodes.end()) {
      node_ = &found->second;
    }
    model_ = &model;
    priced_as_ = nullptr;
    const std::vector<int64_t> edges = EdgesOf(uses);
    std::vector<const BillUse*> starting = uses;
    std::ranges::sort(starting, {}, &BillUse::from);
    std::size_t started = 0;
    std::vector<const BillUse*> active;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const int64_t at = edges[i];
      for (; started < starting.size() && starting[started]->from <= at; ++started) {
        active.push_back(starting[started]);
      }
      std::erase_if(active, [at](const BillUse* use) { return use->until <= at; });
      AddSpan(at, edges[i + 1], active);
    }
  }

  absl::StatusOr<Bill> Take() {
    PartFree();
    if (overflow_) return absl::OutOfRangeError("expected sums within 128 bits, found larger ones");
    if (query_.by.by == BillBy::kLabel) GatherOthers();
    if (rows_.size() > kMostBillRows) {
      return absl::InvalidArgumentError(
          fmt::format("from, to: expected at most {} rows by {}, found {}; ask for a shorter span",
                      kMostBillRows, TextOf(query_.by), rows_.size()));
    }
    if (currencies_.size() > 1) {
      return absl::InvalidArgumentError(
          fmt::format("from, to: expected prices of one currency from {} to {}, found {}",
                      DayText(from_), DayText(to_), fmt::join(currencies_, " and ")));
    }
    if (!currencies_.empty()) bill_.currency = *currencies_.begin();
    for (auto& [key, row] : rows_) bill_.rows.push_back({key, row.part, row.idle});
    Round();
    return std::move(bill_);
  }

 private:
  // Moments at which something may change, from the first to the last.
  std::vector<int64_t> EdgesOf(const std::vector<const BillUse*>& uses) const {
    std::vector<int64_t> edges = {from_, to_};
    const auto add = [&](int64_t at) {
      if (at > from_ && at < to_) edges.push_back(at);
    };
    for (const BillUse* const use : uses) {
      add(use->from);
      add(use->until);
      for (const BillRefund& refund : use->refunds) {
        add(refund.from);
        add(refund.until);
      }
      for (const BillSpan& span : use->idle) {
        add(span.from);
        add(span.until);
      }
    }
    if (node_ != nullptr) {
      for (const auto& [at, offer] : node_->stands()) add(at);
    }
    for (const auto& [at, prices] : fleet_.prices.stands()) add(at);
    std::ranges::sort(edges);
    const auto same = std::ranges::unique(edges);
    edges.erase(same.begin(), same.end());
    return edges;
  }

  // Nothing changes in [from, until) but the price, by its hours, and the day.
  void AddSpan(int64_t from, int64_t until, const std::vector<const BillUse*>& active) {
    const NodeOffer* const offer = node_ == nullptr ? nullptr : node_->Of(from);
    int64_t gpus = 0;
    if (offer != nullptr) {
      for (const auto& [model, count] : offer->gpus) gpus += model == *model_ ? count : 0;
    }
    if (gpus == 0 && active.empty()) return;
    const auto* const prices = fleet_.prices.Of(from);
    while (from < until) {
      int64_t end = query_.by.by == BillBy::kDay ? std::min(until, DayEnd(from)) : until;
      const GpuPrice* price = nullptr;
      if (gpus > 0 && prices != nullptr) {
        const Instant at{Millis(from)};
        const PriceAt found = PriceOf(**prices, offer->traits, *model_, at);
        price = found.price;
        if (found.until != Instant::max()) {
          end = std::min<int64_t>(end, found.until.time_since_epoch().count());
        }
      }
      if (price != nullptr) currencies_.insert(price->currency);
      Share(from, end - from, gpus * kQuantaPerGpu, offer, price, active);
      from = end;
    }
  }

  void Share(int64_t at, int64_t length, int64_t capacity, const NodeOffer* offer,
             const GpuPrice* price, const std::vector<const BillUse*>& active) {
    Int128 held = 0;
    for (const BillUse* const use : active) held += LargerOf(use->charge);
    // In proportion, where it is more than there is.
    const auto part_of = [&](int64_t amount) -> int64_t {
      if (held <= capacity) return amount;
      return static_cast<int64_t>(Int128{amount} * capacity / held);
    };
    int64_t free = capacity;
    for (const BillUse* const use : active) {
      const int64_t share = LargerOf(use->charge);
      const int64_t kept = share - GivenBack(*use, at);
      auto& [row, idle] = rows_[KeyOf(*use, at, offer)];
      if (capacity == 0) {
        AddTo(bill_.unknown, kept, length);
        AddTo(row.quantity, kept, length);
        AddTo(row.unpriced, kept, length);
        continue;
      }
      const int64_t gross = part_of(share);
      const int64_t net = part_of(kept);
      Count(row, net, length, price);
      Count(bill_.used, net, length, price);
      if (IsIdle(*use, at)) {
        Count(idle, net, length, price);
        Count(bill_.idle, net, length, price);
      }
      Count(bill_.refunded, gross - net, length, price);
      free -= gross;
    }
    Count(bill_.free, free, length, price);
    Count(bill_.fleet, capacity, length, price);
    if (free_.empty() || offer == nullptr) return;
    if (std::exchange(priced_as_, offer) != offer) kind_ = free_.KindOf(*model_, offer->traits);
    if (kind_ != nullptr) kind_->Add(at, at + length, free);
  }

  // Into what somebody may use and what is stranded.
  void PartFree() {
    free_.EachStranded([this](int64_t amount, int64_t length, const GpuPrice* price) {
      Count(bill_.stranded, amount, length, price);
    });
    bill_.free.quantity -= bill_.stranded.quantity;
    bill_.free.unpriced -= bill_.stranded.unpriced;
    bill_.free.money -= bill_.stranded.money;
  }

  std::string KeyOf(const BillUse& use, int64_t at, const NodeOffer* offer) const {
    switch (query_.by.by) {
      case BillBy::kTeam:
        return use.team;
      case BillBy::kNamespace:
        return use.ns;
      case BillBy::kClass:
        return use.workload_class;
      case BillBy::kPod:
        return use.ns + "/" + use.pod;
      case BillBy::kOwner:
        return use.owner.empty() ? "" : use.ns + "/" + use.owner;
      case BillBy::kLabel:
        return use.label;
      case BillBy::kNode:
        return use.node;
      case BillBy::kModel:
        return use.model;
      case BillBy::kNodePool:
        return offer == nullptr ? "" : offer->traits.pool;
      case BillBy::kDay:
        return DayText(at);
    }
    return "";
  }

  void Count(BillPart& part, int64_t amount, int64_t length, const GpuPrice* price) {
    AddTo(part.quantity, amount, length);
    if (price == nullptr) return AddTo(part.unpriced, amount, length);
    Int128 money = 0;
    const Int128 micros = price->micros_per_gpu_hour;
    overflow_ |= __builtin_mul_overflow(Int128{amount} * length, micros, &money);
    overflow_ |= __builtin_add_overflow(part.money, money, &part.money);
  }

  void AddTo(Int128& sum, int64_t amount, int64_t length) {
    overflow_ |= __builtin_add_overflow(sum, Int128{amount} * length, &sum);
  }

  // Of more rows than kMostLabelRows those that cost least become one; that of pods without the
  // label stays.
  void GatherOthers() {
    if (rows_.size() <= kMostLabelRows) return;
    std::vector<std::pair<std::string, Row>> rows(rows_.begin(), rows_.end());
    std::ranges::stable_sort(rows, [](const auto& left, const auto& right) {
      const auto rank = [](const auto& row) {
        return std::tuple(row.first.empty(), row.second.part.money, row.second.part.quantity);
      };
      return rank(left) > rank(right);
    });
    Row others;
    for (std::size_t i = kMostLabelRows - 1; i < rows.size(); ++i) {
      Merge(rows[i].second.part, others.part);
      Merge(rows[i].second.idle, others.idle);
    }
    rows.resize(kMostLabelRows - 1);
    rows_ = std::map<std::string, Row>(rows.begin(), rows.end());
    rows_.emplace(kOtherLabels, others);
  }
  void Merge(const BillPart& part, BillPart& sum) {
    for (Int128 BillPart::*const amount :
         {&BillPart::quantity, &BillPart::unpriced, &BillPart::money}) {
      overflow_ |= __builtin_add_overflow(sum.*amount, part.*amount, &(sum.*amount));
    }
  }

  // To cents that add up to those of the fleet.
  void Round() {
    std::vector<BillPart*> parts;
    for (BillRow& row : bill_.rows) parts.push_back(&row.part);
    parts.insert(parts.end(), {&bill_.free, &bill_.stranded, &bill_.refunded});
    bill_.fleet.cents = static_cast<int64_t>((bill_.fleet.money + kCentMoney / 2) / kCentMoney);
    int64_t left = bill_.fleet.cents;
    for (BillPart* const part : parts) {
      part->cents = static_cast<int64_t>(part->money / kCentMoney);
      left -= part->cents;
    }
    std::ranges::stable_sort(parts, std::ranges::greater(),
                             [](const BillPart* part) { return part->money % kCentMoney; });
    for (BillPart* const part : parts) {
      if (left == 0) break;
      ++part->cents;
      --left;
    }
    bill_.used.cents =
        bill_.fleet.cents - bill_.free.cents - bill_.stranded.cents - bill_.refunded.cents;
    // A part of what is there already: no cent is left over. It is never more than the whole.
    const auto round = [](BillPart& idle, const BillPart& all) {
      const auto cents = static_cast<int64_t>((idle.money + kCentMoney / 2) / kCentMoney);
      idle.cents = std::min(cents, all.cents);
    };
    for (BillRow& row : bill_.rows) round(row.idle, row.part);
    round(bill_.idle, bill_.used);
  }

  const BillQuery& query_;
  const FleetTimes& fleet_;
  const int64_t from_;
  const int64_t to_;
  const Timeline<NodeOffer>* node_ = nullptr;
  const std::string* model_ = nullptr;
  FreeTimes free_;
  const NodeOffer* priced_as_ = nullptr;  // what kind_ was looked up for
  FreeOfKind* kind_ = nullptr;            // that the GPUs are of; null: nothing of it is stranded
  struct Row {
    BillPart part;
    BillPart idle;
  };
  std::map<std::string, Row> rows_;
  std::set<std::string> currencies_;
  bool overflow_ = false;
  Bill bill_;
};

}  // namespace

std::optional<BillGroup> ParseBillBy(std::string_view text) {
  if (text.starts_with(kLabelPrefix)) {
    text.remove_prefix(kLabelPrefix.size());
    if (!IsLabelKey(text)) return std::nullopt;
    return BillGroup{BillBy::kLabel, std::string(text)};
  }
  const auto found = std::ranges::find(kBillBy, text, &std::pair<std::string_view, BillBy>::first);
  if (found == kBillBy.end()) return std::nullopt;
  return BillGroup{found->second};
}

std::string TextOf(const BillGroup& group) {
  if (group.by == BillBy::kLabel) return std::string(kLabelPrefix) + group.label;
  const auto found =
      std::ranges::find(kBillBy, group.by, &std::pair<std::string_view, BillBy>::second);
  return std::string(found->first);
}

Instant MonthOf(Instant at) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(at - Millis(1)));
  return std::chrono::sys_days(day.year() / day.month() / 1);
}

absl::StatusOr<Bill> SumBill(const BillQuery& query, const std::vector<FleetEntry>& fleet,
                             const std::vector<BillUse>& uses) {
  if (query.to <= query.from) {
    return absl::InvalidArgumentError("to: expected a moment after from that the ledger knows of");
  }
  TRANCHE_ASSIGN_OR_RETURN(const FleetTimes read, ReadFleetTimes(fleet));
  std::map<std::pair<std::string, std::string>, std::vector<const BillUse*>> groups;
  for (const auto& [node, line] : read.nodes) {
    for (const auto& [at, offer] : line.stands()) {
      for (const auto& [model, count] : offer.gpus) groups[{node, model}];
    }
  }
  for (const BillUse& use : uses) groups[{use.node, use.model}].push_back(&use);
  Biller biller(query, read);
  for (const auto& [group, held] : groups) biller.Add(group.first, group.second, held);
  return biller.Take();
}

std::string FormatBilledHours(Int128 quantity) {
  const Int128 thousandths = quantity * 1000 / kGpuHourQuantity;
  return fmt::format("{}.{:03}", static_cast<int64_t>(thousandths / 1000),
                     static_cast<int64_t>(thousandths % 1000));
}

std::string FormatDay(Instant at) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(at));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

std::string FormatCents(int64_t cents) { return fmt::format("{}.{:02}", cents / 100, cents % 100); }

}  // namespace tranche::ledger
