#include "test/sim/cluster/network.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kDisturbancePeriod = seconds(5);
constexpr SimTime kRecent = seconds(60);
constexpr uint64_t kOfHeld = 0x68656c64;  // draws of their own

}  // namespace

Network::Network(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                 uint64_t seed)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kNetwork)),
      draws_(Draws(seed).Fork(0x6e6574)),
      self_(loop.NewActor("network")) {}

SimTime Network::Delay() { return SimTime(draws_.Between(100, 2'000)); }

Network::Fate Network::FateOf(Actor client) {
  Fate fate{Delay(), Delay()};
  if (rate_ == 0 || quiet_) return fate;
  clients_[client] = loop_.now();
  const auto cut = cuts_.find(client);
  if (cut != cuts_.end()) {
    fate.lost_before = cut->second.there_until > loop_.now();
    fate.lost_after = cut->second.back_until > loop_.now();
  }
  if (std::optional<Draws> act = script_.ActByChance("message", rate_)) {
    switch (act->Below(4)) {
      case 0:
        fate.lost_before = true;
        break;
      case 1:
        fate.lost_after = true;
        break;
      case 2:
        fate.there += milliseconds(act->Between(10, 8'000));
        fate.is_held = act->Fork(kOfHeld).Chance(5'000);
        break;
      default:
        fate.back += milliseconds(act->Between(10, 8'000));
    }
  }
  return fate;
}

SimTime Network::StreamMoves(Actor client) const {
  const auto cut = cuts_.find(client);
  if (cut == cuts_.end()) return loop_.now();
  return std::max(loop_.now(), cut->second.back_until);
}

void Network::Start() {
  if (rate_ > 0) loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
}

void Network::Quiet() {
  quiet_ = true;
  cuts_.clear();
}

void Network::Disturb() {
  if (quiet_) return;
  loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
  std::optional<Draws> act = script_.ActByChance("partition", rate_ * 4);
  if (!act) return;
  std::vector<Actor> there_are;
  for (const auto& [client, last] : clients_) {
    if (last + kRecent > loop_.now() && loop_.lives(client)) there_are.push_back(client);
  }
  if (there_are.empty()) return;
  const Actor client = act->Pick(there_are);
  Cut& cut = cuts_[client];
  const SimTime until = loop_.now() + milliseconds(act->Between(200, 40'000));
  const int64_t way = act->Below(3);
  if (way != 1) cut.there_until = until;
  if (way != 0) cut.back_until = until;
  Happening happening{Happening::Kind::kFault};
  happening.who = "network";
  happening.key = loop_.NameOf(client);
  happening.text = std::string("network: partition ") +
                   (way == 0   ? "of what it sends"
                    : way == 1 ? "of what it hears"
                               : "both ways") +
                   " for " + std::to_string((until - loop_.now()).count() / 1000) + " ms";
  history_.Add(std::move(happening));
}

void Network::Carry(Actor from, Request request, SimTime timeout, std::function<void(Reply)> done,
                    const Sender& to) {
  const Fate fate = FateOf(from);
  auto answered = std::make_shared<bool>(false);
  auto finish = [answered, done = std::move(done)](Reply reply) {
    if (*answered) return;
    *answered = true;
    done(std::move(reply));
  };
  loop_.After(timeout, from, [finish] { finish({}); });
  // One that gave up has closed its connection.
  if (fate.lost_before || (fate.there >= timeout && !fate.is_held)) return;
  // What travels goes on without its sender, so the receiver's side runs as the network.
  loop_.After(fate.there, self_,
              [this, from, to, timeout, fate, finish, request = std::move(request)]() mutable {
                to(from, std::move(request), timeout, [this, from, fate, finish](Reply reply) {
                  if (fate.lost_after) return;
                  loop_.After(fate.back, from, [finish, reply = std::move(reply)]() mutable {
                    finish(std::move(reply));
                  });
                });
              });
}

}  // namespace tranche::sim
