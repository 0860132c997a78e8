#include "scheduler/engine/state/node_prices.h"

#include <algorithm>
#include <limits>

#include "topology/base/int128.h"

namespace tranche {
namespace {

// What a GPU at the highest price there is counts as much as where the policy says Auto, in
// milli-GPU of waste. Measured: `tranche-bench fill --prices`, ADR 0053.
constexpr int64_t kAutoMoney = 32;
constexpr int64_t kMicros = 1'000'000;
// No price is worth more than this, so that costs stay within the bits of an order.
constexpr int64_t kMostRate = 1'000'000;

}  // namespace

bool NodePrices::Declare(const std::shared_ptr<const PolicySet>& set,
                         const std::vector<GpuPolicy>& policies, Instant now) {
  const bool others = set_ == nullptr ? !set->prices.empty() : set_->prices != set->prices;
  set_ = set;
  policies_ = policies;
  if (others) {
    groups_.assign(1, Group{});
    numbers_.clear();
    const auto micros = [](const GpuPrice& price) { return price.micros_per_gpu_hour; };
    highest_ = 0;
    for (const GpuPrice& price : set->prices) highest_ = std::max(highest_, micros(price));
    names_types_ = std::ranges::any_of(
        set->prices, [](const GpuPrice& price) { return !price.instance_type.empty(); });
  }
  Reprice(now);
  return others;
}

PriceGroup NodePrices::GroupOf(const NodeTraits& traits, const std::string& model, Instant now) {
  if (!any()) return 0;
  Group group{traits, model};
  // What no price asks tells nodes apart for nothing.
  if (!names_types_) group.traits.instance_type.clear();
  const int capacity = traits.capacity ? static_cast<int>(*traits.capacity) : -1;
  const Key key(traits.pool + "/" + std::to_string(capacity) + "/" + group.traits.instance_type,
                model);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  // So many kinds of machine nobody prices; those beyond cost nothing.
  if (groups_.size() > std::numeric_limits<PriceGroup>::max()) return 0;
  const auto number = static_cast<PriceGroup>(groups_.size());
  PriceGroupAt(group, now);
  numbers_.emplace(key, number);
  for (std::size_t at = 0; at < rates_.size(); ++at) {
    rates_[at].push_back(RateOf(group, policies_[at]));
  }
  groups_.push_back(std::move(group));
  return number;
}

const std::vector<int64_t>* NodePrices::RatesOf(std::size_t policy_index) const {
  if (!any() || policies_[policy_index].money_rate == 0) return nullptr;
  return &rates_[policy_index];
}

void NodePrices::PriceGroupAt(Group& group, Instant now) {
  const PriceAt found = PriceOf(set_->prices, group.traits, group.model, now);
  group.price = found.price;
  until_ = std::min(until_, found.until);
}

// A machine that was paid for ahead costs nothing more, whatever is written on its bill.
int64_t NodePrices::RateOf(const Group& group, const GpuPolicy& policy) const {
  if (group.price == nullptr || group.traits.capacity == CapacityType::kReserved) return 0;
  const int64_t scale = policy.money_rate ? *policy.money_rate : kAutoMoney;
  const int64_t unit = policy.money_rate ? kMicros : std::max<int64_t>(highest_, 1);
  return std::min(MulDivFloor(group.price->micros_per_gpu_hour, scale, unit), kMostRate);
}

void NodePrices::Reprice(Instant now) {
  until_ = Instant::max();
  for (std::size_t at = 1; at < groups_.size(); ++at) PriceGroupAt(groups_[at], now);
  rates_.assign(policies_.size(), {});
  if (!any()) return;
  for (std::size_t policy = 0; policy < policies_.size(); ++policy) {
    rates_[policy].push_back(0);
    for (std::size_t at = 1; at < groups_.size(); ++at) {
      rates_[policy].push_back(RateOf(groups_[at], policies_[policy]));
    }
  }
}

}  // namespace tranche
