#include "scheduler/controllers/fleet_recorder.h"

#include "scheduler/ledger/bill/fleet_text.h"

namespace tranche {

FleetRecorder::Texts FleetRecorder::TextsOf(const FleetWalk& walk) {
  Texts texts;
  for (const FleetNode& node : walk.nodes) {
    // One of a name that no cluster gives; its use is then on a node that is not known.
    if (!ledger::IsFleetName(node.name.str()) || !ledger::IsFleetName(node.model)) continue;
    const ledger::NodeOffer offer{node.name.str(), {{node.model, node.gpus}}, node.traits};
    texts[{FleetKind::kNode, offer.node}] = ledger::NodeText(offer);
  }
  if (walk.set == nullptr) return texts;
  for (const GpuPrice& price : walk.set->prices) {
    if (!ledger::IsFleetName(price.name)) continue;
    texts[{FleetKind::kPrice, price.name}] = ledger::PriceText(price);
  }
  return texts;
}

void FleetRecorder::Tick(Instant now) {
  if (ledger_ == nullptr || host_.cluster.readiness() != Readiness::kReady) return;
  if (whole_at_ && now >= looked_ && now - looked_ < kLookEvery) return;
  looked_ = now;
  Texts texts = TextsOf(host_.engine.Fleet(EngineCaller::kLedger));
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
