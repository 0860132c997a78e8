#include "test/sim/product/mishaps.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace tranche::sim {
namespace {

using fakes::DiskFault;

constexpr int64_t kMillisecond = 1'000;
constexpr int64_t kSecond = 1'000 * kMillisecond;
// A rate is of four seconds of a replica: the highest is a mishap in 80 seconds.
constexpr int kSecondsOfARate = 4;
constexpr uint64_t kOfSteps = 0x73746570;  // draws of their own
constexpr uint64_t kOfTold = 0x746f6c64;

struct Range {
  int percent;  // of the cases
  int64_t low, high;
};

int64_t DrawOf(const std::vector<Range>& ranges, Draws& draws) {
  int64_t left = draws.Below(100);
  for (const Range& range : ranges) {
    left -= range.percent;
    if (left < 0) return draws.Between(range.low, range.high);
  }
  return draws.Between(ranges.back().low, ranges.back().high);
}

}  // namespace

std::optional<Draws> Mishaps::Draw(Fault fault) {
  if (quiet_ || !faults_.has(fault)) return std::nullopt;
  return script_.ActByChance(NameOf(fault), faults_.rate(fault) / kSecondsOfARate + 1);
}

void Mishaps::Strike(Loop& loop, Actor self, const Hurt& hurt) {
  if (auto draws = Draw(Fault::kClock)) SetClock(hurt, *draws);
  if (hurt.volume != nullptr) {
    if (auto draws = Draw(Fault::kDisk)) return BreakDisk(loop, self, hurt, *draws);
  }
  if (hurt.life == nullptr) return;
  if (auto draws = Draw(Fault::kPause)) Pause(loop, hurt, *draws);
  if (auto draws = Draw(Fault::kCrash)) Kill(loop, self, hurt, *draws);
}

void Mishaps::Kill(Loop& loop, Actor self, const Hurt& hurt, Draws& draws) {
  const int64_t how = draws.Below(10);
  if (how < 4) {
    // What a bind leaves in the ledger alone is there for a few steps of thousands.
    const bool when_told = hurt.volume != nullptr && draws.Fork(kOfTold).Chance(7'000);
    if (when_told) return hurt.life->set_dies_when_told(true);
    // By the step: most of them come in bursts, between which nothing can go wrong.
    hurt.life->process().EndAfter(draws.Between(1, 400),
                                  [life = hurt.life] { life->Die("killed between two steps"); });
  } else if (how < 7 && hurt.volume != nullptr) {
    hurt.volume->TearCommit(draws.Between(1, 30));
  } else {
    loop.After(SimTime{draws.Below(kSecond)}, self, hurt.kill);
  }
}

void Mishaps::Pause(Loop& loop, const Hurt& hurt, Draws& draws) {
  const SimTime time{DrawOf({{60, 20 * kMillisecond, 2 * kSecond},
                             {25, 2 * kSecond, 12 * kSecond},
                             {15, 12 * kSecond, 40 * kSecond}},
                            draws)};
  Process& process = hurt.life->process();
  const auto pause = [&loop, &process, tell = hurt.tell](SimTime so_long) {
    tell(fmt::format("stands still for {} ms", so_long.count() / kMillisecond));
    loop.Hold(process.actor(), loop.now() + so_long);
  };
  Draws own = draws.Fork(kOfSteps);
  if (!own.Chance(5'000)) return pause(time);
  // In the middle of what it does, and for longer than a lease where that is drawn.
  const SimTime longer = own.Chance(5'000) ? SimTime(own.Between(15, 40) * kSecond) : time;
  process.EndAfter(own.Between(1, 400), [pause, longer] { pause(longer); });
}

void Mishaps::SetClock(const Hurt& hurt, Draws& draws) {
  if (draws.Chance(3'000)) {
    const int parts = static_cast<int>(draws.Between(-200, 200));
    hurt.tell(fmt::format("clock runs {} parts in a million faster", parts));
    return hurt.clocks->Drift(parts);
  }
  const int64_t by = DrawOf({{40, 1, 999}, {40, 1'000, 60'000}, {20, 60'000, 3'600'000}}, draws) *
                     (draws.Chance(5'000) ? 1 : -1);
  hurt.tell(fmt::format("wall clock set by {} ms", by));
  hurt.clocks->JumpWall(std::chrono::milliseconds(by));
}

void Mishaps::BreakDisk(Loop& loop, Actor self, const Hurt& hurt, Draws& draws) {
  Volume& volume = *hurt.volume;
  const int64_t how = draws.Below(10);
  if (how < 2) return hurt.cut_power(draws.Next());
  if (how < 4) {
    hurt.cut_at_death();
    return volume.TearCommit(draws.Between(1, 30));
  }
  const SimTime until{draws.Between(kSecond, 40 * kSecond)};
  if (how < 6) {
    hurt.tell(fmt::format("disk hangs for {} ms", until.count() / kMillisecond));
    return volume.HangUntil(loop.now() + until);
  }
  constexpr std::pair<DiskFault, const char*> kFaults[] = {
      {DiskFault::kFull, "full"},
      {DiskFault::kWriteError, "fails to write"},
      {DiskFault::kReadOnly, "read-only"},
      {DiskFault::kShortWrite, "full in the middle of a write"},
      {DiskFault::kSyncUnsaid, "fails to sync"},
      {DiskFault::kSyncReverted, "fails to sync and forgets"}};
  const auto& [fault, name] = kFaults[draws.Below(std::ssize(kFaults))];
  const int64_t times = draws.Chance(5'000) ? 1 : 1'000'000;
  hurt.tell(fmt::format("disk {}", name));
  volume.Inject(fault, draws.Between(1, 30), times);
  loop.After(until, self, [&volume] { volume.Heal(); });
}

}  // namespace tranche::sim
