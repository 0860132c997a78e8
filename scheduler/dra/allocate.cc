#include "scheduler/dra/allocate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "scheduler/dra/capacity.h"
#include "scheduler/dra/claim_constraints.h"

namespace tranche::dra {
namespace {

// How many devices were passed over at one place, and why.
struct Tally {
  int matching = 0;
  int taken = 0;
  int blocked = 0;
  int tainted = 0;
  int unequal = 0;
  int small = 0;

  std::string str() const {
    if (matching == 0) return "no device matches";
    std::string text = fmt::format("{} devices match", matching);
    const auto add = [&text](int count, std::string_view what) {
      if (count > 0) text += fmt::format(", {} {}", count, what);
    };
    add(taken, "taken");
    add(blocked, "without free counters");
    add(small, "without the capacity");
    add(tainted, "with taints");
    add(unequal, "against a constraint");
    return text;
  }
};

// One way to meet one request of one claim.
struct Way {
  const RequestChoice* choice = nullptr;
  std::vector<std::optional<Match>> matches;  // by device
  std::vector<bool> tried;                    // by bystander
  std::vector<int> all;                       // devices of allocationMode All
  int count = 0;
};

struct Place {
  std::size_t claim = 0;
  std::size_t request = 0;
  std::size_t choice = 0;
  int device = 0;  // index of the device within its request
  int start = 0;   // the first device to look at
  bool chosen = false;

  auto Order() const { return std::tuple(claim, request, device); }
};

enum class Step : uint8_t { kDone, kFailed, kStop };

class Search {
 public:
  Search(const NodeBooks& books, std::span<const Claim* const> claims, Selectors& selectors,
         int most_steps)
      : books_(books), selectors_(selectors), steps_left_(most_steps), counters_(books.counters) {
    for (const DeviceBook& device : books.devices) {
      shares_.push_back(device.shares);
      left_.push_back(device.capacity_left);
    }
    allocating_.resize(books.devices.size());
    results_.resize(claims.size());
    for (const Claim* claim : claims) {
      claims_.push_back(claim);
      constraints_.emplace_back(*claim);
    }
  }

  // Below 0: it was given up.
  int steps_left() const { return steps_left_; }
  Prediction Run() {
    ways_.resize(claims_.size());
    for (std::size_t c = 0; c < claims_.size(); ++c) {
      if (!claims_[c]->allocation && !Prepare(c)) return std::move(stopped_);
    }
    const Step step = Next({});
    if (step == Step::kStop) return std::move(stopped_);
    Prediction prediction;
    // Devices we cannot judge were taken for matching ones: what fails even so fails for certain,
    // except where a doubt says otherwise.
    if (!doubt_.empty() && (step == Step::kDone || failure_in_doubt_)) {
      prediction.request = doubtful_request_;
      prediction.why = doubt_;
    } else if (step == Step::kDone) {
      prediction.kind = Prediction::Kind::kFits;
      prediction.devices = std::move(results_);
    } else {
      prediction.kind = Prediction::Kind::kNoFit;
      prediction.request = RequestName(furthest_);
      prediction.why = why_;
    }
    return prediction;
  }

 private:
  std::string RequestName(const Place& place) const {
    const Claim& claim = *claims_[place.claim];
    return fmt::format("{} {}", claim.str(), claim.requests[place.request].name);
  }

  Step Stop(Prediction::Kind kind, const Place& place, std::string why) {
    stopped_.kind = kind;
    // An error after a doubt may never be reached.
    if (kind == Prediction::Kind::kAborts && !doubt_.empty()) {
      stopped_.kind = Prediction::Kind::kUnknown;
    }
    stopped_.request = RequestName(place);
    stopped_.why = std::move(why);
    return Step::kStop;
  }

  void Doubt(const Place& place, std::string why) {
    if (!doubt_.empty()) return;
    doubt_ = std::move(why);
    doubtful_request_ = RequestName(place);
  }

