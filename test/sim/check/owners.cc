#include "test/sim/check/owners.h"

#include <algorithm>
#include <utility>

#include "test/sim/check/quota_model.h"

namespace tranche::sim::check {

void Owners::Hear(const Happening& happening) {
  terms_.Hear(happening);
  if (happening.kind == Happening::Kind::kLeads) {
    const bool before = std::exchange(unmetered_, !happening.text.empty());
    if (before || unmetered_) Look(happening.at, /*anew=*/true);
  }
  if (happening.kind != Happening::Kind::kWritten) return;
  const auto differs = [&](std::initializer_list<const char*> path) {
    return At(happening.before, path) != At(happening.after, path);
  };
  const bool is_edited = happening.before.is_null() || happening.after.is_null();
  if (happening.resource == "gpuquotas") {
    const bool moves = differs({"spec", "parent"}) || differs({"spec", "namespaceSelector"});
    if (is_edited || moves) Look(happening.at, /*anew=*/false);
  } else if (happening.resource == "namespaces") {
    if (is_edited || differs({"metadata", "labels"})) Look(happening.at, /*anew=*/false);
  }
}

void Owners::Look(SimTime at, bool anew) {
  View view{at, true, anew, truth_.objects("gpuquotas"), truth_.objects("namespaces"), {}};
  view.known = QuotaModel(view.quotas, view.namespaces).known();
  for (const auto& [ns, object] : view.namespaces) {
    std::string owner = OwnerOf(view.quotas, view.namespaces, ns);
    if (!owner.empty()) view.owners.emplace(ns, std::move(owner));
  }
  views_.push_back(std::move(view));
}

Owners::Around Owners::LookAround(std::size_t view, const PodLife& pod,
                                  const std::set<std::string>& leaves, SimTime now) const {
  const SimTime from = std::max(views_[view].from, *pod.bound);
  const SimTime heard = terms_.AwareBy(from, lag_);
  Around around;
  around.until = heard == SimTime::max() ? heard : heard + lag_;
  around.certain = around.until != SimTime::max() && around.until <= now;
  const SimTime until = std::min(around.until, now);
  std::vector<const View*> near;
  for (std::size_t i = 0; i < views_.size() && views_[i].from <= until; ++i) {
    if (i + 1 < views_.size() && views_[i + 1].from < from - lag_) continue;
    near.push_back(&views_[i]);
    // One that is back may not have been missed.
    const bool back = i > view && std::ranges::any_of(leaves, [&](const std::string& leaf) {
                        return views_[i].declares(leaf);
                      });
    if (back || !views_[i].known) around.certain = false;
  }
  for (const View* const quotas : near) {
    for (const View* const namespaces : near) {
      std::string owner = OwnerOf(quotas->quotas, namespaces->namespaces, pod.ns());
      if (!owner.empty() && !leaves.contains(owner)) around.owners.insert(std::move(owner));
    }
  }
  return around;
}

std::set<std::string> Owners::Of(const PodLife& pod, SimTime now) const {
  std::set<std::string> leaves{pod.record ? pod.record->leaf : std::string()};
  SimTime settled{0};
  for (std::size_t i = 0; i < views_.size() && views_[i].from <= now; ++i) {
    const View& view = views_[i];
    const SimTime until = i + 1 < views_.size() ? views_[i + 1].from : SimTime::max();
    if (until <= *pod.bound || until <= settled) continue;
    const auto owner = view.owners.find(pod.ns());
    const bool is_owned = owner != view.owners.end();
    // Perhaps nothing of it is in force. What its own quota owns goes to no other one by that.
    if (!view.known && !(is_owned && leaves == std::set{owner->second})) leaves.insert("");
    const bool is_gone =
        std::ranges::any_of(leaves, [&](const std::string& leaf) { return !view.declares(leaf); });
    if ((!is_gone && !view.anew) || !is_owned) continue;
    Around around = LookAround(i, pod, leaves, now);
    settled = around.until;
    if (around.certain && around.owners.size() == 1 && leaves.size() == 1 && !view.anew) {
      leaves = std::move(around.owners);
    } else {
      leaves.merge(around.owners);
    }
  }
  return leaves;
}

}  // namespace tranche::sim::check
