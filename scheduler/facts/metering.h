// What the engine tells the ledger: who held which GPUs from when to when.
//
// Plain values. Amounts are charges (quanta); times are Instants of the engine's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/selector.h"
#include "quota/budget/budget.h"
#include "quota/past_uses.h"
#include "quota/tree/charge.h"
#include "quota/tree/fair_share.h"
#include "quota/tree/model_charge.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/checkpoint.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// Part of a holding on GPUs of one model.
using MeterPart = ModelCharge;

enum class MeterKind : uint8_t {
  kOpen,     // from `at` on the pod holds its parts
  kRunning,  // the pod's containers ran from `at` on; no amounts
  kClose,    // until `at` it held them
  kVoid,     // the open entry never came true: closed at its own time, charging nothing
  kRefund,   // use over [at, until) is given back, for `note`
};

// One line of the journal. `interval` tells apart the times one pod was metered (a clock step
// closes and reopens): 0, 1, ...; (pod uid, interval, kind, at for refunds) happens once, repeats
// are ignored by the ledger.
struct MeterEvent {
  uint64_t sequence = 0;  // ascending within a process
  MeterKind kind = MeterKind::kOpen;
  Instant at;
  Instant until;  // kRefund
  PodUid uid;
  int interval = 0;
  PodName pod;
  NodeName node;
  std::string leaf;                      // empty: no leaf owns the pod
  std::string workload_class;            // empty: none
  std::vector<MeterPart> parts;          // the open ones, on every kind but kRunning
  std::optional<Allocation> allocation;  // kOpen: the devices, where they are known
  std::string devices;                   // kOpen: the same as JSON text; the shell's to fill in
  // kOpen: who made the pod, as PodFacts::controller, and its labels; empty, null: not known.
  std::string controller;
  std::shared_ptr<const Labels> labels;
  // kOpen: when the pod came, which no ledger keeps; nullopt: not known.
  std::optional<Instant> came;
  bool estimated = false;  // `at` is the best that is known, not what was seen
  std::string note;        // a fixed word: "NodeLost", "LostWork", "Interruption", ...
};

// An interval the ledger has open.
struct OpenInterval {
  PodUid uid;
  int interval = 0;
  PodName pod;
  NodeName node;
  std::string leaf;
  std::string workload_class;
  std::vector<MeterPart> parts;
  Instant since;
  std::optional<Instant> running;
  std::string devices = {};                   // as JSON text; empty: not known
  std::optional<Allocation> allocation = {};  // the same; the shell's to fill in
};

struct DecayRow {
  std::string leaf;
  DecayedUsage::State state;
};

// Uses that ended, or were given back, of one kind.
struct EndedUses {
  PastKind kind;
  std::vector<PastLife> lives;
};

// That a pod was metered under this number until then, of the many that are gone. Of two pods with
// the same key both go on after the higher number, which skips one.
struct EndedNumber {
  std::size_t pod = 0;  // KeyOf its uid
  int interval = 0;
  Instant ended = {};
};
inline std::size_t KeyOf(const PodUid& uid) { return std::hash<PodUid>()(uid); }

// What the engine needs of the past: everything that moved since `from`, and what was open then.
struct MeterHistory {
  Instant from;
  Instant heartbeat;               // the last moment the ledger knows somebody metered
  std::vector<OpenInterval> open;  // now, ascending uid
  // With at (of a refund: until) >= from, ascending at; the opens of earlier intervals that lasted
  // into it come with their own at.
  std::vector<MeterEvent> events;
  std::vector<WindowClosing> closings;  // ascending budget, start; the newest version of each
  std::vector<DecayRow> decay;
  std::string ledger;                 // its id
  int64_t last_entry = 0;             // 0: it is empty
  std::vector<RestoredUse> restored;  // taken over from checkpoints, ascending entry
  // What ended, in short; what is here is not among the events.
  std::vector<EndedUses> ended;
  std::vector<EndedNumber> ended_numbers;
};

// Longer than any budget window: a month of 31 days, an hour of clock change, and a margin for late
// news.
inline constexpr Millis kMeterHorizon = std::chrono::hours(24 * 33);

}  // namespace tranche
