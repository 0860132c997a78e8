#include "test/sim/world/informer.h"

#include <algorithm>
#include <utility>

namespace tranche::sim {

Informer::Informer(Loop& loop, Store& store, std::string resource, SimTime most_lag, uint64_t seed,
                   Hear hear)
    : loop_(loop),
      store_(store),
      resource_(std::move(resource)),
      most_lag_(most_lag),
      draws_(seed),
      hear_(std::move(hear)) {
  store_.Listen([this](std::string_view of, const Change& change) {
    if (started_ && of == resource_) Take(change);
  });
}

void Informer::Start(Actor actor) {
  Stop();
  actor_ = actor;
  started_ = true;
  for (const auto& [key, object] : store_.All(resource_)) {
    Take({Change::Type::kAdded, loop_.now(), object, nullptr});
  }
}

void Informer::Stop() {
  ++life_;
  started_ = false;
  awake_ = false;
  queue_.clear();
}

void Informer::Take(const Change& change) {
  const SimTime lag = SimTime(draws_.Between(1, most_lag_.count())) + extra_lag_;
  last_due_ = std::max(last_due_, loop_.now() + lag);
  queue_.emplace_back(last_due_, change);
  Wake();
}

void Informer::Wake() {
  if (awake_ || queue_.empty()) return;
  awake_ = true;
  loop_.After(queue_.front().first - loop_.now(), actor_, [this, life = life_] { Tell(life); });
}

void Informer::Tell(uint64_t life) {
  if (life != life_) return;
  while (!queue_.empty() && queue_.front().first <= loop_.now()) {
    const Change change = std::move(queue_.front().second);
    queue_.pop_front();
    hear_(change);
    if (life != life_) return;  // what it heard made it start anew
  }
  awake_ = false;
  Wake();
}

}  // namespace tranche::sim
