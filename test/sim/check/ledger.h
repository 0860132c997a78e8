// Every entry that was promised is in the ledger's file, and an interval is opened once. No pod is
// charged twice in the books of a replica, nor is room kept for one that is charged.
//
// Its model: what kPromised told, and the file's tables read by SQL of its own. The product's own
// `verify` must agree wherever the disk could not harm what was synced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

// One time a pod was metered, as the file has it. Times are Unix milliseconds.
struct LedgerInterval {
  std::string uid;
  int64_t number = 0;
  std::string pod;  // "ns/name"
  std::string node;
  std::optional<int64_t> open;
  std::optional<int64_t> running;
  std::optional<int64_t> end;
  bool is_void = false;
  bool estimated = false;  // the end
  bool stepped = false;    // its clock was set while it was open, or before
};
// What a file has; `problem` says why it could not be read, where it could not.
std::vector<LedgerInterval> ReadLedger(const std::string& path, std::string& problem);

// What a pod or a claim is charged, from its first interval to its last. Void ones do not count.
struct Charged {
  SimTime from = SimTime::max();
  SimTime to{0};
  bool open = false;       // the last
  bool estimated = false;  // the end of the last
  SimTime length{0};       // of all that have ended, together
};
// By uid, of all files; one that cannot be read has none.
std::map<std::string, Charged> ReadCharges(const std::vector<std::string>& ledgers);
// "12.345 s", as findings tell times of charges.
std::string Seconds(SimTime time);

class LedgerChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  // uid, interval, kind, at.
  using Entry = std::tuple<std::string, int64_t, std::string, int64_t>;
  void CheckIntervals(const std::vector<LedgerInterval>& intervals, SimTime at);
  void Verify(const std::string& path, SimTime at);

  std::map<Entry, SimTime> promised_;
};

}  // namespace tranche::sim::check
