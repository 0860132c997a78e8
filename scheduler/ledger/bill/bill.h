// The bill: what use of GPUs costs, by team, namespace, class, pod, what made the pod, a label of
// it, node, model, pool or day, and what the rest of the fleet costs meanwhile.
//
// A moment of a node's GPUs of one model is shared out like this: each pod has the larger of its
// compute and its memory; where these are more than the GPUs, all in proportion; the rest is
// free, or stranded as far as the ledger tells that of its kind of GPUs. What was given back to a
// pod is refunded. So used + refunded + free + stranded = the fleet, of hours exactly and of money
// to the cent: cents that rounding leaves over go to the parts with the largest rests. What is not
// known is not billed: use on a node that the ledger does not tell of, and time without a price.
//
// Pure; any thread. Times are Unix milliseconds; quantities are quanta x ms, money in sums is
// quanta x ms x millionths of the currency, both 128-bit. Cost: O(n log n) in uses, changes of the
// fleet and of prices, and hours of prices in the span.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "quota/tree/charge.h"
#include "scheduler/facts/fleet.h"
#include "topology/base/int128.h"
#include "topology/base/units.h"

namespace tranche::ledger {

enum class BillBy : uint8_t {
  kTeam,
  kNamespace,
  kClass,
  kPod,
  kOwner,
  kNode,
  kModel,
  kNodePool,
  kDay,
  kLabel
};
// What a row is of.
struct BillGroup {
  BillBy by = BillBy::kTeam;
  std::string label = {};  // kLabel: its key
  friend bool operator==(const BillGroup&, const BillGroup&) = default;
};
// "team", "namespace", "class", "pod", "owner", "node", "model", "pool", "day", or "label:KEY";
// nullopt: another text.
std::optional<BillGroup> ParseBillBy(std::string_view text);
std::string TextOf(const BillGroup& group);
inline constexpr std::string_view kBillByWords =
    "team, namespace, class, pod, owner, node, model, pool, day or label:KEY";

struct BillQuery {
  Instant from;
  Instant to;  // after `from`
  BillGroup by = {};
  // As the ledger said it when this entry was its newest; nullopt: as it says now.
  std::optional<int64_t> as_of = {};
};

// The first moment of the month in UTC that the moment before `at` lies in.
Instant MonthOf(Instant at);

// An entry about the fleet. Of those about one key whose `at` is not after a moment, the one that
// was written last holds then.
struct FleetEntry {
  int64_t entry = 0;
  FleetKind kind = FleetKind::kNode;
  int64_t at = 0;
  std::string text;
};

// What was given back of a use.
struct BillRefund {
  int64_t from = 0;
  int64_t until = 0;
  Charge charge;
};

struct BillSpan {
  int64_t from = 0;
  int64_t until = 0;
};

// GPUs of one model that a pod held.
struct BillUse {
  std::string node;
  std::string model;
  std::string ns;
  std::string team;                 // "": none
  std::string pod = {};             // its name
  std::string workload_class = {};  // "": none
  std::string owner = {};           // "Job/train", what made the pod; "": nobody, or not known
  std::string label = {};           // the value of the label that is asked for; "": none
  int64_t from = 0;
  int64_t until = 0;
  Charge charge;
  std::vector<BillRefund> refunds;
  std::vector<BillSpan> idle;  // what was measured found no work; ascending, none meet
};

struct BillPart {
  Int128 quantity = 0;
  Int128 unpriced = 0;  // of the quantity: no money for it
  Int128 money = 0;
  int64_t cents = 0;
};
struct BillRow {
  // A team, ...; of a pod "ns/name", of an owner "ns/Job/train", of a day "2026-03-01"; "": none.
  std::string key;
  BillPart part;
  BillPart idle;  // of it
};

struct Bill {
  Instant from;
  Instant to;
  BillGroup by;
  std::string currency;  // "": there was no price
  // The first the ledger tells of; nullopt: it does not.
  std::optional<Instant> fleet_from;
  std::optional<Instant> prices_from;
  std::optional<Instant> stranded_from;
  std::vector<BillRow> rows;  // ascending key
  BillPart fleet;             // all GPUs that were there
  BillPart used;              // the rows together, but for what is `unknown`
  BillPart idle;              // of it
  BillPart free;              // held by nobody, but for what is stranded
  BillPart stranded;          // held by nobody, and nobody is expected to use it
  BillPart refunded;
  Int128 unknown = 0;   // used on nodes the ledger does not tell of; in the rows as unpriced
  Int128 restored = 0;  // taken over from checkpoints, which do not tell of nodes; in no row
};

// A bill by pod of a large fleet is for shorter spans.
inline constexpr std::size_t kMostBillRows = 50'000;
// Labels are written by users: of more values those that cost least are one row.
inline constexpr std::size_t kMostLabelRows = 1'000;
inline constexpr std::string_view kOtherLabels = "(others)";  // no label's value

// Errors: InvalidArgument (`to` not after `from`, several currencies in the span, more rows than
// kMostBillRows), DataLoss (an entry that cannot be read), OutOfRange (sums beyond 128 bits).
absl::StatusOr<Bill> SumBill(const BillQuery& query, const std::vector<FleetEntry>& fleet,
                             const std::vector<BillUse>& uses);

// quanta x ms as GPU-hours of three decimals, rounded down.
std::string FormatBilledHours(Int128 quantity);
// "2026-03-01", in UTC.
std::string FormatDay(Instant at);
// "12.30".
std::string FormatCents(int64_t cents);

}  // namespace tranche::ledger
