// A bill against one that is added up second by second: random fleets, prices, uses and refunds,
// clocks that step back, and history that was taken back by a backup. One printed seed replays:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='BillProperty*'
#include "scheduler/ledger/bill/bill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/ledger/bill/fleet_text.h"
#include "test/builders/budget_history.h"

namespace tranche::ledger {
namespace THIS_FILE {

constexpr int64_t kStep = 60'000;   // all happens at whole minutes
constexpr int64_t kSpan = 40 * 60;  // minutes of a history
// 2026-03-27T22:00:00Z: the clocks of Paris are set on a day later.
constexpr int64_t kStart = 1'774'648'800'000;

struct SlowPart {
  Int128 quantity = 0, unpriced = 0, money = 0;
};
struct SlowBill {
  std::map<std::string, SlowPart> rows;
  std::map<std::string, SlowPart> idle_of;  // by row
  SlowPart fleet, used, idle, free, stranded, refunded;
  Int128 unknown = 0;
};

int64_t ShareOf(const Charge& charge) { return std::max(charge.compute, charge.memory); }

class BillProperty : public test::BudgetProperty {
 protected:
  template <typename T>
  T OneOf(std::initializer_list<T> choices) {
    return *(choices.begin() + Between(0, static_cast<int64_t>(choices.size()) - 1));
  }
  int64_t SomeTime() { return kStart + Between(0, kSpan) * kStep; }

  // Before the history, or in it.
  int64_t EarlyTime() { return Between(0, 1) == 0 ? kStart - kStep : SomeTime(); }

  FleetEntry SomeNode() {
    const std::string name = OneOf({"n1", "n2", "n3"});
    FleetEntry entry{0, FleetKind::kNode, EarlyTime(), GoneNodeText(name)};
    if (Between(0, 6) == 0) return entry;
    NodeOffer offer{name, {{OneOf({"h200", "l40s"}), Between(1, 4)}}, {}};
    if (Between(0, 3) == 0) offer.gpus.emplace_back("t4", Between(1, 2));
    offer.traits.pool = OneOf({"", "p"});
    offer.traits.instance_type = OneOf({"", "t"});
    if (Between(0, 1) == 0) offer.traits.capacity = CapacityType::kSpot;
    entry.text = NodeText(offer);
    return entry;
  }
  FleetEntry SomePrice() {
    GpuPrice price;
    price.name = OneOf({"a", "b", "c", "d"});
    FleetEntry entry{0, FleetKind::kPrice, EarlyTime(), GonePriceText(price.name)};
    if (Between(0, 6) == 0) return entry;
    price.micros_per_gpu_hour = OneOf({Between(0, 9'999'999), int64_t{1}, int64_t{3'333'333}});
    price.currency = "USD";
    price.pool = OneOf({"", "", "p"});
    price.model = OneOf({"", "h200"});
    if (Between(0, 3) == 0) price.capacity = CapacityType::kSpot;
    if (Between(0, 1) == 0) {
      price.hours = {{static_cast<uint8_t>(Between(1, 127)), static_cast<int>(Between(0, 700)),
                      static_cast<int>(Between(701, 1440))}};
      price.zone = TimeZone::Load("Europe/Paris").value();
    }
    entry.text = PriceText(price);
    return entry;
  }
  FleetEntry SomeStranded() {
    StrandedGpus stranded;
    stranded.model = OneOf({"h200", "h200", "l40s", "t4"});
    stranded.traits.pool = OneOf({"", "p"});
    stranded.traits.instance_type = OneOf({"", "t"});
    if (Between(0, 1) == 0) stranded.traits.capacity = CapacityType::kSpot;
    stranded.milli = OneOf({int64_t{0}, Between(1, 999), Between(1'000, 9'000)});
    return {0, FleetKind::kStranded, EarlyTime(), StrandedText(stranded)};
  }
  // In the order of their time but where a clock stepped back; of a history that a backup cut off
  // and that went on differently from there.
  std::vector<FleetEntry> SomeFleet() {
    std::vector<FleetEntry> fleet;
    for (int64_t lives = Between(1, 2); lives > 0; --lives) {
      std::vector<FleetEntry> life;
      for (int64_t count = Between(0, 30); count > 0; --count) {
        const int64_t kind = Between(0, 2);
        life.push_back(kind == 0 ? SomeNode() : kind == 1 ? SomePrice() : SomeStranded());
      }
      if (Between(0, 2) > 0) std::ranges::stable_sort(life, {}, &FleetEntry::at);
      fleet.resize(static_cast<size_t>(Between(0, static_cast<int64_t>(fleet.size()))));
      fleet.insert(fleet.end(), life.begin(), life.end());
    }
    for (size_t i = 0; i < fleet.size(); ++i) fleet[i].entry = static_cast<int64_t>(i) + 1;
    return fleet;
  }
  std::vector<BillUse> SomeUses() {
    std::vector<BillUse> uses;
    for (int64_t count = Between(0, 24); count > 0; --count) {
      BillUse use;
      use.node = OneOf({"n1", "n1", "n2", "n2", "n3", "n3", "n4"});
      use.model = OneOf({"h200", "h200", "l40s", "t4"});
      use.ns = OneOf({"x", "y"});
      use.team = OneOf({"", "red", "blue"});
      use.pod = OneOf({"p1", "p2"});
      use.workload_class = OneOf({"", "batch"});
      use.owner = OneOf({"", "Job/j", "Deployment/d"});
      use.label = OneOf({"", "v", "w"});
      use.from = SomeTime();
      use.until = use.from + Between(0, kSpan / 2) * kStep;
      use.charge = SomeCharge();
      for (int64_t refunds = Between(0, 2); refunds > 0; --refunds) {
        BillRefund refund;
        refund.from = use.from + Between(0, (use.until - use.from) / kStep) * kStep;
        refund.until = refund.from + Between(0, (use.until - refund.from) / kStep) * kStep;
        refund.charge = {Between(0, use.charge.compute), Between(0, use.charge.memory)};
        use.refunds.push_back(refund);
      }
      use.idle = SomeIdleness(use);
      uses.push_back(std::move(use));
    }
    return uses;
  }
  // Also beyond what is held.
  std::vector<BillSpan> SomeIdleness(const BillUse& use) {
    std::vector<BillSpan> spans;
    int64_t at = use.from - kStep;
    for (int64_t count = Between(0, 3); count > 0; --count) {
      const int64_t from = at + Between(0, 200) * kStep;
      at = from + Between(1, 200) * kStep;
      spans.push_back({from, at});
    }
    return spans;
  }

