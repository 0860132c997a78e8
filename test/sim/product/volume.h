// The volume the ledger lies on: a real folder behind SQLite's view of a disk that can lose power,
// fail and hang, and the threads that work on it as steps of a process.
//
// Thread rule: one thread. One of them at a time in a process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/ledger/worker.h"
#include "test/fakes/power_cut_vfs.h"
#include "test/sim/base/draws.h"
#include "test/sim/product/process.h"

namespace tranche::sim {

class Volume {
 public:
  // Empties the folder, and makes it.
  Volume(Loop& loop, std::string folder, uint64_t seed);
  ~Volume();

  const std::string& folder() const { return folder_; }
  std::string ledger() const { return folder_ + "/ledger.db"; }
  // How many events may wait for it; nullopt: as many as usual.
  void set_queue_limit(std::optional<std::size_t> limit) { queue_limit_ = limit; }
  std::optional<std::size_t> queue_limit() const { return queue_limit_; }
  // The ledger's threads as steps of that process. `torn` hears that a commit broke off as
  // TearCommit wants it: the process is to end in this step.
  ledger::Workers WorkersOf(Process& process, std::function<void()> torn);

  // Nothing is written until Thaw: somebody is being killed.
  void Freeze() { vfs_.Freeze(); }
  void Thaw() { vfs_.Thaw(); }
  // The power goes. Whoever has files open here is frozen already and must be gone when Restore
  // says what is left of them.
  void CutPower() { cut_ = vfs_.disk(); }
  enum class Left : uint8_t { kSound, kOneBitFlipped };
  Left Restore(uint64_t seed);
  // From now on what a power cut leaves may have one bit that is not what was written.
  void LetBitsFlip() { bits_flip_ = true; }

  // What is written next stops in the middle, before that operation on the disk (from 1), and the
  // volume is frozen as of then.
  void TearCommit(int64_t operation) { tear_before_ = operation; }
  // It has come to that, since the last call.
  bool TakeTorn() { return std::exchange(torn_, false); }
  void Inject(fakes::DiskFault fault, int64_t n, int64_t times) { vfs_.Inject(fault, n, times); }
  // A commit that begins before then does not end before then.
  void HangUntil(SimTime until) { hangs_until_ = until; }
  void Heal();

 private:
  class Steps;
  SimTime TimeOf(ledger::Work work, Draws& draws) const;
  void FlipBit(Draws& draws) const;

  Loop& loop_;
  const std::string folder_;
  fakes::PowerCutVfs vfs_;
  fakes::PowerCutVfs::Disk cut_;
  std::optional<std::size_t> queue_limit_;
  SimTime hangs_until_{0};
  int64_t tear_before_ = 0;  // 0: never
  int64_t operations_ = 0;   // of the step under way
  bool torn_ = false;
  bool bits_flip_ = false;
};

}  // namespace tranche::sim
