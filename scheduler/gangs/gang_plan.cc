#include "scheduler/gangs/gang_plan.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "scheduler/gangs/gang_tiers.h"
#include "topology/base/check.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

// So many seats of a node are asked for at least, also for small gangs: how exactly a domain would
// be filled is seen only from what would be left.
constexpr int kSeatsSeen = 16;

// Members of one kind on one node.
struct Share {
  std::size_t node = 0;
  int kind = 0;
  int count = 0;
};

// What drafts are chosen by, smallest first. Compared only between drafts for groups of one tier.
struct Key {
  // Groups touched in the tier below; seats of the group itself, then of the wider ones around it;
  // groups touched in the tiers further below, down to nodes. Of a clique that is not asked for
  // fewest nodes first: they are alike there.
  std::array<int64_t, kGangTiers + 1> figures = {};
  Int128 cost = 0;
  std::size_t first_node = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Draft {
  std::vector<Share> shares;  // kinds in the order they were placed, a node once a kind
  Key key;
};

int CountDistinct(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  return static_cast<int>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

class Planner {
 public:
  Planner(const GangQuestion& question, GangRoom& room)
      : question_(question), room_(room), tiers_(question.nodes) {}

  std::optional<GangPlan> Plan();

 private:
  // Nodes of one group with seats for the kind in hand.
  struct Group {
    std::span<std::size_t> nodes;
    int64_t seats = 0;
    Int128 cost = 0;
    bool used = false;  // holds members already: going there again touches nothing new
  };

  bool AskRoom();
  void MarkSettled();
  bool IsOpen(int tier, std::size_t node) const;
  std::vector<std::span<std::size_t>> ByGroup(std::span<std::size_t> nodes, int tier) const;
  std::optional<Draft> BestAt(int tier);
  std::optional<Draft> Try(std::span<const std::size_t> nodes, int tier);
  bool TryKind(int kind, std::span<const std::size_t> nodes, int tier, std::vector<Share>& shares);
  std::vector<Group> Split(std::span<std::size_t> nodes, int tier) const;
  void Lay(const Group& group, int tier, int need, std::vector<Share>& shares) const;
  void LayInBest(std::span<const Group> groups, int tier, int need,
                 std::vector<Share>& shares) const;
  Key KeyOf(std::span<const Share> shares, int tier, int64_t seats) const;
  int CountNew(std::span<const Share> shares, int tier) const;
  void Mark(std::span<const Share> shares, int change);
  GangPlan Finish(Draft draft);
  void Describe(std::span<const Share> shares, GangPlan& plan) const;

  static std::size_t At(int number) { return static_cast<std::size_t>(number); }

  const GangQuestion& question_;
  GangRoom& room_;
  const GangTiers tiers_;
  std::vector<int> members_;                 // by kind
  std::vector<int> order_;                   // kinds with members, the hardest to place first
  std::vector<std::vector<int>> untouched_;  // seats by kind, node, when nothing is taken
  std::vector<std::array<std::vector<int64_t>, kGangTiers + 1>> free_;  // their sums by group
  std::vector<std::size_t> nodes_;                                      // with seats for some kind
  bool settled_ = false;  // members run already, in a domain that is known
  // By tier and group: more than 0 where members are, settled ones or of kinds placed before.
  std::array<std::vector<int>, kGangTiers + 1> used_;
  // The kind in hand.
  int kind_ = 0;
  std::vector<int> seats_;  // by node, of those it may go to
};

// Asks every node about every kind. False: some kind has too few seats in the whole cluster.
bool Planner::AskRoom() {
  const std::size_t kinds = At(question_.kinds);
  members_.assign(kinds, 0);
  for (const GangMember& member : question_.members) {
    TRANCHE_CHECK_GE(member.kind, 0);
    TRANCHE_CHECK_LT(member.kind, question_.kinds);
    ++members_[At(member.kind)];
  }
  untouched_.resize(kinds);
  free_.resize(kinds);
  std::vector<char> open(question_.nodes.size());
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (members_[kind] == 0) continue;
    order_.push_back(static_cast<int>(kind));
    for (int tier = 0; tier <= kClusterTier; ++tier) {
      free_[kind][At(tier)].resize(At(tiers_.groups(tier)));
    }
    const int most = std::max(members_[kind], kSeatsSeen);
    for (std::size_t node = 0; node < question_.nodes.size(); ++node) {
      const int seats = room_.Seats(node, static_cast<int>(kind), most);
      untouched_[kind].push_back(seats);
      open[node] |= seats > 0;
      for (int tier = 0; tier <= kClusterTier; ++tier) {
        free_[kind][At(tier)][At(tiers_.group(tier, node))] += seats;
      }
    }
    if (free_[kind][kClusterTier][0] < members_[kind]) return false;
  }
  for (std::size_t node = 0; node < open.size(); ++node) {
    if (open[node] != 0) nodes_.push_back(node);
  }
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
    return free_[At(a)][kClusterTier][0] < free_[At(b)][kClusterTier][0];
  });
  return true;
}

