#include "bench/ring/choose_time.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "bench/fill/draws.h"
#include "topology/machine/machine_table.h"

namespace tranche::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::vector<GpuSet> FreeSets(const Machine& machine) {
  constexpr int kAllSetsTo = 8;
  constexpr int kSample = 250;
  std::vector<GpuSet> sets;
  if (machine.size() <= kAllSetsTo) {
    for (uint64_t bits = 1; bits < uint64_t{1} << machine.size(); ++bits) {
      sets.push_back(GpuSet::Of(bits));
    }
    return sets;
  }
  fill::Draws draws(1);
  while (sets.size() < kSample) {
    // Of two draws together: three quarters are free, so that the choice is large.
    const uint64_t all = uint64_t{1} << machine.size();
    const GpuSet set = GpuSet::Of(draws.Below(all) | draws.Below(all));
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
  }
  return sets;
}

// Of one question each.
std::vector<double> Ask(MachineTable& table, const std::vector<GpuSet>& sets) {
  std::vector<double> times;
  for (const GpuSet free : sets) {
    for (int count = 1; count <= free.size(); ++count) {
      const Clock::time_point begin = Clock::now();
      static_cast<void>(table.Best(free, count, {}));
      times.push_back(Since(begin));
    }
  }
  return times;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

ChooseTime MeasureChoosing(const std::string& name, const std::shared_ptr<const Machine>& machine) {
  constexpr int kTables = 5;
  ChooseTime time = {.machine = name, .gpus = machine->size()};
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kTables; ++i) MachineTable table(machine);
  time.table_us = Since(begin) / kTables;
  MachineTable table(machine);
  const std::vector<GpuSet> sets = FreeSets(*machine);
  std::vector<double> first = Ask(table, sets);
  time.questions = first.size();
  time.again_us = Mean(Ask(table, sets));
  time.first_us = Mean(first);
  std::sort(first.begin(), first.end());
  time.first_p99_us = first[first.size() * 99 / 100];
  return time;
}

std::shared_ptr<const Machine> IrregularMachine() {
  constexpr std::size_t kGpus = 16;
  fill::Draws draws(16);
  std::vector<Link> links(kGpus * kGpus);
  for (std::size_t left = 0; left < kGpus; ++left) {
    for (std::size_t right = 0; right < left; ++right) {
      const auto nvlinks = static_cast<uint8_t>(draws.Below(4) == 0 ? 0 : 1 + draws.Below(6));
      links[left * kGpus + right] = links[right * kGpus + left] = {PathClass::kSys, nvlinks};
    }
  }
  return std::make_shared<const Machine>(std::vector<MachineGpu>(kGpus), std::move(links),
                                         std::vector<MachineNic>());
}

}  // namespace tranche::bench
