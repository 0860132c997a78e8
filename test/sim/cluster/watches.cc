#include "test/sim/cluster/watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "test/sim/cluster/answer.h"

namespace tranche::sim {
namespace {

constexpr SimTime kBookmarkPeriod = std::chrono::seconds(60);
constexpr int kSplitChance = 200;  // of 10,000
constexpr int kMostLosses = 20;    // of those that may be lost, times the rate

}  // namespace

Watches::Watches(Loop& loop, Store& store, Script& script, const FaultPlan& faults,
                 Network& network, uint64_t seed)
    : loop_(loop),
      store_(store),
      script_(script),
      rate_(faults.rate(Fault::kApiServer)),
      network_(network),
      draws_(Draws(seed).Fork(0x7761746368)) {
  store_.Listen([this](std::string_view resource, const Change&) { Changed(resource); });
}

uint64_t Watches::Open(Opening opening) {
  const Store::Log& log = store_.LogOf(opening.type->plural);
  Watch watch;
  watch.next = log.first;
  for (const Change& change : log.changes) {
    if (change.object->version() > opening.version) break;
    ++watch.next;
  }
  watch.bookmark_at = loop_.now() + kBookmarkPeriod;
  watch.ends_at = loop_.now() + opening.lasts;
  watch.opening = std::move(opening);
  const uint64_t id = ++ids_;
  Watch& placed = open_.emplace(id, std::move(watch)).first->second;
  Wake(id, placed, loop_.now() + network_.Delay());
  return id;
}

SimTime Watches::LagOf(const Watch& watch) const {
  const auto found = lags_.find(watch.opening.server);
  return found == lags_.end() ? SimTime{0} : found->second;
}

void Watches::Changed(std::string_view resource) {
  for (auto it = open_.begin(); it != open_.end();) {
    if (!loop_.lives(it->second.opening.from)) {
      it = open_.erase(it);
      continue;
    }
    Watch& watch = it->second;
    if (watch.opening.type->plural == resource) {
      const SimTime due = loop_.now() + LagOf(watch) + network_.Delay();
      // One that is about to be looked at tells this change as well.
      if (due < watch.step_at) Wake(it->first, watch, due);
    }
    ++it;
  }
}

void Watches::Wake(uint64_t id, Watch& watch, SimTime at) {
  watch.step_at = at;
  loop_.After(at - loop_.now(), watch.opening.from, [this, id, at] { Look(id, at); });
}

void Watches::Look(uint64_t id, SimTime meant_at) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.step_at != meant_at) return;
  Watch& watch = found->second;
  watch.step_at = SimTime::max();
  const SimTime moves = network_.StreamMoves(watch.opening.from);
  if (moves > loop_.now()) return Wake(id, watch, moves);
  const bool fell_behind = watch.next < store_.LogOf(watch.opening.type->plural).first;
  std::string frames = fell_behind ? "" : Due(watch);
  if (fell_behind) {
    frames = fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n",
                         StatusBody(410, "Expired", "too old resource version").dump());
    watch.ending = true;
  }
  if (watch.opening.bookmarks && watch.bookmark_at <= loop_.now() && !fell_behind) {
    watch.bookmark_at = loop_.now() + kBookmarkPeriod;
    // A server says only what it has told.
    if (LagOf(watch) == SimTime{0}) {
      frames += fmt::format(
          "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{}\",\"apiVersion\":\"{}\","
          "\"metadata\":{{\"resourceVersion\":\"{}\",\"creationTimestamp\":null}}}}}}\n",
          watch.opening.type->kind, watch.opening.type->version, store_.version());
    }
  }
  if (!frames.empty()) Tell(id, frames);
  const auto still = open_.find(id);
  if (still == open_.end()) return;
  Watch& same = still->second;
  if (same.ending || same.ends_at <= loop_.now()) return End(id);
  const Store::Log& log = store_.LogOf(same.opening.type->plural);
  SimTime next = std::min(same.bookmark_at, same.ends_at);
  if (same.next < log.first + log.changes.size() && same.next >= log.first) {
    const SimTime due = log.changes[same.next - log.first].at + LagOf(same);
    next = std::min(next, std::max(due, loop_.now()) + network_.Delay());
  }
  if (next < same.step_at) Wake(id, same, next);
}

std::string Watches::Due(Watch& watch) {
  const Store::Log& log = store_.LogOf(watch.opening.type->plural);
  std::string frames;
  const Change* last = nullptr;
  while (watch.next < log.first + log.changes.size()) {
    const Change& change = log.changes[watch.next - log.first];
    if (change.at + LagOf(watch) > loop_.now()) break;
    ++watch.next;
    // What it was opened after, a server that lags comes to only now.
    if (change.object->version() <= watch.opening.version) continue;
    const bool may_be_lost = change.type == Change::Type::kDeleted && !quiet_ && rate_ > 0 &&
                             IsTakenAgain(watch, change);
    if (may_be_lost && script_.ActByChance("watch-loses", kMostLosses * rate_)) continue;
    frames += change.frame();
    last = &change;
  }
  if (last != nullptr && !quiet_ && script_.ActByChance("watch-repeat", rate_ / 4)) {
    frames += last->frame();
  }
  return frames;
}

bool Watches::IsTakenAgain(const Watch& watch, const Change& deletion) const {
  const Store::Log& log = store_.LogOf(watch.opening.type->plural);
  for (uint64_t at = watch.next; at < log.first + log.changes.size(); ++at) {
    const Change& change = log.changes[at - log.first];
    if (change.at + LagOf(watch) > loop_.now()) return false;
    if (change.object->key() == deletion.object->key()) return true;
  }
  return false;
}

void Watches::Tell(uint64_t id, const std::string& frames) {
  const auto bytes = open_.at(id).opening.bytes;
  const bool split = frames.size() > 1 && draws_.Chance(kSplitChance);
  const std::size_t cut =
      split ? static_cast<std::size_t>(draws_.Below(static_cast<int64_t>(frames.size()))) : 0;
  const std::string_view all(frames);
  if (cut > 0) bytes(all.substr(0, cut));
  if (open_.contains(id)) bytes(all.substr(cut));
}

void Watches::End(uint64_t id) {
  const auto ended = std::move(open_.at(id).opening.ended);
  open_.erase(id);
  ended(200, "");
}

void Watches::EndAll(int server) {
  for (auto& [id, watch] : open_) {
    if (watch.opening.server != server || watch.ending) continue;
    watch.ending = true;
    Wake(id, watch, loop_.now() + network_.Delay());
  }
}

void Watches::Quiet() {
  quiet_ = true;
  lags_.clear();
  for (auto& [id, watch] : open_) Wake(id, watch, loop_.now());
}

}  // namespace tranche::sim