  static std::string KeyOf(const BillUse& use, BillBy by, const NodeOffer* offer, int64_t at) {
    if (by == BillBy::kTeam) return use.team;
    if (by == BillBy::kNamespace) return use.ns;
    if (by == BillBy::kClass) return use.workload_class;
    if (by == BillBy::kPod) return use.ns + "/" + use.pod;
    if (by == BillBy::kOwner) return use.owner.empty() ? "" : use.ns + "/" + use.owner;
    if (by == BillBy::kLabel) return use.label;
    if (by == BillBy::kNode) return use.node;
    if (by == BillBy::kModel) return use.model;
    if (by == BillBy::kNodePool) return offer == nullptr ? "" : offer->traits.pool;
    const std::chrono::year_month_day day(
        std::chrono::floor<std::chrono::days>(Instant(Millis(at))));
    return std::to_string(static_cast<unsigned>(day.day()));
  }

  // Everything is looked up anew for every piece of a minute.
  static SlowBill Slowly(const BillQuery& query, const std::vector<FleetEntry>& fleet,
                         const std::vector<BillUse>& uses) {
    SlowBill bill;
    const int64_t end = query.to.time_since_epoch().count();
    for (int64_t at = query.from.time_since_epoch().count(); at < end;) {
      const int64_t until = std::min(end, at - at % kStep + kStep);
      Piece(query.by.by, fleet, uses, at, until - at, bill);
      at = until;
    }
    return bill;
  }
  static void Piece(BillBy by, const std::vector<FleetEntry>& fleet,
                    const std::vector<BillUse>& uses, int64_t at, int64_t length, SlowBill& bill) {
    std::map<std::string, NodeOffer> nodes;
    std::map<std::string, PriceOffer> offers;
    std::map<std::string, StrandedGpus> said;
    for (const FleetEntry& entry : fleet) {
      if (entry.at > at) continue;
      if (entry.kind == FleetKind::kNode) {
        const NodeOffer offer = ReadNodeText(entry.text).value();
        nodes[offer.node] = offer;
      } else if (entry.kind == FleetKind::kStranded) {
        const StrandedGpus stranded = ReadStrandedText(entry.text).value();
        said[KindText(stranded.model, stranded.traits)] = stranded;
      } else {
        const PriceOffer offer = ReadPriceText(entry.text).value();
        offers[offer.name] = offer;
      }
    }
    std::vector<GpuPrice> prices;
    for (const auto& [name, offer] : offers) {
      if (!offer.gone) prices.push_back(offer.price);
    }
    std::map<std::string, Int128> free;  // of kinds of which it is said how much is stranded
    for (const char* const node : {"n1", "n2", "n3", "n4"}) {
      const NodeOffer* const offer = nodes.contains(node) ? &nodes[node] : nullptr;
      for (const char* const model : {"h200", "l40s", "t4"}) {
        int64_t gpus = 0;
        if (offer != nullptr) {
          for (const auto& [name, count] : offer->gpus) gpus += name == model ? count : 0;
        }
        const GpuPrice* price = nullptr;
        if (gpus > 0) price = PriceOf(prices, offer->traits, model, Instant(Millis(at))).price;
        const Int128 rest = Share(by, uses, node, model, offer, gpus, price, at, length, bill);
        if (offer != nullptr) free[KindText(model, offer->traits)] += rest;
      }
    }
    for (const auto& [kind, stranded] : said) {
      const Int128 amount = std::min(free[kind], Int128{stranded.milli} * kQuantaPerGpu / 1000);
      const GpuPrice* const price =
          PriceOf(prices, stranded.traits, stranded.model, Instant(Millis(at))).price;
      AddTo(bill.stranded, amount, length, price);
      AddTo(bill.free, -amount, length, price);
    }
  }
  static void AddTo(SlowPart& part, Int128 amount, int64_t length, const GpuPrice* price) {
    part.quantity += amount * length;
    part.unpriced += price == nullptr ? amount * length : 0;
    part.money += price == nullptr ? 0 : amount * length * price->micros_per_gpu_hour;
  }
  // What is left.
  static Int128 Share(BillBy by, const std::vector<BillUse>& uses, const std::string& node,
                      const std::string& model, const NodeOffer* offer, int64_t gpus,
                      const GpuPrice* price, int64_t at, int64_t length, SlowBill& bill) {
    const auto add = [&](SlowPart& part, Int128 amount) { AddTo(part, amount, length, price); };
    const Int128 capacity = Int128{gpus} * kQuantaPerGpu;
    Int128 held = 0;
    std::vector<const BillUse*> here;
    for (const BillUse& use : uses) {
      if (use.node != node || use.model != model || at < use.from || at >= use.until) continue;
      held += ShareOf(use.charge);
      here.push_back(&use);
    }
    Int128 rest = capacity;
    for (const BillUse* const use : here) {
      Charge back;
      for (const BillRefund& refund : use->refunds) {
        if (at < refund.from || at >= refund.until) continue;
        back.compute += refund.charge.compute;
        back.memory += refund.charge.memory;
      }
      const int64_t kept = ShareOf(use->charge) - std::min(ShareOf(use->charge), ShareOf(back));
      SlowPart& row = bill.rows[KeyOf(*use, by, offer, at)];
      if (gpus == 0) {
        bill.unknown += Int128{kept} * length;
        row.quantity += Int128{kept} * length;
        row.unpriced += Int128{kept} * length;
        continue;
      }
      const bool too_much = held > capacity;
      const Int128 gross = too_much ? ShareOf(use->charge) * capacity / held : ShareOf(use->charge);
      const Int128 net = too_much ? kept * capacity / held : kept;
      add(row, net);
      add(bill.used, net);
      for (const BillSpan& span : use->idle) {
        if (at < span.from || at >= span.until) continue;
        add(bill.idle_of[KeyOf(*use, by, offer, at)], net);
        add(bill.idle, net);
      }
      add(bill.refunded, gross - net);
      rest -= gross;
    }
    add(bill.free, rest);
    add(bill.fleet, capacity);
    return rest;
  }

