#include "scheduler/advice/split_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/advice/geometry_choice.h"
#include "scheduler/advice/geometry_demand.h"

namespace tranche {
namespace {

// What one MPS server takes; more pods on one GPU help nobody.
constexpr int64_t kMostReplicas = 48;

int64_t Ceil(int64_t amount, int64_t by) { return (amount + by - 1) / by; }

}  // namespace

SplitOfModel::SplitOfModel(const std::string& model, const std::string& product, Mebibytes memory)
    : product_(product), memory_(memory) {
  model_.model = model;
  if (const MigBoard* board = FindMigBoard(product, memory)) cover_.emplace(*board);
}

void SplitOfModel::AddCard(CardMode mode, Mebibytes memory) {
  ++model_.gpus;
  memory_ = std::min(memory_, memory);
  if (mode == CardMode::kWhole) {
    ++model_.whole_now;
  } else if (mode == CardMode::kMig) {
    ++model_.mig_now;
  } else {
    ++model_.shared_now;
  }
}

// By compute and reported memory, the least of the board; media engines only where nothing else
// would do.
std::optional<int> SplitOfModel::SmallestProfile(int64_t milli, int64_t mib) const {
  if (!cover_) return std::nullopt;
  const MigBoard& board = cover_->board();
  std::optional<int> best;
  const auto size = [&board](int index) {
    const MigProfile& profile = board.profiles[static_cast<std::size_t>(index)];
    return std::tuple(profile.size, profile.compute_slices,
                      profile.name.find_first_of("+-") != profile.name.npos, profile.media_engines,
                      profile.codec_engines, profile.name);
  };
  for (int i = 0; i < static_cast<int>(board.profiles.size()); ++i) {
    const MigProfile& profile = board.profiles[static_cast<std::size_t>(i)];
    const bool holds_memory = mib == 0 || (profile.memory && profile.memory->count() >= mib);
    const int64_t compute = Ceil(int64_t{1000} * profile.compute_slices, board.compute_slices);
    if (!holds_memory || compute < milli || profile.size == board.units) continue;
    if (!best || size(i) < size(*best)) best = i;
  }
  return best;
}

int64_t SplitOfModel::ReplicasFor(const DemandKind& kind) const {
  if (kind.milli >= kWholeGpu.count() || (kind.milli == 0 && kind.mib == 0)) {
    return kDefaultReplicas;
  }
  int64_t replicas = kMostReplicas;
  if (kind.milli > 0) replicas = std::min(replicas, kWholeGpu.count() / kind.milli);
  if (kind.mib > 0) replicas = std::min(replicas, memory_.count() / kind.mib);
  return replicas;
}

// The first way of the class's list that the model offers. A part of a card is no exclusive card,
// unless nothing else is allowed or it is more than half of it.
std::optional<SplitUse> SplitOfModel::ShareOf(const SplitNeed& need) const {
  const DemandKind& kind = need.kind;
  const bool sized = kind.milli > 0 || kind.mib > 0;
  const int64_t replicas = ReplicasFor(kind);
  for (std::size_t i = 0; i < need.sharing.size(); ++i) {
    const SharingMode mode = need.sharing[i];
    const int preference = static_cast<int>(i);
    if (mode == SharingMode::kMig && sized) {
      const auto profile = SmallestProfile(kind.milli, kind.mib);
      if (profile) return SplitUse{SplitPart::Use::kMig, *profile, 1, preference};
    }
    if ((mode == SharingMode::kMps || mode == SharingMode::kTimeSliced) && replicas > 1) {
      return SplitUse{SplitPart::Use::kTimeSliced, -1, replicas, preference};
    }
  }
  if (replicas < 1) return std::nullopt;
  return SplitUse{SplitPart::Use::kWhole, -1, 1, static_cast<int>(need.sharing.size())};
}

std::optional<SplitUse> SplitOfModel::UseFor(const SplitNeed& need) const {
  if (!AcceptsModel(need.kind.models, product_)) return std::nullopt;
  const DemandKind& kind = need.kind;
  if (!kind.mig_profile.empty()) {
    const MigProfile* profile =
        cover_ ? FindMigProfile(cover_->board(), kind.mig_profile) : nullptr;
    if (profile == nullptr) return std::nullopt;
    const auto index = static_cast<int>(profile - cover_->board().profiles.data());
    return SplitUse{SplitPart::Use::kMig, index, 1, 0};
  }
  if (kind.milli < kWholeGpu.count()) return ShareOf(need);
  // One nvidia.com/gpu is a replica where its class would rather share time than anything else.
  const SharingMode first = need.sharing.empty() ? SharingMode::kExclusive : need.sharing.front();
  const bool shares = first == SharingMode::kTimeSliced || first == SharingMode::kMps;
  if (shares && kind.devices == 1) {
    return SplitUse{SplitPart::Use::kTimeSliced, -1, kDefaultReplicas, 0};
  }
  return SplitUse{SplitPart::Use::kWhole, -1, 1, 0};
}

int64_t SplitOfModel::Division::gpus() const {
  int64_t sum = whole + mig.gpus;
  for (const auto& [replicas, gpus] : shared) sum += gpus;
  return sum;
}

SplitOfModel::Division SplitOfModel::Divide() {
  Division division;
  std::vector<int64_t> instances(cover_ ? cover_->board().profiles.size() : 0, 0);
  std::map<int64_t, int64_t> shares;  // replicas -> pods
  for (const Assigned& assigned : assigned_) {
    switch (assigned.use.use) {
      case SplitPart::Use::kWhole:
        division.whole += assigned.devices;
        break;
      case SplitPart::Use::kMig:
        instances[static_cast<std::size_t>(assigned.use.profile)] += assigned.devices;
        break;
      case SplitPart::Use::kTimeSliced:
        shares[assigned.use.replicas] += assigned.devices;
        break;
    }
  }
  if (cover_) division.mig = cover_->Find(instances);
  // Large replicas first: what is left of them holds smaller pods too.
  int64_t left = 0;
  for (const auto& [replicas, pods] : shares) {
    const int64_t gpus = Ceil(std::max<int64_t>(pods - left, 0), replicas);
    left += gpus * replicas - pods;
    division.shared.emplace_back(replicas, gpus);
  }
  return division;
}

int64_t SplitOfModel::Assign(const SplitNeed& need, int64_t pods) {
  assigned_.push_back({&need, *UseFor(need), 0});
  int64_t fits = 0;
  int64_t too_many = pods + 1;
  const auto holds = [this, &need](int64_t count) {
    assigned_.back().devices = count * need.kind.devices;
    return Divide().gpus() <= model_.gpus;
  };
  if (holds(pods)) fits = pods;
  while (fits < pods && too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (holds(middle) ? fits : too_many) = middle;
  }
  assigned_.back().devices = fits * need.kind.devices;
  if (fits == 0) assigned_.pop_back();
  return fits;
}

std::string SplitOfModel::TextOf(const SplitNeed& need, const SplitUse& use,
                                 int64_t devices) const {
  std::string what;
  int64_t count = devices;
  switch (use.use) {
    case SplitPart::Use::kWhole:
      count = devices / need.kind.devices;
      what = need.kind.devices == 1 ? "1 GPU" : fmt::format("{} GPUs", need.kind.devices);
      break;
    case SplitPart::Use::kMig:
      what = cover_->board().profiles[static_cast<std::size_t>(use.profile)].name;
      break;
    case SplitPart::Use::kTimeSliced:
      what = fmt::format("1/{} GPU", use.replicas);
      break;
  }
  const std::string& of = need.kind.workload_class;
  return fmt::format("{} x {}{}", count, what, of.empty() ? "" : fmt::format(" ({})", of));
}

void SplitOfModel::FallShort(const SplitNeed& need, int64_t pods) {
  model_.short_of.push_back(TextOf(need, *UseFor(need), pods * need.kind.devices));
}

// `left`: of each assigned need, the devices no part has served yet.
std::string SplitOfModel::ServedBy(const std::vector<int>& cut, int64_t gpus,
                                   std::vector<int64_t>& left) const {
  std::string text;
  for (std::size_t profile = 0; profile < cut.size(); ++profile) {
    int64_t room = cut[profile] * gpus;
    for (std::size_t i = 0; i < assigned_.size(); ++i) {
      if (assigned_[i].use.profile != static_cast<int>(profile)) continue;
      const int64_t served = std::min(room, left[i]);
      if (served == 0) continue;
      room -= served;
      left[i] -= served;
      if (!text.empty()) text += ", ";
      text += TextOf(*assigned_[i].need, assigned_[i].use, served);
    }
  }
  return text;
}

std::string SplitOfModel::ServedWith(SplitPart::Use use, int64_t replicas) const {
  std::string text;
  for (const Assigned& assigned : assigned_) {
    if (assigned.use.use != use || assigned.use.replicas != replicas) continue;
    if (!text.empty()) text += ", ";
    text += TextOf(*assigned.need, assigned.use, assigned.devices);
  }
  return text;
}

SplitModel SplitOfModel::Result() {
  const Division division = Divide();
  SplitModel result = model_;
  using Use = SplitPart::Use;
  if (division.whole > 0) {
    result.parts.push_back({Use::kWhole, division.whole, {}, 1, ServedWith(Use::kWhole, 1)});
  }
  std::vector<int64_t> left;
  for (const Assigned& assigned : assigned_) left.push_back(assigned.devices);
  for (const auto& [cut, gpus] : division.mig.cuts) {
    const Geometry geometry = GeometryOf(cover_->board(), cut);
    result.parts.push_back({Use::kMig, gpus, geometry, 1, ServedBy(cut, gpus, left)});
  }
  for (const auto& [replicas, gpus] : division.shared) {
    const std::string serves = ServedWith(Use::kTimeSliced, replicas);
    if (gpus > 0) {
      result.parts.push_back({Use::kTimeSliced, gpus, {}, replicas, serves});
    } else {
      result.parts.back().serves += ", " + serves;  // in the larger replicas before
    }
  }
  result.spare = result.gpus - division.gpus();
  doubt_ = division.mig.gpus - division.mig.at_least;
  return result;
}

}  // namespace tranche