  Way& WayAt(const Place& place) { return ways_[place.claim][place.request][place.choice]; }
  const DeviceBook& Book(int device) const {
    return books_.devices[static_cast<std::size_t>(device)];
  }
  const Pool& PoolOf(int device) const {
    return books_.pools[static_cast<std::size_t>(Book(device).pool)];
  }

  // False: the allocator does not even begin.
  bool Prepare(std::size_t claim) {
    std::size_t least = 0;
    for (std::size_t r = 0; r < claims_[claim]->requests.size(); ++r) {
      const Request& request = claims_[claim]->requests[r];
      std::vector<Way>& ways = ways_[claim].emplace_back();
      int64_t fewest = INT64_MAX;
      for (std::size_t i = 0; i < request.choices.size(); ++i) {
        ways.emplace_back();
        const Place place{claim, r, i};
        if (!PrepareWay(place, request.choices[i])) return false;
        fewest = std::min<int64_t>(fewest, ways.back().count);
      }
      least += static_cast<std::size_t>(fewest);
    }
    if (least <= kMostResults) return true;
    Stop(Prediction::Kind::kAborts, {claim},
         fmt::format("the claim asks for {} devices, and {} are allowed", least, kMostResults));
    return false;
  }

  bool PrepareWay(const Place& place, const RequestChoice& choice) {
    Way& way = WayAt(place);
    way.choice = &choice;
    way.matches.resize(books_.devices.size());
    way.tried.resize(books_.bystanders.size());
    way.count = static_cast<int>(std::min<int64_t>(choice.count, kMostResults + 1));
    if (selectors_.FindClass(choice.device_class) == nullptr) {
      Stop(Prediction::Kind::kAborts, place,
           fmt::format("there is no device class {}", choice.device_class));
      return false;
    }
    if (!choice.all) return true;
    for (const Pool& pool : books_.pools) {
      if (pool.usable()) continue;
      Stop(Prediction::Kind::kAborts, place,
           fmt::format("all devices are asked for, and pool {} of {} is {}", pool.name, pool.driver,
                       pool.incomplete ? "incomplete" : "invalid: " + pool.invalid));
      return false;
    }
    auto bystander = books_.bystanders.begin();
    for (int device = 0; device < static_cast<int>(books_.devices.size()); ++device) {
      if (!PassBystanders(place, device, bystander)) return false;
      const std::optional<bool> match = Matches(place, device);
      if (!match) return false;
      if (*match && CouldHold(place, choice, device)) way.all.push_back(device);
    }
    if (!PassBystanders(place, static_cast<int>(books_.devices.size()), bystander)) return false;
    failure_in_doubt_ |= !doubt_.empty();
    way.count = static_cast<int>(way.all.size());
    return true;
  }

  // nullopt: an error; the search is stopped. A match in doubt counts as one.
  std::optional<bool> Matches(const Place& place, int device) {
    Way& way = WayAt(place);
    std::optional<Match>& known = way.matches[static_cast<std::size_t>(device)];
    if (!known) {
      Verdict verdict =
          selectors_.Matches(*way.choice, *Book(device).device, PoolOf(device).driver);
      known = verdict.match;
      if (verdict.match == Match::kError) {
        Stop(Prediction::Kind::kAborts, place,
             fmt::format("device {}: {}", Book(device).device->name, verdict.why));
        return std::nullopt;
      }
      if (verdict.match == Match::kUnknown) Doubt(place, std::move(verdict.why));
    }
    return *known != Match::kNo;
  }

