#include "scheduler/scoring/mig_value.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "scheduler/scoring/mig_exp.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Constants of benchmarks B7; neighbouring ones do as well.
constexpr int64_t kOffersTimesLoad = 18;  // each profile is offered at 20 times its fair rate,
constexpr int64_t kOffers = 20;           // which is that of a load of 0.9
// Temperature 0.15 eighths, in powers of two: 0.15 x ln 2 and its inverse, with 20 bits.
constexpr int kTemperatureBits = 20;
constexpr int64_t kTemperature = 109'023;
constexpr int64_t kInverseTemperature = 10'085'165;
constexpr int kFirstSteps = 150;
// Fewer leave tables behind that cost points for as long as the shares stay where they are.
constexpr int kNextSteps = 48;
// A price moves by this part of the share that is missing: at first by much, so that it comes near.
constexpr int64_t kFarPart = 2;
constexpr int64_t kNearPart = 8;
constexpr int kNearSteps = kFirstSteps / 2;
constexpr int64_t kAveragedSteps = 16;
constexpr int kSweepsPerStep = 20;
constexpr int kSweepsPerCall = 2;
constexpr int64_t kEighths = 8;
constexpr int kProbabilityBits = 40;
constexpr int kChoiceBits = 22;
// Counts are scaled to fewer bits than this, so that no product below leaves 63.
constexpr int64_t kMostCounts = int64_t{1} << 20;

// Same proportions, small enough; what is asked for at all stays so.
std::vector<int64_t> Scaled(std::span<const int64_t> counts) {
  std::vector<int64_t> scaled;
  int64_t most = 1;
  for (const int64_t count : counts) most = std::max(most, count);
  const int64_t per_profile = kMostCounts / static_cast<int64_t>(counts.size() + 1);
  const int64_t divisor = most / per_profile + 1;
  for (const int64_t count : counts) {
    scaled.push_back(count <= 0 ? 0 : std::max<int64_t>(1, count / divisor));
  }
  return scaled;
}

// At most an eighth of all requests ask for something else than before.
bool IsSmallChange(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const int64_t from_total = std::accumulate(from.begin(), from.end(), int64_t{0});
  const int64_t to_total = std::accumulate(to.begin(), to.end(), int64_t{0});
  int64_t moved = 0;  // twice the requests, in 1 / (from_total * to_total)
  for (std::size_t i = 0; i < from.size(); ++i) {
    moved += std::abs(from[i] * to_total - to[i] * from_total);
  }
  return moved * 4 <= from_total * to_total;
}

}  // namespace

MigPricer::MigPricer(const MigSpace& space) : space_(&space) {
  const std::size_t layouts = space.size();
  const MigProfile* profiles = space.board().profiles.data();
  for (std::size_t layout = 0; layout < layouts; ++layout) {
    first_without_.push_back(without_.size());
    const auto id = static_cast<LayoutId>(layout);
    for (const MigInstance& instance : space.instances(id)) {
      without_.push_back(
          space.Without(id, static_cast<int>(instance.profile - profiles), instance.start));
    }
    most_instances_ = std::max(most_instances_, static_cast<int64_t>(space.instances(id).size()));
  }
  first_without_.push_back(without_.size());
  now_.values.resize(layouts);
  now_.probabilities.resize(layouts);
  now_.probabilities[kEmptyLayout] = int64_t{1} << kProbabilityBits;
  prices_.resize(space.board().profiles.size());
  next_ = now_;
  averages_ = now_.values;
}

int64_t MigPricer::WidthOf(int profile) const {
  const MigBoard& board = space_->board();
  return kFixedOne * kEighths * board.profiles[static_cast<std::size_t>(profile)].size /
         board.units;
}

void MigPricer::SetMix(std::span<const int64_t> counts) {
  const MigBoard& board = space_->board();
  TRANCHE_CHECK_EQ(counts.size(), board.profiles.size());
  std::vector<int64_t> mix = Scaled(counts);
  int64_t requests = 0;
  int64_t units = 0;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    // A space made without the profile has no place for it.
    if (space_->steps(kEmptyLayout, static_cast<int>(i)).empty()) mix[i] = 0;
    requests += mix[i];
    units += mix[i] * board.profiles[i].size;
  }
  if (requests == 0) return;
  const bool small_change = !counts_.empty() && IsSmallChange(counts_, mix);
  counts_ = std::move(mix);

  // Events of the chain: offers at 20 times their fair rate, and departures at rate one.
  const int64_t events = kOffersTimesLoad * board.units * requests + most_instances_ * units;
  departure_rate_ = (units << kPowerBits) / events;
  offers_.clear();
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    offers_.push_back(
        {.profile = static_cast<int>(i),
         .rate = (kOffersTimesLoad * board.units * counts_[i] << kPowerBits) / events});
  }
  steps_left_ = std::max(steps_left_, small_change ? kNextSteps : kFirstSteps);
  sweeps_done_ = 0;
}

