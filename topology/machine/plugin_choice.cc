#include "topology/machine/plugin_choice.h"

#include <algorithm>
#include <cstdint>

#include "topology/machine/set_values.h"

namespace tranche {
namespace {

int PathPoints(PathClass path) { return 10 + 10 * static_cast<int>(path); }

// Some GPU has more NVLinks than fit on one, so all of them end in a switch.
bool IsSwitched(const Machine& machine) {
  for (int gpu = 0; gpu < machine.size(); ++gpu) {
    int links = 0;
    for (int other = 0; other < machine.size(); ++other) {
      if (other != gpu) links += machine.link(gpu, other).nvlinks;
    }
    if (links > kMaxNvlinks) return true;
  }
  return false;
}

// Most divisions of `free` GPUs into sets of `count`; stops counting beyond kMostPartitions.
int64_t Divisions(int free, int count) {
  int64_t divisions = 1;
  // The lowest GPU left is with any count - 1 of the others; the smaller set is any of all.
  const auto times_choose = [&](int from, int of) {
    for (int i = 1; i <= of && divisions <= kMostPartitions; ++i) {
      divisions = divisions * (from - of + i) / i;
    }
  };
  times_choose(free, free % count);
  for (int left = free - free % count; left > 0 && divisions <= kMostPartitions; left -= count) {
    times_choose(left - 1, count - 1);
  }
  return divisions;
}

// Divides GPUs as the plugin does: the lowest left comes with all sets of others in ascending
// order, where the padding of the smaller set comes after all GPUs.
class Replay {
 public:
  Replay(const Machine& machine, GpuSet free, int count)
      : count_(count), smaller_(free.size() % count), size_(machine.size()) {
    const bool switched = IsSwitched(machine);
    for (int left = 0; left < size_; ++left) {
      for (int right = 0; right < size_; ++right) {
        const int nvlinks = switched ? 0 : machine.link(left, right).nvlinks;
        points_.push_back(100 * nvlinks + PathPoints(Nearness(machine, left, right)));
      }
    }
    Divide(free, smaller_ > 0 ? Padding::kLeft : Padding::kNone, 0);
  }
  std::vector<GpuSet> Take() { return std::move(choices_); }

 private:
  enum class Padding : uint8_t { kNone, kLeft };  // of the one smaller set
  struct Part {
    GpuSet set;
    int points = 0;
  };

  void Divide(GpuSet rest, Padding padding, int points) {
    if (rest.empty()) {
      Judge(points);
      return;
    }
    GpuSet others = rest;
    GpuSet set;
    set.Add(rest.first());
    others.Remove(rest.first());
    Extend({set, 0}, others, rest, padding, points);
  }

  // Adds GPUs of `from` to the part until it is full; `rest` is all that is still to be divided.
  void Extend(const Part& part, GpuSet from, GpuSet rest, Padding padding, int points) {
    if (part.set.size() == count_) {
      Finish(part, rest, padding, points);
      return;
    }
    for (const int gpu : from) {
      Part grown = part;
      for (const int member : part.set) {
        grown.points += points_[static_cast<std::size_t>(member * size_ + gpu)];
      }
      grown.set.Add(gpu);
      Extend(grown, from - GpuSet::FirstOf(gpu + 1), rest, padding, points);
    }
    if (padding == Padding::kLeft && part.set.size() == smaller_) {
      Finish(part, rest, Padding::kNone, points);
    }
  }

  void Finish(const Part& part, GpuSet rest, Padding padding, int points) {
    parts_.push_back(part);
    Divide(rest - part.set, padding, points + part.points);
    parts_.pop_back();
  }

  // A complete division: its best sets are choices if no other scores more.
  void Judge(int points) {
    if (points < most_) return;
    if (points > most_) choices_.clear();
    most_ = points;
    int best = 0;
    for (const Part& part : parts_) best = std::max(best, part.points);
    for (const Part& part : parts_) {
      const bool known = std::find(choices_.begin(), choices_.end(), part.set) != choices_.end();
      if (part.points == best && !known) choices_.push_back(part.set);
    }
  }

  int count_;
  int smaller_;  // GPUs in the smaller set
  int size_;
  std::vector<int> points_;
  std::vector<Part> parts_;
  int most_ = -1;
  std::vector<GpuSet> choices_;
};

}  // namespace

std::vector<GpuSet> PluginChoices(const Machine& machine, GpuSet free, int count) {
  free = free & machine.all();
  if (count < 1 || free.size() < count || Divisions(free.size(), count) > kMostPartitions) {
    return {};
  }
  std::vector<GpuSet> choices = Replay(machine, free, count).Take();
  const bool fails =
      std::any_of(choices.begin(), choices.end(), [&](GpuSet set) { return set.size() != count; });
  return fails ? std::vector<GpuSet>() : choices;
}

std::optional<GpuSet> PluginChoice(const Machine& machine, GpuSet free, int count) {
  const std::vector<GpuSet> choices = PluginChoices(machine, free, count);
  return choices.empty() ? std::nullopt : std::optional(choices.front());
}

}  // namespace tranche
