// Where a waiting pod stands, in the words of the orders that decide.
#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/engine/engine_views.h"

namespace tranche {
namespace {

using For = TurnLine::For;

// The pods nearest to one in an order, found in one pass in whatever sequence they come.
class Neighbours {
 public:
  Neighbours(For what, TeamTurn own, QuotaBook::Shares& shares)
      : what_(what), own_(std::move(own)), shares_(shares) {}

  void Meet(const TeamTurn& other) {
    ++waiting_;
    if (other.uid == own_.uid) return;
    if (ComesFirst(other, own_)) {
      ++position_;
      if (!before_ || ComesFirst(*before_, other)) before_ = other;
    } else if (!after_ || ComesFirst(other, *after_)) {
      after_ = other;
    }
  }

  // The first term by which one of the two comes before the other.
  TurnTerm TermBetween(const TeamTurn& left, const TeamTurn& right) {
    if (left.rank != right.rank) return TurnTerm::kClass;
    const bool owned = left.leaf != kNoQuota && right.leaf != kNoQuota;
    if (what_ == For::kQuota && left.leaf != right.leaf &&
        (!owned || shares_.Compare(left.leaf, right.leaf) != 0)) {
      return TurnTerm::kShare;
    }
    if (left.returned != right.returned) return TurnTerm::kReturned;
    return left.since != right.since ? TurnTerm::kSince : TurnTerm::kUid;
  }

  template <typename View>
  TurnLine Line(View view) {
    TurnLine line;
    line.what = what_;
    line.position = position_;
    line.waiting = waiting_;
    if (before_) {
      line.before = view(*before_);
      line.before_by = TermBetween(*before_, own_);
    }
    if (after_) {
      line.after = view(*after_);
      line.after_by = TermBetween(own_, *after_);
    }
    return line;
  }

 private:
  bool ComesFirst(const TeamTurn& left, const TeamTurn& right) {
    if (what_ == For::kQuota) return TeamQueue::ComesFirst(left, right, shares_);
    return std::tie(right.rank, right.returned, left.since, left.uid) <
           std::tie(left.rank, left.returned, right.since, right.uid);
  }

  const For what_;
  const TeamTurn own_;
  QuotaBook::Shares& shares_;
  int64_t position_ = 1;
  int64_t waiting_ = 0;
  std::optional<TeamTurn> before_;
  std::optional<TeamTurn> after_;
};

class RankFinder {
 public:
  RankFinder(EngineParts& parts, Instant now)
      : parts_(parts), cluster_(parts.cluster), shares_(parts.cluster.book, now) {}

  RankView Of(const PodRecord& record) {
    RankView view;
    const TeamTurn own = parts_.team_queue.TurnOf(record);
    view.own = ViewOf(own);
    view.waits = cluster_.IsPending(record);
    if (!view.waits) return view;
    if (parts_.team_queue.contenders.contains(own.uid)) view.lines.push_back(QuotaLine(own));
    if (parts_.preemptors.Has(own.uid)) view.lines.push_back(RoomLine(own));
    return view;
  }

 private:
  TurnView ViewOf(const TeamTurn& turn) {
    const PodRequest& request = *cluster_.pods.at(turn.uid).request;
    TurnView view;
    view.pod = request.name;
    view.uid = turn.uid;
    view.rank = turn.rank;
    const QuotaMembership membership =
        cluster_.book.MembershipOf(request.name.ns, request.priority_class);
    if (membership.gpu_class != nullptr) view.workload_class = membership.gpu_class->name;
    view.returned = turn.returned;
    view.since = turn.since;
    if (turn.leaf != kNoQuota) {
      view.leaf = cluster_.book.tree().name(turn.leaf);
      view.share = shares_.TermsOf(turn.leaf);
    }
    return view;
  }

  // Quota is given back to all of a tree.
  TurnLine QuotaLine(const TeamTurn& own) {
    Neighbours neighbours(For::kQuota, own, shares_);
    const QuotaTree& tree = cluster_.book.tree();
    for (const PodUid& uid : parts_.team_queue.contenders) {
      const PodRecord* const other = cluster_.Find(uid);
      if (other == nullptr || !cluster_.IsPending(*other)) continue;
      const TeamTurn turn = parts_.team_queue.TurnOf(*other);
      if (turn.leaf == kNoQuota || own.leaf == kNoQuota ||
          tree.root(turn.leaf) != tree.root(own.leaf)) {
        continue;
      }
      neighbours.Meet(turn);
    }
    return neighbours.Line([this](const TeamTurn& turn) { return ViewOf(turn); });
  }

  TurnLine RoomLine(const TeamTurn& own) {
    Neighbours neighbours(For::kRoom, own, shares_);
    for (const auto& [key, group] : parts_.preemptors.groups()) {
      for (const auto& [since, uid] : group.pods) {
        const PodRecord* const other = cluster_.Find(uid);
        if (other != nullptr) neighbours.Meet(parts_.team_queue.TurnOf(*other));
      }
    }
    return neighbours.Line([this](const TeamTurn& turn) { return ViewOf(turn); });
  }

  EngineParts& parts_;
  ClusterState& cluster_;
  QuotaBook::Shares shares_;
};

}  // namespace

std::optional<RankView> Engine::Rank(const PodName& pod, Instant now) {
  parts_->Advance(now);
  const PodRecord* const record = EngineViews(*parts_).FindNewest(pod);
  if (record == nullptr) return std::nullopt;
  return RankFinder(*parts_, now).Of(*record);
}

}  // namespace tranche