void Planner::MarkSettled() {
  for (int tier = 0; tier <= kClusterTier; ++tier) used_[At(tier)].resize(At(tiers_.groups(tier)));
  for (int tier = 1; tier < kGangTiers; ++tier) {
    const int domain = question_.settled[At(tier - 1)];
    if (domain == kNoDomain) continue;
    settled_ = true;
    for (std::size_t node = 0; node < question_.nodes.size(); ++node) {
      if (question_.nodes[node].domain[At(tier - 1)] == domain) {
        used_[At(tier)][At(tiers_.group(tier, node))] = 1;
      }
    }
  }
}

// Whether the domain of the node may be the one that holds the whole gang.
bool Planner::IsOpen(int tier, std::size_t node) const {
  if (tier == kClusterTier) return true;
  const int domain = question_.nodes[node].domain[At(tier - 1)];
  if (domain == kNoDomain) return false;
  if (!settled_) return true;
  if (const int known = question_.settled[At(tier - 1)]; known != kNoDomain) return domain == known;
  // In one domain of a wider level, but not of this one: they run in several.
  return std::all_of(question_.settled.begin() + tier, question_.settled.end(),
                     [](int wider) { return wider == kNoDomain; });
}

// Sorts nodes by their groups of the tier, and gives each group.
std::vector<std::span<std::size_t>> Planner::ByGroup(std::span<std::size_t> nodes, int tier) const {
  std::sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(tiers_.group(tier, a), a) < std::pair(tiers_.group(tier, b), b);
  });
  std::vector<std::span<std::size_t>> groups;
  for (std::size_t begin = 0; begin < nodes.size();) {
    std::size_t end = begin + 1;
    const int group = tiers_.group(tier, nodes[begin]);
    while (end < nodes.size() && tiers_.group(tier, nodes[end]) == group) ++end;
    groups.push_back(nodes.subspan(begin, end - begin));
    begin = end;
  }
  return groups;
}

std::optional<Draft> Planner::BestAt(int tier) {
  std::optional<Draft> best;
  for (const std::span<std::size_t> nodes : ByGroup(nodes_, tier)) {
    if (!IsOpen(tier, nodes.front())) continue;
    std::optional<Draft> draft = Try(nodes, tier);
    if (draft && (!best || draft->key < best->key)) best = std::move(draft);
  }
  return best;
}

// All members on these nodes, which are a group of the tier. Kinds choose one after the other.
std::optional<Draft> Planner::Try(std::span<const std::size_t> nodes, int tier) {
  const std::size_t group = At(tiers_.group(tier, nodes.front()));
  for (const int kind : order_) {
    if (free_[At(kind)][At(tier)][group] < members_[At(kind)]) return std::nullopt;
  }
  room_.Reset();
  Draft draft;
  std::size_t known = 0;  // shares of earlier kinds, which the kind in hand has to know of
  bool placed = true;
  for (std::size_t i = 0; placed && i < order_.size(); ++i) {
    const auto fresh = std::span(draft.shares).subspan(known);
    for (const Share& share : fresh) room_.Take(share.node, share.kind, share.count);
    Mark(fresh, 1);
    known = draft.shares.size();
    placed = TryKind(order_[i], nodes, tier, draft.shares);
  }
  Mark(std::span(draft.shares).first(known), -1);
  if (!placed) return std::nullopt;
  draft.key = KeyOf(draft.shares, tier, free_[At(order_.front())][At(tier)][group]);
  return draft;
}

