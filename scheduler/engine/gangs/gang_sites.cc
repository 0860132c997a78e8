#include "scheduler/engine/gangs/gang_sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/selection/shape.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/index/card_links.h"
#include "scheduler/index/card_sets.h"

namespace tranche {
namespace {

// The planner asks how many more than the gang would fit, to fill domains exactly.
constexpr int kMostAsked = 16;
constexpr std::string_view kLevelNames[kGangLevels] = {"NVLink clique", "rack", "block", "zone"};

void KindText(const PodRequest& request, std::string& text) {
  text.clear();
  AppendShape(request, text);
  if (request.constraints != nullptr) AppendConstraints(*request.constraints, text);
  text += request.priority_class;
}

}  // namespace

GangSites::GangSites(const GangParts& parts, std::vector<std::shared_ptr<const PodRequest>> members,
                     const std::map<NodeName, Instant>& avoided, Instant now,
                     std::optional<Instant> by)
    : cluster_(parts.cluster),
      rules_(parts.rules),
      selection_(parts.selection),
      held_nodes_(parts.held_nodes),
      now_(now),
      by_(by),
      members_(std::move(members)) {
  std::map<std::string, int> kinds;
  std::string text;
  for (const auto& member : members_) {
    KindText(*member, text);
    const auto [at, fresh] = kinds.try_emplace(text, static_cast<int>(kinds_.size()));
    if (fresh) {
      Kind kind;
      kind.request = member;
      kind.context = rules_.ContextOf(*member);
      kind.rules = {kind.context.policy, member->card_choice, -1, kind.context.sharing,
                    &cluster_.scorer.layout_values()};
      if (kind.rules.choice == CardChoice::kStrategy) kind.rules.choice = CardChoice::kTightest;
      if (whole_ == Reason::kNone) whole_ = kind.context.whole;
      kinds_.push_back(std::move(kind));
    }
    ++kinds_[static_cast<std::size_t>(at->second)].members;
    kind_of_.push_back(at->second);
    within_ = member->gang_within ? member->gang_within : within_;
    const Kind& kind = kinds_[static_cast<std::size_t>(at->second)];
    if (WishOf(*member, *kind.context.policy) == TopologyWish::kRequired) {
      within_ = GangLevel::kClique;
    }
  }
  for (const NodeId id : cluster_.names.ascending()) {
    if (cluster_.nodes[id] == nullptr || cluster_.hot[id].closed != Reason::kNone) continue;
    const auto left_out = avoided.find(cluster_.names.name(id));
    if (left_out != avoided.end() && left_out->second > now) continue;
    if (cluster_.nodes[id]->state.inventory().has_devices()) nodes_.push_back(id);
  }
  suits_.assign(nodes_.size(), std::vector<signed char>(kinds_.size(), -1));
}

std::string GangSites::DomainText(NodeId id, GangLevel level) const {
  const DomainLabels& labels = kinds_.front().context.policy->domains;
  return DomainOf(cluster_, id, level, labels);
}

std::array<int, kGangLevels> GangSites::DomainsOf(NodeId id) {
  std::array<int, kGangLevels> domains{};
  for (std::size_t level = 0; level < kGangLevels; ++level) {
    const std::string text = DomainText(id, static_cast<GangLevel>(level));
    if (text.empty()) {
      domains[level] = kNoDomain;
      continue;
    }
    const auto [at, fresh] =
        domains_[level].try_emplace(text, static_cast<int>(domains_[level].size()));
    if (fresh) domain_names_[level].push_back(text);
    domains[level] = at->second;
  }
  return domains;
}

// All but room.
bool GangSites::Suits(std::size_t node, int kind_number) {
  signed char& known = suits_[node][static_cast<std::size_t>(kind_number)];
  if (known >= 0) return known == 1;
  const Kind& kind = kinds_[static_cast<std::size_t>(kind_number)];
  const NodeId id = nodes_[node];
  bool suits = MeetsDemands(cluster_.nodes[id]->state.facts(), *kind.request);
  if (suits && kind.context.metered && kind.context.membership.mode != QuotaMode::kObserve) {
    rules_.ForgetKindAnswers();
    const Reason quota = rules_.AskQuota(kind.context, id, now_).reason;
    if (quota_ == Reason::kNone) quota_ = quota;
    suits = quota == Reason::kNone;
  }
  suits = suits && ShutTo(cluster_, kind.context, id, now_) == Reason::kNone;
  known = suits ? 1 : 0;
  return suits;
}

bool GangSites::HasEnded(const PodUid& uid) const {
  const std::optional<Instant> end = by_ ? held_nodes_.EndOf(uid, now_) : std::nullopt;
  return end && *end <= *by_;
}

bool GangSites::EndsSoon(const NodeState& state) const {
  return by_ && std::ranges::any_of(state.holdings(), [this](const Holding& holding) {
           return HasEnded(holding.uid);
         });
}

void GangSites::LoadOf(const NodeState& state, Load& load) const {
  load = EndsSoon(state) ? state.LoadWithout([this](const PodUid& uid) { return HasEnded(uid); })
                         : state.hard();
}

int GangSites::Fill(const NodeState& state, Load& load, const Kind& kind, int most,
                    std::vector<Picks>* taken) {
  int placed = 0;
  for (; placed < most; ++placed) {
    if (placer_.Place(state.inventory(), load, *kind.request, kind.rules, picks_) !=
        Reason::kNone) {
      break;
    }
    state.AddRequest(*kind.request, picks_, load);
    if (taken != nullptr) taken->push_back(picks_);
  }
  return placed;
}

int GangSites::Seats(std::size_t node, int kind_number, int most) {
  if (!Suits(node, kind_number)) return 0;
  const Kind& kind = kinds_[static_cast<std::size_t>(kind_number)];
  const NodeState& state = cluster_.nodes[nodes_[node]]->state;
  if (const auto at = working_.find(node); at != working_.end()) {
    Load load = at->second.load;
    return Fill(state, load, kind, most, nullptr);
  }
  const auto fill = [&] {
    Load load;
    LoadOf(state, load);
    return Fill(state, load, kind, std::max(kind.members, kMostAsked), nullptr);
  };
  // Cards that are chosen by UUID are not part of a state.
  if (EndsSoon(state) || SelectsDevices(*kind.request)) return std::min(most, fill());
  const auto [at, fresh] = seats_.try_emplace({cluster_.hot[nodes_[node]].hard, kind_number}, 0);
  if (fresh) at->second = fill();
  return std::min(most, at->second);
}

void GangSites::Take(std::size_t node, int kind_number, int count) {
  const NodeState& state = cluster_.nodes[nodes_[node]]->state;
  const auto [at, fresh] = working_.try_emplace(node);
  if (fresh) {
    LoadOf(state, at->second.load);
    at->second.taken.resize(kinds_.size());
  }
  const auto kind = static_cast<std::size_t>(kind_number);
  const int placed = Fill(state, at->second.load, kinds_[kind], count, &at->second.taken[kind]);
  TRANCHE_CHECK(placed == count);
}

void GangSites::Reset() { working_.clear(); }

GangQuestion GangSites::Ask(const std::vector<NodeName>& placed) {
  GangQuestion context;
  const Kind& first = kinds_.front();
  Shape* shape = selection_.ShapeOf(first.context);
  selection_.Begin(*first.request);
  for (const NodeId id : nodes_) {
    GangNode node;
    node.domain = DomainsOf(id);
    const Verdict& verdict = selection_.Lookup(shape, first.context, id, Taken::kFirmly);
    if (verdict.reason == Reason::kNone) {
      node.cost = (int64_t{verdict.worth.rank} << 40) + cluster_.scorer.CostOf(verdict.worth);
    }
    context.nodes.push_back(node);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    context.members.push_back({kind_of_[i], members_[i]->gang_rank});
  }
  context.kinds = static_cast<int>(kinds_.size());
  context.within = within_;
  for (std::size_t level = 0; level < kGangLevels; ++level) {
    bool several = false;
    for (const NodeName& name : placed) {
      const NodeId id = cluster_.names.Find(name.str());
      if (id == kNoNode || cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present()) {
        continue;
      }
      const int domain = DomainsOf(id)[level];
      int& settled = context.settled[level];
      several |= domain == kNoDomain || (settled != kNoDomain && settled != domain);
      settled = domain;
    }
    if (several) context.settled[level] = kNoDomain;
  }
  return context;
}

std::vector<GangSites::Seat> GangSites::SeatsOf(const GangPlan& plan) {
  std::map<std::pair<std::size_t, int>, std::size_t> next;
  std::vector<Seat> seats;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::size_t node = plan.node_of[i];
    const int kind = kind_of_[i];
    const auto& taken = working_.at(node).taken[static_cast<std::size_t>(kind)];
    seats.push_back({nodes_[node], taken[next[{node, kind}]++]});
  }
  return seats;
}

std::string GangSites::Describe() {
  Reset();
  const auto total = static_cast<int>(members_.size());
  std::map<int, int> in_domain;
  int all = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    int seats = 0;
    for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
      seats = std::max(seats, Seats(node, kind, total));
    }
    all += seats;
    if (!within_) continue;
    in_domain[DomainsOf(nodes_[node])[static_cast<std::size_t>(*within_)]] += seats;
  }
  if (!within_) {
    return fmt::format("expected room for {} pods at once, found room for {}", total,
                       std::min(all, total));
  }
  const auto level = static_cast<std::size_t>(*within_);
  int best = 0;
  std::string name = "none";
  for (const auto& [domain, seats] : in_domain) {
    if (domain == kNoDomain || seats <= best) continue;
    best = seats;
    name = domain_names_[level][static_cast<std::size_t>(domain)];
  }
  return fmt::format("expected room for {} pods in one {}, found room for {} in the best ({})",
                     total, kLevelNames[level], std::min(best, total), name);
}

}  // namespace tranche
