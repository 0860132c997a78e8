// What `tranche top` shows while it stays: sums by model, and the pods below
// them, one of which is chosen, in an order and by a text that keys change. It
// asks nobody and knows no terminal.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/terminal.h"
#include "scheduler/cli/screen/keys.h"

namespace tranche {

class TopView {
 public:
  // `server`: where the answers come from, for its first line.
  explicit TopView(std::string server) : server_(std::move(server)) {}

  // `sums`: what is told above the pods. `pods`: of an answer of /api/v1/pods;
  // members that are missing or of another type throw Json::exception, and the
  // last ones stay.
  void Take(std::string sums, const Json& pods);
  // Why there is nothing newer.
  void Fail(std::string why) { problem_ = std::move(why); }
  // False: it is to end.
  bool Press(const Key& key);
  // A page of so many lines, without a break behind the last.
  std::string Page(std::size_t rows, const Terminal& terminal);

 private:
  enum class Order : uint8_t { kName, kState, kTeam, kGpus, kWaits };
  struct Row {
    std::string ns, name, state, team, node, gpus, waits, reason;
    int64_t milli = 0;
    std::string waits_since;  // "-": it does not
  };

  bool PressInSearch(const Key& key);
  void Move(std::ptrdiff_t lines);
  // The rows that match, in order.
  std::vector<const Row*> Shown() const;
  bool ComesFirst(const Row& left, const Row& right) const;
  std::string Foot(std::size_t shown) const;

  const std::string server_;
  std::string sums_;
  std::vector<Row> rows_;
  std::string problem_;
  Order order_ = Order::kName;
  bool reversed_ = false;
  bool searching_ = false;
  std::string search_;
  std::string chosen_;       // "namespace/name"; stays chosen where others come and go
  std::size_t place_ = 0;    // of it
  std::size_t first_ = 0;    // the first that is shown
  std::size_t visible_ = 1;  // how many were
};

}  // namespace tranche
