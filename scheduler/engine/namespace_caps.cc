// ResourceQuotas of a cluster that comes from HAMi: pods that wait for room in a namespace.
#include <utility>
#include <vector>

#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// Waiting pods brought back by one piece of news: the first of them to be bound is an event for
// the others. And how many are looked at for it.
constexpr int kMostPokes = 8;
constexpr int kMostLooks = 64;

}  // namespace

void Engine::Impl::NoteCapRelease(const PodUid& uid, Instant now) {
  const std::string ns = caps.Release(uid);
  if (!ns.empty() && caps.Limits(ns)) PokeCapped(ns, now);
}

void Engine::Impl::PokeCapped(const std::string& ns, Instant now) {
  std::vector<PodUid> waiting;
  for (auto at = pods_by_name.lower_bound({PodName{ns, ""}, PodUid()});
       at != pods_by_name.end() && at->first.ns == ns; ++at) {
    const PodRecord& record = pods.at(at->second);
    if (!IsPending(record) || record.last_reason != Reason::kNamespaceQuota) continue;
    waiting.push_back(at->second);
    if (waiting.size() == kMostLooks) break;
  }
  int poked = 0;
  for (const PodUid& uid : waiting) {
    poked += PokeIfFits(uid, now);
    if (poked == kMostPokes) return;
  }
}

void Engine::SetNamespaceCap(NamespaceCap cap, Instant now) {
  impl_->Advance(now);
  if (!impl_->options.namespace_caps) return;
  const std::string ns = cap.ns;
  if (impl_->caps.Set(std::move(cap))) impl_->PokeCapped(ns, now);
}

void Engine::RemoveNamespaceCap(const std::string& ns, const std::string& name, Instant now) {
  impl_->Advance(now);
  if (impl_->caps.Remove(ns, name)) impl_->PokeCapped(ns, now);
}

std::vector<CapRow> Engine::NamespaceCapRows() const { return impl_->caps.Rows(); }

}  // namespace tranche
