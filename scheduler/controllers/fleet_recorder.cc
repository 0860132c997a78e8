#include "scheduler/controllers/fleet_recorder.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tranche {
namespace {

// Of a kind with so many GPUs a change that is told.
int64_t LeastChange(int64_t gpus) { return std::max<int64_t>(100, gpus * 10); }

}  // namespace

FleetRecorder::Texts FleetRecorder::TextsOf(const FleetWalk& walk) const {
  Texts texts;
  for (const FleetNode& node : walk.nodes) {
    // One of a name that no cluster gives; its use is then on a node that is not known.
    if (!ledger::IsFleetName(node.name.str()) || !ledger::IsFleetName(node.model)) continue;
    const ledger::NodeOffer offer{node.name.str(), {{node.model, node.gpus}}, node.traits};
    texts[{FleetKind::kNode, offer.node}] = ledger::NodeText(offer);
  }
  for (const auto& [kind, stranded] : stranded_) {
    texts[{FleetKind::kStranded, kind}] = ledger::StrandedText(stranded);
  }
  if (walk.set == nullptr) return texts;
  for (const GpuPrice& price : walk.set->prices) {
    if (!ledger::IsFleetName(price.name)) continue;
    texts[{FleetKind::kPrice, price.name}] = ledger::PriceText(price);
  }
  return texts;
}

void FleetRecorder::TakeStranded(const FleetWalk& walk) {
  struct Sum {
    ledger::StrandedGpus stranded;
    int64_t gpus = 0;
  };
  std::map<std::string, Sum> sums;
  for (const FleetNode& node : walk.nodes) {
    if (!node.stranded || !ledger::IsFleetName(node.model)) continue;
    const std::string kind = ledger::KindText(node.model, node.traits);
    auto found = sums.find(kind);
    if (found == sums.end()) {
      if (sums.size() == kMostKinds) continue;
      found = sums.emplace(kind, Sum{{node.model, node.traits, 0}, 0}).first;
    }
    found->second.stranded.milli += *node.stranded;
    found->second.gpus += node.gpus;
  }
  std::map<std::string, ledger::StrandedGpus> told;
  for (auto& [kind, sum] : sums) {
    const auto before = stranded_.find(kind);
    const bool same = before != stranded_.end() &&
                      std::abs(before->second.milli - sum.stranded.milli) < LeastChange(sum.gpus);
    told.emplace(kind, same ? before->second : std::move(sum.stranded));
  }
  stranded_ = std::move(told);
}

void FleetRecorder::Tick(Instant now) {
  if (ledger_ == nullptr || host_.cluster.readiness() != Readiness::kReady) return;
  if (whole_at_ && now >= looked_ && now - looked_ < kLookEvery) return;
  looked_ = now;
  const bool weighs = !stranded_at_ || now < *stranded_at_ || now - *stranded_at_ >= kStrandedEvery;
  const FleetWalk walk = host_.engine.Fleet(EngineCaller::kLedger, weighs);
  if (weighs) {
    stranded_at_ = now;
    TakeStranded(walk);
  }
  Texts texts = TextsOf(walk);
  FleetNews news;
  news.at = now;
  news.whole = !whole_at_ || now < *whole_at_ || now - *whole_at_ >= kWholeEvery;
  for (const auto& [key, text] : texts) {
    const auto told = told_.find(key);
    if (!news.whole && told != told_.end() && told->second == text) continue;
    news.facts.push_back({key.first, key.second, text});
  }
  for (const auto& [key, text] : told_) {
    if (!news.whole && !texts.contains(key)) news.facts.push_back({key.first, key.second, ""});
  }
  told_ = std::move(texts);
  if (news.whole) whole_at_ = now;
  if (news.whole || !news.facts.empty()) ledger_->NoteFleet(std::move(news));
}

}  // namespace tranche