  using Bystanders = std::vector<NodeBooks::Bystander>::const_iterator;
  // Selectors are tried on devices of other nodes too where a slice has both; what they say does
  // not count, but an error does. Those that come before `device`. False: the search is stopped.
  bool PassBystanders(const Place& place, int device, Bystanders& next) {
    Way& way = WayAt(place);
    for (; next != books_.bystanders.end() && std::cmp_less_equal(next->place, device); ++next) {
      const auto index = static_cast<std::size_t>(next - books_.bystanders.begin());
      const bool in_use = next->taken && !way.choice->admin && !way.choice->all;
      if (in_use || way.tried[index]) continue;
      way.tried[index] = true;
      const Pool& pool = books_.pools[static_cast<std::size_t>(next->pool)];
      Verdict verdict = selectors_.Matches(*way.choice, *next->device, pool.driver);
      if (verdict.match == Match::kError) {
        Stop(Prediction::Kind::kAborts, place,
             fmt::format("device {}: {}", next->device->name, verdict.why));
        return false;
      }
      if (verdict.match == Match::kUnknown) Doubt(place, std::move(verdict.why));
    }
    return true;
  }

  // nullopt: the device cannot give the choice what it asks for.
  std::optional<std::vector<Quantity>> ConsumedBy(const Place& place, const RequestChoice& choice,
                                                  int device) {
    const Device& object = *Book(device).device;
    if (!choice.capacity.empty() && HasFractionalRange(object)) {
      Doubt(place, "releases differ in how parts of a capacity are rounded");
      failure_in_doubt_ = true;
    }
    return ConsumedOf(object, PoolOf(device).driver, choice.capacity);
  }

  // Would the device do if nobody else held a part of it?
  bool CouldHold(const Place& place, const RequestChoice& choice, int device) {
    const auto consumed = ConsumedBy(place, choice, device);
    return consumed && std::ranges::equal(*consumed, Book(device).device->capacities,
                                          std::less_equal<>(), {}, &Capacity::value);
  }

  Step Next(const Place& place) {
    if (place.claim == claims_.size()) return Step::kDone;
    const Claim& claim = *claims_[place.claim];
    if (claim.allocation || place.request == claim.requests.size()) {
      return Next({place.claim + 1});
    }
    if (--steps_left_ < 0) {
      return Stop(Prediction::Kind::kUnknown, place, "the search was given up");
    }
    if (!place.chosen) return TryChoices(place);
    const Way& way = WayAt(place);
    if (way.choice->all && way.all.empty()) {
      Remember(place, "no device matches");
      return Step::kFailed;
    }
    if (place.device == way.count) return Next({place.claim, place.request + 1});
    const std::size_t results =
        results_[place.claim].size() + static_cast<std::size_t>(way.count - place.device);
    if (results > kMostResults) {
      Remember(place, fmt::format("the claim would get more than {} devices", kMostResults));
      return Step::kFailed;
    }
    return way.choice->all ? TryAll(place, way) : TryDevices(place, way);
  }

  Step TryChoices(const Place& place) {
    for (std::size_t i = 0; i < ways_[place.claim][place.request].size(); ++i) {
      const Step step = Next({place.claim, place.request, i, 0, 0, true});
      if (step != Step::kFailed) return step;
    }
    return Step::kFailed;
  }

  // The next of all of them: it or nothing.
  Step TryAll(const Place& place, const Way& way) {
    const int device = way.all[static_cast<std::size_t>(place.device)];
    Tally tally;
    tally.matching = static_cast<int>(way.all.size());
    if (InUse(place, *way.choice, device)) {
      ++tally.taken;
      Remember(place, tally.str());
      return Step::kFailed;
    }
    return TryDevice(place, *way.choice, device, tally);
  }

  Step TryDevices(const Place& place, const Way& way) {
    Tally tally;
    const int end = static_cast<int>(books_.devices.size());
    auto bystander = std::ranges::lower_bound(
        books_.bystanders, static_cast<std::size_t>(place.start), {}, &NodeBooks::Bystander::place);
    for (int device = place.start; device < end; ++device) {
      if (!PassBystanders(place, device, bystander)) return Step::kStop;
      // What is in use is not looked at any closer, so its selectors cannot fail.
      if (InUse(place, *way.choice, device)) continue;
      const std::optional<bool> match = Matches(place, device);
      if (!match) return Step::kStop;
      if (!*match) continue;
      ++tally.matching;
      const Step step = TryDevice(place, *way.choice, device, tally);
      if (step != Step::kFailed) return step;
    }
    if (!PassBystanders(place, end, bystander)) return Step::kStop;
    if (IsFurther(place)) Remember(place, WithTaken(place, *way.choice, tally).str());
    return Step::kFailed;
  }

