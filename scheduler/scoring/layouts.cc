#include "scheduler/scoring/layouts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "topology/mig.h"

namespace tranche {
namespace {

constexpr int64_t kMinGap = 16;
constexpr int64_t kMaxGap = 1000;
// A table follows when so much of the shares moved, in kAll parts, both ways together.
constexpr int64_t kAll = 1000;
constexpr int64_t kMoved = 40;
// MigPricer's values are in so many parts of a memory unit.
constexpr int64_t kUnit = 65'536;

// How often each profile was asked for, all profiles together kAll.
std::vector<int64_t> CountsOf(const MigBoard& board, const Mix& mix) {
  std::vector<int64_t> counts(board.profiles.size(), 0);
  for (const MixType& type : mix.types) {
    if (type.ask().resource != Resource::kMig) continue;
    const MigProfile* profile = FindMigProfile(board, type.ask().mig.profile);
    if (profile == nullptr) continue;
    counts[static_cast<std::size_t>(profile - board.profiles.data())] +=
        type.lasting * type.ask().count;
  }
  return counts;
}

int64_t Distance(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  const int64_t all_before = std::accumulate(before.begin(), before.end(), int64_t{0});
  const int64_t all_after = std::accumulate(after.begin(), after.end(), int64_t{0});
  if (all_before == 0 || all_after == 0) return all_before == all_after ? 0 : 2 * kAll;
  int64_t sum = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    sum += std::abs(after[i] * kAll / all_after - before[i] * kAll / all_before);
  }
  return sum;
}

}  // namespace

void Layouts::Follow(Board& board, const Mix& now) {
  std::vector<int64_t> counts = CountsOf(board.space->board(), now);
  if (Distance(board.counts, counts) < kMoved) return;
  board.counts = std::move(counts);
  board.pricer->SetMix(board.counts);
  board.works = true;
}

void Layouts::Saw(const Inventory& inventory, const MixLearner& learner) {
  if (!inventory.planned()) return;
  const MigSpace* space = inventory.cards.front().space;
  if (std::ranges::find(boards_, space, &Board::space) != boards_.end()) return;
  Board& board = boards_.emplace_back();
  board.space = space;
  board.pricer = std::make_unique<MigPricer>(*space);
  board.counts.assign(space->board().profiles.size(), 0);
  Follow(board, learner.Now());
}

void Layouts::Arrived(const PodRequest& request, const MixLearner& learner) {
  const bool asks_mig = std::ranges::any_of(
      request.asks, [](const Ask& ask) { return ask.resource == Resource::kMig; });
  if (!asks_mig || ++arrivals_ < next_look_) return;
  next_look_ = arrivals_ + std::clamp(arrivals_ / 2, kMinGap, kMaxGap);
  if (boards_.empty()) return;
  const Mix now = learner.Now();
  for (Board& board : boards_) Follow(board, now);
}

bool Layouts::HasWork() const { return std::ranges::any_of(boards_, &Board::works); }

bool Layouts::Work() {
  const auto board = std::ranges::find_if(boards_, &Board::works);
  if (board == boards_.end()) return false;
  if (!board->pricer->Work()) {
    board->works = false;
    values_[board->space] = board->pricer->values();
    ++version_;
  }
  return HasWork();
}

LayoutMemory Layouts::Memory() const {
  LayoutMemory memory;
  for (const Board& board : boards_) memory.boards.push_back({board.space, board.counts});
  memory.values = values_;
  return memory;
}

void Layouts::Take(const LayoutMemory& memory) {
  for (const LayoutMemory::Board& known : memory.boards) {
    auto board = std::ranges::find(boards_, known.space, &Board::space);
    if (board == boards_.end()) {
      board = boards_.emplace(boards_.end());
      board->space = known.space;
      board->pricer = std::make_unique<MigPricer>(*known.space);
    }
    board->counts = known.counts;
    board->works = false;
  }
  values_ = memory.values;
  ++version_;
}

int64_t Layouts::CostOf(const Inventory& inventory, const Load& load, const Picks& picks) const {
  const MigSpace& space = *inventory.cards.front().space;
  const int64_t units = space.board().units;
  const auto table = values_.find(&space);
  if (table != values_.end() && !table->second.empty()) {
    return -LayoutGain(inventory, load, picks, values_) * 1000 / (units * kUnit);
  }
  // Nothing learned yet: fuller cards first.
  int64_t free = 0;
  for (const Pick& pick : picks) {
    free += units - space.used_units(load.cards[static_cast<std::size_t>(pick.card)].layout);
  }
  return free * 1000 / units;
}

}  // namespace tranche
