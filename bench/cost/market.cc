#include "bench/cost/market.h"

#include <string_view>

#include "bench/fill/csv.h"

namespace tranche::bench::cost {
namespace {

constexpr int kLargestOffer = 16;
constexpr int64_t kMostOfferedCpu = 1'000'000;

}  // namespace

absl::StatusOr<std::vector<Offer>> ReadOffers(const std::string& path) {
  fill::Csv csv(path);
  const std::size_t cloud = csv.Column("cloud", /*required=*/true);
  const std::size_t type = csv.Column("instance_type", /*required=*/true);
  const std::size_t model = csv.Column("model", /*required=*/true);
  const std::size_t gpus = csv.Column("gpus", /*required=*/true);
  const std::size_t cpu = csv.Column("cpu_milli", /*required=*/true);
  const std::size_t capacity = csv.Column("capacity", /*required=*/true);
  const std::size_t price = csv.Column("per_hour", /*required=*/true);
  std::vector<Offer> offers;
  while (csv.Next()) {
    Offer& offer = offers.emplace_back();
    offer.cloud = csv.Text(cloud);
    offer.instance_type = csv.Text(type);
    offer.model = csv.Text(model);
    offer.gpus = static_cast<int>(csv.Number(gpus, 1, kLargestOffer));
    offer.cpu = csv.Number(cpu, 1, kMostOfferedCpu);
    const std::string_view paid = csv.Text(capacity);
    if (paid != "spot" && paid != "on-demand") csv.Fail("spot or on-demand", paid);
    if (paid == "spot") offer.capacity = CapacityType::kSpot;
    offer.micros = csv.Micros(price);
  }
  if (csv.status().ok() && offers.empty()) csv.Fail("an offer", "none");
  if (!csv.status().ok()) return csv.status();
  return offers;
}

}  // namespace tranche::bench::cost
