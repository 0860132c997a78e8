#include "scheduler/foresight/replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/rehearsal.h"
#include "scheduler/foresight/replica.h"
#include "scheduler/foresight/runtimes.h"

namespace tranche {
namespace {

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
// So often whoever watches hears of it, and may end it.
constexpr std::chrono::hours kStep{1};

ClusterCopy Beginning(const Past& past) {
  ClusterCopy copy;
  copy.at = past.from;
  copy.complete = true;
  copy.options = past.options;
  copy.set = std::make_shared<const PolicySet>();
  for (const PastTurn& turn : past.turns) {
    if (turn.at > past.from) break;
    if (turn.set != nullptr) {
      copy.set = turn.set;
      copy.defaults = turn.defaults;
    }
    for (const NodeFacts& node : turn.nodes) {
      NodeCopy& one = copy.nodes.emplace_back();
      one.facts = node;
      one.present = true;
    }
    for (const PastTurn::GangSize& gang : turn.gangs) {
      copy.gang_sizes.emplace_back(gang.ns + "/" + gang.gang, gang.size);
    }
  }
  std::ranges::sort(copy.nodes, {}, [](const NodeCopy& node) { return node.facts.name; });
  for (const PastWork& work : past.work) {
    if (work.created > past.from) break;
    copy.pods[work.pod.request.uid].facts = work.pod;
  }
  return copy;
}

class Liver {
 public:
  explicit Liver(const Past& past)
      : past_(past), copy_(Beginning(past)), engine_(MakeReplica(copy_)) {
    for (std::size_t i = 0; i < past.work.size(); ++i) {
      const PastWork& work = past.work[i];
      const PodRequest& request = work.pod.request;
      places_.emplace(request.uid, i);
      WorkLife& life = lived_.lives.emplace_back();
      life.uid = request.uid;
      life.pod = request.name;
      life.created = work.created;
      life.gpus = GpusOf(request);
      if (!work.pod.node.empty()) {
        life.runs.push_back({work.pod.node, work.pod.running_at.value_or(work.created), {}});
      }
    }
    RehearsalRules rules;
    rules.end_of = [this](const PodCopy& pod) { return EndOf(pod); };
    rules.heard = [this](const Rehearsed& news) { Hear(news); };
    rules.metered = [this](const MeterEvent& event) {
      const auto place = places_.find(OriginOf(event.uid));
      if (place == places_.end() || event.kind != MeterKind::kOpen) return;
      lived_.lives[place->second].gpus = GpusOf(event.parts);
    };
    rules.to_the_end = true;
    rules.most_tries = rules.most_plans = rules.most_moments = kNoBound;
    rehearsal_.emplace(*engine_, copy_, std::move(rules));
  }

  LivedPast Live(const std::function<bool(Instant)>& goes_on) {
    for (const PastWork& work : past_.work) {
      const PodUid& uid = work.pod.request.uid;
      if (work.created > past_.from) {
        PodCopy pod;
        pod.facts = work.pod;
        rehearsal_->Arrive(std::move(pod), work.created, Rehearsal::Arrival::kTold);
      }
      if (work.left) rehearsal_->Leave(uid, *work.left);
    }
    NoteFleet(past_.from);
    std::size_t turn = 0;
    while (turn < past_.turns.size() && past_.turns[turn].at <= past_.from) ++turn;
    for (Instant now = past_.from; now < past_.until;) {
      const bool turns = turn < past_.turns.size() && past_.turns[turn].at < past_.until;
      // What happens at the very moment of a turn comes before it.
      now = std::min<Instant>(now + kStep, turns ? past_.turns[turn].at : past_.until);
      rehearsal_->Run(now);
      if (goes_on && !goes_on(now)) {
        lived_.complete = false;
        break;
      }
      while (turn < past_.turns.size() && past_.turns[turn].at <= now) Take(past_.turns[turn++]);
    }
    lived_.complete = lived_.complete && !rehearsal_->gave_up();
    return std::move(lived_);
  }

 private:
  std::optional<Instant> EndOf(const PodCopy& pod) const {
    const auto place = places_.find(OriginOf(pod.facts.request.uid));
    if (place == places_.end() || !pod.facts.running_at) return std::nullopt;
    const std::optional<Millis>& needs = past_.work[place->second].needs;
    return needs ? std::optional(*pod.facts.running_at + *needs) : std::nullopt;
  }