  static void ExpectSame(const BillPart& found, const SlowPart& slow, std::string_view what) {
    EXPECT_TRUE(found.quantity == slow.quantity) << what << ": hours";
    EXPECT_TRUE(found.unpriced == slow.unpriced) << what << ": hours without a price";
    EXPECT_TRUE(found.money == slow.money) << what << ": money";
  }
};

TEST_F(BillProperty, IsWhatComesOfLookingAtEveryMinuteAndItsPartsAddUp) {
  int64_t with_money = 0;
  int64_t with_stranded = 0;
  int64_t with_less = 0;  // some of what is free, and not all
  for (int64_t step = 0; step < steps_ / 20 && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const std::vector<FleetEntry> fleet = SomeFleet();
    const std::vector<BillUse> uses = SomeUses();
    BillQuery query;
    query.from = Instant(Millis(SomeTime() + Between(-1, 1) * Between(0, 59'999)));
    query.to = query.from + Millis(Between(1, 30 * 3'600'000));
    query.by = {
        OneOf({BillBy::kTeam, BillBy::kNamespace, BillBy::kClass, BillBy::kPod, BillBy::kOwner,
               BillBy::kNode, BillBy::kModel, BillBy::kNodePool, BillBy::kDay, BillBy::kLabel})};
    const absl::StatusOr<Bill> bill = SumBill(query, fleet, uses);
    ASSERT_TRUE(bill.ok()) << bill.status();
    const SlowBill slow = Slowly(query, fleet, uses);

    ExpectSame(bill->fleet, slow.fleet, "fleet");
    ExpectSame(bill->used, slow.used, "used");
    ExpectSame(bill->idle, slow.idle, "idle");
    EXPECT_LE(bill->idle.cents, bill->used.cents);
    ExpectSame(bill->free, slow.free, "free");
    ExpectSame(bill->stranded, slow.stranded, "stranded");
    ExpectSame(bill->refunded, slow.refunded, "refunded");
    EXPECT_TRUE(bill->unknown == slow.unknown);
    ASSERT_EQ(bill->rows.size(), slow.rows.size());
    int64_t cents = bill->free.cents + bill->stranded.cents + bill->refunded.cents;
    for (const BillRow& row : bill->rows) {
      const std::string key =
          query.by.by == BillBy::kDay ? std::to_string(std::stoi(row.key.substr(8))) : row.key;
      ASSERT_TRUE(slow.rows.contains(key)) << key;
      ExpectSame(row.part, slow.rows.at(key), row.key);
      const auto idle = slow.idle_of.find(key);
      ExpectSame(row.idle, idle == slow.idle_of.end() ? SlowPart() : idle->second,
                 row.key + ", idle");
      EXPECT_LE(row.idle.cents, row.part.cents) << row.key;
      cents += row.part.cents;
      // No part is further than a cent from what it is.
      const Int128 cent = Int128{kQuantaPerGpu} * 3'600'000 * 10'000;
      const Int128 off = row.part.cents * cent - row.part.money;
      EXPECT_TRUE(off <= cent && off >= -cent) << row.key;
    }
    EXPECT_TRUE(bill->used.quantity + bill->free.quantity + bill->stranded.quantity +
                    bill->refunded.quantity ==
                bill->fleet.quantity);
    EXPECT_TRUE(bill->used.money + bill->free.money + bill->stranded.money + bill->refunded.money ==
                bill->fleet.money);
    EXPECT_TRUE(bill->free.quantity >= 0 && bill->stranded.quantity >= 0);
    with_stranded += bill->stranded.quantity > 0 ? 1 : 0;
    with_less += bill->stranded.quantity > 0 && bill->free.quantity > 0 ? 1 : 0;
    with_money += bill->used.cents > 0 ? 1 : 0;
    EXPECT_EQ(cents, bill->fleet.cents);
    EXPECT_EQ(bill->used.cents + bill->free.cents + bill->stranded.cents + bill->refunded.cents,
              bill->fleet.cents);
  }
  EXPECT_GT(with_money, steps_ / 200) << "histories that cost nothing show little";
  EXPECT_GT(with_stranded, steps_ / 200) << "nor do those with nothing stranded";
  EXPECT_GT(with_less, steps_ / 400);
}

}  // namespace THIS_FILE
}  // namespace tranche::ledger