  // With those in use that would have matched.
  Tally WithTaken(const Place& place, const RequestChoice& choice, Tally tally) {
    for (int device = 0; device < static_cast<int>(books_.devices.size()); ++device) {
      if (!InUse(place, choice, device)) continue;
      const Verdict verdict =
          selectors_.Matches(choice, *Book(device).device, PoolOf(device).driver);
      if (verdict.match != Match::kYes) continue;
      ++tally.taken;
      ++tally.matching;
    }
    return tally;
  }

  bool InUse(const Place& place, const RequestChoice& choice, int device) const {
    const std::vector<std::size_t>& by = allocating_[static_cast<std::size_t>(device)];
    if (choice.admin) return std::ranges::find(by, place.claim) != by.end();
    return Book(device).taken || !by.empty();
  }

  // The device is not in use and matches.
  Step TryDevice(const Place& place, const RequestChoice& choice, int device, Tally& tally) {
    const Device& object = *Book(device).device;
    const auto index = static_cast<std::size_t>(device);
    const auto consumed = ConsumedBy(place, choice, device);
    const bool is_small =
        !consumed || !std::ranges::equal(*consumed, left_[index], std::less_equal<>());
    // Of all devices, what is left of one is looked at last.
    if (is_small && !choice.all) {
      ++tally.small;
      return Step::kFailed;
    }
    const bool takes_counters = !choice.admin && (!object.shareable || shares_[index] == 0);
    if (choice.admin && !Book(device).needs.empty()) {
      Doubt(place, "releases differ in what adminAccess to a partition needs");
    }
    if (takes_counters && !HasCounters(device)) {
      ++tally.blocked;
      return Step::kFailed;
    }
    if (!IsToleratedBy(object, choice.tolerations)) {
      ++tally.tainted;
      return Step::kFailed;
    }
    const Request& request = claims_[place.claim]->requests[place.request];
    ClaimConstraints& constraints = constraints_[place.claim];
    const ClaimConstraints::Answer answer = constraints.Add(request.name, choice.name, object);
    if (answer == ClaimConstraints::Answer::kNo) {
      if (choice.all) {
        return Stop(
            Prediction::Kind::kAborts, place,
            fmt::format("device {} would break a constraint, and all are asked for", object.name));
      }
      ++tally.unequal;
      return Step::kFailed;
    }
    if (answer == ClaimConstraints::Answer::kUnknown) {
      Doubt(place, fmt::format("device {} has a list where a constraint compares", object.name));
    }
    if (is_small) {
      constraints.RemoveLast(request.name, choice.name);
      ++tally.small;
      return Step::kFailed;
    }
    // Before 1.37 one request may get the same device several times.
    if (object.shareable && !choice.all && choice.count > 1) {
      Doubt(place, "releases differ in how one request gets several shares");
      failure_in_doubt_ = true;
    }
    Take(place, choice, device, *consumed, takes_counters);
    const Step step =
        Next({place.claim, place.request, place.choice, place.device + 1, device + 1, true});
    if (step == Step::kDone) return step;
    GiveBack(place, device, *consumed, takes_counters);
    constraints.RemoveLast(request.name, choice.name);
    return step;
  }

  bool HasCounters(int device) const {
    const DeviceBook& book = Book(device);
    if (book.needs.empty()) return true;
    if (books_.overdrawn[static_cast<std::size_t>(book.pool)]) return false;
    return std::ranges::all_of(book.needs, [this](const DeviceBook::CounterUse& need) {
      return counters_[static_cast<std::size_t>(need.counter)] >= need.amount;
    });
  }