  void Hear(const Rehearsed& news) {
    const PodFacts& pod = news.pod.facts;
    const auto place = places_.find(OriginOf(pod.request.uid));
    if (place == places_.end()) return;
    std::vector<WorkRun>& runs = lived_.lives[place->second].runs;
    switch (news.what) {
      case Rehearsed::What::kStart:
        runs.push_back({pod.node, news.at, std::nullopt});
        return;
      case Rehearsed::What::kEnd:
        runs.back().until = news.at;
        return;
      case Rehearsed::What::kEvicted:
        runs.back().evicted = true;
        return;
    }
  }

  void Take(const PastTurn& turn) {
    rehearsal_->Pass(turn.at);
    if (turn.set != nullptr) {
      engine_->SetPolicies(turn.set, turn.defaults, turn.at);
      rehearsal_->PoliciesChanged();
    }
    for (const PastTurn::GangSize& gang : turn.gangs) {
      engine_->SetGangSize(gang.ns, gang.gang, gang.size, turn.at);
      rehearsal_->PoliciesChanged();
    }
    for (const NodeFacts& node : turn.nodes) {
      engine_->UpsertNode(node, turn.at);
      rehearsal_->NodeCame(node);
    }
    for (const NodeName& node : turn.gone) {
      engine_->DeleteNode(node, turn.at);
      rehearsal_->NodeWent(node);
    }
    NoteFleet(turn.at);
  }

  void NoteFleet(Instant at) {
    FleetWalk walk;
    while (!walk.done()) engine_->FleetSlice(walk);
    PastFleet change{at, 0, {}, std::move(walk.set)};
    std::map<NodeName, FleetNode> gone = std::exchange(fleet_, {});
    for (FleetNode& node : walk.nodes) {
      change.gpus += node.gpus;
      const auto before = gone.extract(node.name);
      const bool same = !before.empty() && before.mapped().model == node.model &&
                        before.mapped().gpus == node.gpus && before.mapped().traits == node.traits;
      if (!same) change.nodes.push_back(node);
      fleet_.emplace(node.name, std::move(node));
    }
    for (auto& [name, node] : gone) change.nodes.push_back({name, node.model, 0, node.traits});
    lived_.fleet.push_back(std::move(change));
  }

  const Past& past_;
  const ClusterCopy copy_;
  const std::unique_ptr<Engine> engine_;
  std::optional<Rehearsal> rehearsal_;
  std::unordered_map<PodUid, std::size_t> places_;  // looked up only
  std::map<NodeName, FleetNode> fleet_;             // as it is
  LivedPast lived_;
};

int64_t Within(Instant begin, Instant end, Instant from, Instant until) {
  return std::max<int64_t>((std::min(end, until) - std::max(begin, from)).count(), 0);
}

}  // namespace

LivedPast LiveAgain(const Past& past, const std::function<bool(Instant)>& goes_on) {
  return Liver(past).Live(goes_on);
}

PastSums SumOf(const LivedPast& lived, Instant from, Instant until,
               const std::function<bool(std::size_t)>& chosen) {
  PastSums sums;
  std::vector<int64_t> waits;
  for (std::size_t i = 0; i < lived.lives.size(); ++i) {
    if (chosen && !chosen(i)) continue;
    const WorkLife& life = lived.lives[i];
    const int64_t gpus = life.gpus.count();
    if (life.created > from && life.created <= until) {
      ++sums.pods;
      if (!life.runs.empty() && life.runs.front().from <= until) {
        ++sums.started;
        waits.push_back((life.runs.front().from - life.created).count());
      }
    }
    for (const WorkRun& run : life.runs) {
      const Instant end = run.until.value_or(until);
      sums.held += gpus * Within(run.from, end, from, until);
      if (!run.evicted || end <= from || end > until) continue;
      ++sums.evictions;
      sums.lost += gpus * (end - run.from).count();
    }
  }
  std::ranges::sort(waits);
  if (!waits.empty()) {
    int64_t sum = 0;
    for (const int64_t wait : waits) sum += wait;
    const auto count = static_cast<int64_t>(waits.size());
    const auto at = [&](int64_t percent) {
      return Millis(waits[static_cast<std::size_t>((count - 1) * percent / 100)]);
    };
    sums.wait_mean = Millis(sum / count);
    sums.wait_median = at(50);
    sums.wait_p90 = at(90);
  }
  for (std::size_t i = 0; i < lived.fleet.size(); ++i) {
    const Instant next = i + 1 < lived.fleet.size() ? lived.fleet[i + 1].at : until;
    const int64_t span = Within(lived.fleet[i].at, next, from, until);
    sums.offered += 1000 * lived.fleet[i].gpus * span;
  }
  return sums;
}

}  // namespace tranche
