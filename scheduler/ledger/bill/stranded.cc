#include "scheduler/ledger/bill/stranded.h"

#include <algorithm>
#include <optional>

#include "quota/tree/charge.h"

namespace tranche::ledger {
namespace {

constexpr int64_t kQuantaPerMilli = kQuantaPerGpu / 1000;
static_assert(kQuantaPerMilli * 1000 == kQuantaPerGpu);

}  // namespace

void FreeOfKind::Add(int64_t from, int64_t until, int64_t quanta) {
  if (quanta == 0 || until <= from) return;
  // It goes on as it was.
  if (!changes_.empty() && changes_.back() == std::pair(from, -quanta)) {
    changes_.back().first = until;
    return;
  }
  changes_.emplace_back(from, quanta);
  changes_.emplace_back(until, -quanta);
}

FreeTimes::FreeTimes(const FleetTimes& fleet) : fleet_(fleet) {
  for (const auto& [kind, line] : fleet.stranded) kinds_[kind];
}

FreeOfKind* FreeTimes::KindOf(const std::string& model, const NodeTraits& traits) {
  const auto found = kinds_.find(KindText(model, traits));
  return found == kinds_.end() ? nullptr : &found->second;
}

void FreeTimes::EachStranded(const Count& count) {
  for (auto& [name, kind] : kinds_) Each(fleet_.stranded.at(name), kind, count);
}

void FreeTimes::Each(const Timeline<StrandedGpus>& said, FreeOfKind& kind,
                     const Count& count) const {
  if (kind.changes_.empty()) return;
  std::ranges::sort(kind.changes_);
  const int64_t first = kind.changes_.front().first;
  const int64_t last = kind.changes_.back().first;
  std::vector<int64_t> edges;
  const auto add = [&](int64_t at) {
    if (at >= first && at <= last) edges.push_back(at);
  };
  for (const auto& [at, change] : kind.changes_) add(at);
  for (const auto& [at, stranded] : said.stands()) add(at);
  for (const auto& [at, prices] : fleet_.prices.stands()) add(at);
  std::ranges::sort(edges);
  const auto same = std::ranges::unique(edges);
  edges.erase(same.begin(), same.end());
  int64_t free = 0;
  auto next = kind.changes_.begin();
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    for (; next != kind.changes_.end() && next->first <= edges[i]; ++next) free += next->second;
    const StrandedGpus* const now = said.Of(edges[i]);
    if (now == nullptr) continue;
    const int64_t quanta = std::min(free, now->milli * kQuantaPerMilli);
    if (quanta > 0) Price(*now, quanta, edges[i], edges[i + 1], count);
  }
}

void FreeTimes::Price(const StrandedGpus& said, int64_t quanta, int64_t from, int64_t until,
                      const Count& count) const {
  const auto* const prices = fleet_.prices.Of(from);
  while (from < until) {
    int64_t end = until;
    const GpuPrice* price = nullptr;
    if (prices != nullptr) {
      const PriceAt found = PriceOf(**prices, said.traits, said.model, Instant(Millis(from)));
      price = found.price;
      if (found.until != Instant::max()) {
        end = std::min<int64_t>(end, found.until.time_since_epoch().count());
      }
    }
    count(quanta, end - from, price);
    from = end;
  }
}

}  // namespace tranche::ledger
