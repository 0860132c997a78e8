// How long GPUs were held, and how many are, by who holds them: what teams' own metrics show.
//
// Time counts from BeginCounting on, as a counter of a process does: from when work is charged
// until its charge ends, gross of refunds, GPU-equivalents of each piece of work and model. A plain
// value: externally synchronised. Cost: O(parts x log series) a call, Step O(series).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quota/tree/model_charge.h"
#include "topology/base/int128.h"
#include "topology/base/units.h"

namespace tranche {

struct HeldTimeRow {
  std::string leaf;            // empty: none
  std::string workload_class;  // empty: none
  std::string model;           // by line_name.h, as of ModelCharge
  Int128 quanta_ms = 0;        // never falls from one reading to the next
};

struct NamespaceHeldRow {
  std::string ns;
  std::string model;
  Charge held;
};

class HeldSums {
 public:
  // Of a piece of work.
  struct Holder {
    const std::string& ns;
    const std::string& leaf;
    const std::string& workload_class;
    const std::vector<ModelCharge>& parts;
  };

  // What was held before is not counted, as what was counted by another process.
  void BeginCounting(Instant now);
  // `at` may be late news.
  void Hold(const Holder& holder, Instant at) { Change(holder, 1, at); }
  void Release(const Holder& holder, Instant at) { Change(holder, -1, at); }
  // The clock was set forward: nobody used anything between.
  void Step(Instant from, Instant to);

  // Ascending leaf, class, model; all that ever were.
  std::vector<HeldTimeRow> Time(Instant now);
  // Of namespaces that hold something; ascending namespace, model.
  std::vector<NamespaceHeldRow> ByNamespace() const;

 private:
  struct Key {
    std::string leaf, workload_class, model;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Series {
    int64_t quanta = 0;  // held at `last`
    Int128 sum = 0;      // quanta x ms until `last`
    Int128 told = 0;
    Instant last;

    void AdvanceTo(Instant at);
  };

  void Change(const Holder& holder, int sign, Instant at);

  std::optional<Instant> began_;
  std::map<Key, Series> series_;
  std::map<std::string, std::vector<ModelCharge>> by_namespace_;
};

}  // namespace tranche