bool MigPricer::Work() {
  if (steps_left_ == 0) return false;
  for (int i = 0; i < kSweepsPerCall; ++i) Sweep();
  sweeps_done_ += kSweepsPerCall;
  if (sweeps_done_ < kSweepsPerStep) return true;
  sweeps_done_ = 0;
  --steps_left_;
  MovePrices();
  // The search for prices swings, and a table from the end of a swing is worth up to 5 points less
  // than the average of the last ones. What a search from nothing passes at first does not count.
  if (steps_left_ >= kNearSteps) averages_ = now_.values;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    averages_[i] += (now_.values[i] - averages_[i]) / kAveragedSteps;
  }
  if (steps_left_ > 0) return true;
  Publish();
  return false;
}

void MigPricer::Sweep() {
  for (Offer& offer : offers_) offer.accepted = 0;
  next_.probabilities = now_.probabilities;
  for (std::size_t layout = 0; layout < now_.values.size(); ++layout) {
    const int64_t value = now_.values[layout];
    const int64_t leaving =
        now_.probabilities[layout] * (departure_rate_ >> (kPowerBits - kChoiceBits)) >> kChoiceBits;
    int64_t gain = 0;
    for (std::size_t i = first_without_[layout]; i < first_without_[layout + 1]; ++i) {
      gain += departure_rate_ * (now_.values[without_[i]] - value);
      next_.probabilities[without_[i]] += leaving;
      next_.probabilities[layout] -= leaving;
    }
    for (Offer& offer : offers_) gain += SweepOffer(static_cast<LayoutId>(layout), offer);
    next_.values[layout] = value + (gain >> kPowerBits);
  }
  const int64_t base = next_.values[kEmptyLayout];
  for (int64_t& value : next_.values) value -= base;
  std::swap(now_.values, next_.values);
  std::swap(now_.probabilities, next_.probabilities);
}

int64_t MigPricer::SweepOffer(LayoutId layout, Offer& offer) {
  const std::span<const MigSpace::Step> steps = space_->steps(layout, offer.profile);
  if (steps.empty()) return 0;
  const int64_t base = prices_[static_cast<std::size_t>(offer.profile)] - now_.values[layout];
  int64_t best = 0;  // declining
  for (const MigSpace::Step& step : steps) best = std::max(best, base + now_.values[step.after]);
  const auto likelihood = [&](int64_t gain) {
    return PowerOfHalf((best - gain) * kInverseTemperature >> kTemperatureBits);
  };
  int64_t sum = likelihood(0);
  for (const MigSpace::Step& step : steps) sum += likelihood(base + now_.values[step.after]);

  if (const int64_t here = now_.probabilities[layout]; here > 0) {
    const int64_t share = (offer.rate << kChoiceBits) / sum;
    for (const MigSpace::Step& step : steps) {
      const int64_t chosen = likelihood(base + now_.values[step.after]) * share >> kPowerBits;
      const int64_t flow = here * chosen >> kChoiceBits;
      next_.probabilities[step.after] += flow;
      next_.probabilities[layout] -= flow;
      offer.accepted += flow;
    }
  }
  return offer.rate * (best + (Log2(sum) * kTemperature >> kTemperatureBits));
}

void MigPricer::MovePrices() {
  const int64_t part = steps_left_ >= kNearSteps ? kFarPart : kNearPart;
  for (const Offer& offer : offers_) {
    constexpr int kShift = kFixedBits + kPowerBits - kProbabilityBits;
    const int64_t share = (offer.accepted * kOffers << kShift) / std::max<int64_t>(offer.rate, 1);
    int64_t& price = prices_[static_cast<std::size_t>(offer.profile)];
    price = std::clamp(price + (kFixedOne - share) / part, -kFixedOne * kEighths * 3 / 2,
                       WidthOf(offer.profile) * 3 / 2);
  }
}

void MigPricer::Publish() {
  const int64_t units = space_->board().units;
  values_.resize(now_.values.size());
  for (std::size_t layout = 0; layout < values_.size(); ++layout) {
    // Free room has a value of its own, so that empty GPUs stay so: 0.1 x free^2 / 16 in eighths.
    const int64_t free = units - space_->used_units(static_cast<LayoutId>(layout));
    const int64_t room = kFixedOne * 2 * free * free / (5 * units * units);
    values_[layout] =
        static_cast<int32_t>((averages_[layout] + room) * units / kEighths >> (kFixedBits - 16));
  }
}

}  // namespace tranche