bool Planner::TryKind(int kind, std::span<const std::size_t> nodes, int tier,
                      std::vector<Share>& shares) {
  kind_ = kind;
  const int members = members_[At(kind)];
  std::vector<std::size_t> open;
  Group all;
  for (const std::size_t node : nodes) {
    const bool touched = used_[0][node] > 0;
    seats_[node] = touched ? room_.Seats(node, kind, members) : untouched_[At(kind)][node];
    if (seats_[node] == 0) continue;
    open.push_back(node);
    all.seats += seats_[node];
  }
  if (all.seats < members) return false;
  all.nodes = open;
  Lay(all, tier, members, shares);
  return true;
}

// The nodes by their groups of a tier, in the order they are to be filled up.
std::vector<Planner::Group> Planner::Split(std::span<std::size_t> nodes, int tier) const {
  std::vector<Group> groups;
  for (const std::span<std::size_t> together : ByGroup(nodes, tier)) {
    Group group{.nodes = together};
    for (const std::size_t node : together) {
      group.seats += seats_[node];
      group.cost += question_.nodes[node].cost;
    }
    group.used = used_[At(tier)][At(tiers_.group(tier, together.front()))] > 0;
    groups.push_back(group);
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.used != b.used) return a.used;
    if (a.seats != b.seats) return a.seats > b.seats;
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() < b.nodes.size();
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.nodes.front() < b.nodes.front();
  });
  return groups;
}

// Seats `need` members on a group of the tier that has room for them, in as few groups of the tier
// below as possible: the one with most seats is filled up until one of the others can take all that
// are left. No choice needs fewer: any m groups have at most the seats of the m largest, so where
// the largest m - 1 are too few, every choice has m, and where the m largest suffice, m are used.
// Groups used already go first, since filling them adds none.
void Planner::Lay(const Group& group, int tier, int need, std::vector<Share>& shares) const {
  if (group.nodes.size() == 1) {
    shares.push_back({group.nodes.front(), kind_, need});
    return;
  }
  if (need == group.seats) {
    for (const std::size_t node : group.nodes) shares.push_back({node, kind_, seats_[node]});
    return;
  }
  const std::vector<Group> groups = Split(group.nodes, tier - 1);
  for (std::size_t i = 0;; ++i) {
    if (groups[i].seats >= need) {
      return LayInBest(std::span(groups).subspan(i), tier - 1, need, shares);
    }
    Lay(groups[i], tier - 1, static_cast<int>(groups[i].seats), shares);
    need -= static_cast<int>(groups[i].seats);
  }
}

// In the best one of those groups that can take all, which are the first.
void Planner::LayInBest(std::span<const Group> groups, int tier, int need,
                        std::vector<Share>& shares) const {
  std::optional<Draft> best;
  for (const Group& group : groups) {
    if (group.seats < need || group.used != groups.front().used) break;
    Draft draft;
    Lay(group, tier, need, draft.shares);
    draft.key = KeyOf(draft.shares, tier, group.seats);
    if (!best || draft.key < best->key) best = std::move(draft);
  }
  shares.insert(shares.end(), best->shares.begin(), best->shares.end());
}

// `seats`: of the group before.
Key Planner::KeyOf(std::span<const Share> shares, int tier, int64_t seats) const {
  Key key;
  auto figure = key.figures.begin();
  if (tier > 1) *figure++ = CountNew(shares, tier - 1);
  *figure++ = seats;
  const Share& first = shares.front();
  for (int wider = tier + 1; wider < kGangTiers; ++wider) {
    *figure++ = free_[At(first.kind)][At(wider)][At(tiers_.group(wider, first.node))];
  }
  for (int below = std::max(tier - 2, 0); below >= 0; --below) *figure++ = CountNew(shares, below);
  key.first_node = first.node;
  for (const Share& share : shares) {
    key.cost += Int128{question_.nodes[share.node].cost} * share.count;
    key.first_node = std::min(key.first_node, share.node);
  }
  return key;
}