  void Take(const Place& place, const RequestChoice& choice, int device,
            const std::vector<Quantity>& consumed, bool takes_counters) {
    const auto index = static_cast<std::size_t>(device);
    const Device& object = *Book(device).device;
    AllocatedDevice result;
    result.request = claims_[place.claim]->requests[place.request].name;
    if (!choice.name.empty()) result.request += "/" + choice.name;
    result.id = IdOf(books_, Book(device));
    result.admin = choice.admin;
    result.shared = object.shareable;
    if (object.shareable) {
      ++shares_[index];
      for (std::size_t i = 0; i < consumed.size(); ++i) {
        left_[index][i] = left_[index][i] - consumed[i];
        result.consumed.push_back({object.capacities[i].name, consumed[i]});
      }
    } else {
      allocating_[index].push_back(place.claim);
    }
    if (takes_counters) Count(device, Counters::kTake);
    results_[place.claim].push_back(std::move(result));
  }

  void GiveBack(const Place& place, int device, const std::vector<Quantity>& consumed,
                bool takes_counters) {
    const auto index = static_cast<std::size_t>(device);
    if (Book(device).device->shareable) {
      --shares_[index];
      for (std::size_t i = 0; i < consumed.size(); ++i) {
        left_[index][i] = left_[index][i] + consumed[i];
      }
    } else {
      allocating_[index].pop_back();
    }
    if (takes_counters) Count(device, Counters::kGiveBack);
    results_[place.claim].pop_back();
  }

  enum class Counters : uint8_t { kTake, kGiveBack };
  void Count(int device, Counters change) {
    for (const DeviceBook::CounterUse& need : Book(device).needs) {
      Quantity& left = counters_[static_cast<std::size_t>(need.counter)];
      left = change == Counters::kGiveBack ? left + need.amount : left - need.amount;
    }
  }

  // What is said of a failure is what was met first at the place that came furthest.
  bool IsFurther(const Place& place) const {
    return why_.empty() || place.Order() > furthest_.Order();
  }
  void Remember(const Place& place, std::string why) {
    if (!IsFurther(place)) return;
    furthest_ = place;
    why_ = std::move(why);
  }

  const NodeBooks& books_;
  Selectors& selectors_;
  int steps_left_;
  std::vector<const Claim*> claims_;
  std::vector<std::vector<std::vector<Way>>> ways_;  // by claim, request, choice

  // As if what has been picked so far were allocated.
  std::vector<Quantity> counters_;
  std::vector<int> shares_;                           // by device
  std::vector<std::vector<Quantity>> left_;           // capacities, by device
  std::vector<std::vector<std::size_t>> allocating_;  // claims, by device
  std::vector<ClaimConstraints> constraints_;         // by claim
  std::vector<std::vector<AllocatedDevice>> results_;

  Prediction stopped_;
  std::string doubt_, doubtful_request_;
  bool failure_in_doubt_ = false;
  Place furthest_;
  std::string why_;
};

}  // namespace

Prediction Predict(const NodeBooks& books, std::span<const Claim* const> claims,
                   Selectors& selectors, int most_steps) {
  return Search(books, claims, selectors, most_steps).Run();
}

Prediction Predict(const NodeBooks& books, std::span<const Claim* const> claims,
                   Selectors& selectors, StepBudget& budget) {
  const int most = std::min(kMostSteps, StepBudget::kFreeSteps + budget.left);
  Search search(books, claims, selectors, most);
  Prediction prediction = search.Run();
  const int taken = most - search.steps_left();
  budget.left -= std::clamp(taken - StepBudget::kFreeSteps, 0, budget.left);
  prediction.cut_short = search.steps_left() < 0 && most < kMostSteps;
  return prediction;
}

}  // namespace tranche::dra