// Groups of a tier that the shares lie in and that held no member before.
int Planner::CountNew(std::span<const Share> shares, int tier) const {
  std::vector<int> groups;
  groups.reserve(shares.size());
  for (const Share& share : shares) {
    const int group = tiers_.group(tier, share.node);
    if (used_[At(tier)][At(group)] == 0) groups.push_back(group);
  }
  return CountDistinct(groups);
}

void Planner::Mark(std::span<const Share> shares, int change) {
  for (int tier = 0; tier <= kClusterTier; ++tier) {
    for (const Share& share : shares) {
      used_[At(tier)][At(tiers_.group(tier, share.node))] += change;
    }
  }
}

// Takes the draft's room, and gives the seats to members: by rank along the nodes, which lie in the
// order of their zones, blocks, racks and cliques.
GangPlan Planner::Finish(Draft draft) {
  room_.Reset();
  for (const Share& share : draft.shares) room_.Take(share.node, share.kind, share.count);
  std::sort(draft.shares.begin(), draft.shares.end(), [&](const Share& a, const Share& b) {
    for (int tier = kGangTiers - 1; tier >= 0; --tier) {
      const int first = tiers_.group(tier, a.node);
      const int second = tiers_.group(tier, b.node);
      if (first != second) return first < second;
    }
    return a.kind < b.kind;
  });
  std::vector<std::vector<std::size_t>> seats(members_.size());  // by kind: nodes
  for (const Share& share : draft.shares) {
    seats[At(share.kind)].insert(seats[At(share.kind)].end(), At(share.count), share.node);
  }
  const std::vector<GangMember>& members = question_.members;
  std::vector<std::size_t> by_rank(members.size());
  std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](std::size_t a, std::size_t b) {
    // No rank, -1, is the largest of all as an unsigned number.
    return static_cast<unsigned>(members[a].rank) < static_cast<unsigned>(members[b].rank);
  });
  GangPlan plan;
  plan.node_of.resize(members.size());
  std::vector<std::size_t> next(members_.size());
  for (const std::size_t member : by_rank) {
    const std::size_t kind = At(members[member].kind);
    plan.node_of[member] = seats[kind][next[kind]++];
  }
  Describe(draft.shares, plan);
  return plan;
}

void Planner::Describe(std::span<const Share> shares, GangPlan& plan) const {
  for (int tier = kGangTiers - 1; tier > 0; --tier) {
    std::vector<int> groups;
    for (const Share& share : shares) groups.push_back(tiers_.group(tier, share.node));
    const std::size_t level = At(tier - 1);
    plan.spans[level] = CountDistinct(groups);
    const int domain = question_.nodes[shares.front().node].domain[level];
    const bool with_settled = !settled_ || question_.settled[level] == domain;
    if (plan.spans[level] == 1 && domain != kNoDomain && with_settled) {
      plan.level = static_cast<GangLevel>(level);
    }
  }
}

std::optional<GangPlan> Planner::Plan() {
  room_.Reset();
  if (question_.members.empty()) return GangPlan{};
  if (!AskRoom()) return std::nullopt;
  MarkSettled();
  seats_.resize(question_.nodes.size());
  const int widest = question_.within ? TierOf(*question_.within) : kClusterTier;
  for (int tier = 1; tier <= widest; ++tier) {
    if (std::optional<Draft> draft = BestAt(tier)) return Finish(*std::move(draft));
  }
  return std::nullopt;
}

}  // namespace

std::optional<GangPlan> PlanGang(const GangQuestion& question, GangRoom& room) {
  return Planner(question, room).Plan();
}

}  // namespace tranche
