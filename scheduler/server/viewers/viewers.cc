#include "scheduler/server/viewers/viewers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "scheduler/api/router.h"

namespace tranche {
namespace {

constexpr const char* kGroup = "tranche.dev";
constexpr int kAwaySeconds = 2;

http::Response Unknown(std::string_view why) {
  http::Response response = ErrorResponse(401, why);
  response.headers["WWW-Authenticate"] = "Bearer realm=\"kubernetes\"";
  return response;
}

http::Response AskOften(std::chrono::nanoseconds wait) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return AskLater(429, "too many callers are new to this server, ask again later",
                  static_cast<int>(std::max<int64_t>(seconds, 1)));
}

// "system:serviceaccount:NAMESPACE:NAME"; "" of all others.
std::string OwnNamespace(const std::string& user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return "";
  const std::string rest = user.substr(kPrefix.size());
  return rest.substr(0, rest.find(':'));
}

}  // namespace

class Viewers::Member {
 public:
  Member(const TokenDigest& of, TimePoint now) : digest(of), seen(now), own_budget(1, now) {}

  const TokenDigest digest;
  bool somebody = false;  // the API server has said so once; else among the strangers
  std::list<TokenDigest>::iterator place;
  kube::ReviewedUser user;
  uint64_t version = 0;  // of the user
  TimePoint seen;
  int64_t weight = 0;  // as counted
  // Of namespaces that it names for the first time: no caller uses all that there is for all.
  ReviewBudget own_budget;
  Fact token, everything, metrics;
  std::map<std::string, Fact> namespaces;
};

struct Viewers::Visit {
  std::shared_ptr<Member> member;
  std::string token;  // never kept beyond
  For what = For::kApi;
  bool which = false;
  std::vector<std::string> namespaces;
  std::function<void(Answer)> who_done;
  std::function<void(Seen)> which_done;
  std::optional<http::Response> refusal;

  void End(Answer answer, Seen seen) {
    answer.refusal = refusal;
    seen.refusal = std::move(refusal);
    if (which) return which_done(std::move(seen));
    who_done(std::move(answer));
  }
};

Viewers::Viewers(kube::Reviews& reviews, int reviews_per_second, Clocks clocks)
    : reviews_(reviews),
      clocks_(std::move(clocks)),
      budget_(reviews_per_second, clocks_.steady()) {}

std::optional<http::Response> Viewers::RefuseUnseen(const std::string& authorization) const {
  const std::optional<ShownToken> token = ReadShownToken(authorization);
  if (!token) return Unknown("expected the bearer token of a Kubernetes user, found none");
  if (token->GoodAt(clocks_.wall())) return std::nullopt;
  return Unknown("expected a token whose time is now, found one that has ended or not begun");
}

void Viewers::Who(const std::string& authorization, For what, std::function<void(Answer)> done) {
  if (auto refusal = RefuseUnseen(authorization)) return done({.refusal = std::move(refusal)});
  auto visit = std::make_shared<Visit>();
  visit->token = ReadShownToken(authorization)->text;
  visit->what = what;
  visit->who_done = std::move(done);
  visit->member = std::make_shared<Member>(DigestOf(visit->token), clocks_.steady());
  GoOn(visit);
}

void Viewers::Which(std::shared_ptr<Member> who, std::vector<std::string> namespaces,
                    std::function<void(Seen)> done) {
  auto visit = std::make_shared<Visit>();
  visit->member = std::move(who);
  visit->which = true;
  visit->namespaces = std::move(namespaces);
  if (visit->namespaces.size() > kMostAtOnce) visit->namespaces.resize(kMostAtOnce);
  visit->which_done = std::move(done);
  GoOn(visit);
}

// One that is not kept yet is so from its first review on.
void Viewers::Find(Visit& visit) {
  const auto found = members_.find(visit.member->digest);
  if (found == members_.end()) return;
  std::list<TokenDigest>& list = found->second->somebody ? recent_ : strangers_;
  list.splice(list.begin(), list, found->second->place);
  found->second->seen = clocks_.steady();
  visit.member = found->second;
}

void Viewers::Forget(const TokenDigest& digest) {
  const auto found = members_.find(digest);
  if (found == members_.end()) return;
  weight_ -= std::exchange(found->second->weight, 0);
  (found->second->somebody ? recent_ : strangers_).erase(found->second->place);
  members_.erase(found);
}

void Viewers::Settle(const std::shared_ptr<Member>& member, bool somebody) {
  Forget(member->digest);
  member->somebody = somebody;
  std::list<TokenDigest>& list = somebody ? recent_ : strangers_;
  member->place = list.insert(list.begin(), member->digest);
  members_[member->digest] = member;
  while (list.size() > (somebody ? kMostMembers : kMostStrangers)) Forget(TokenDigest(list.back()));
  const TimePoint now = clocks_.steady();
  while (!recent_.empty() && now - members_.at(recent_.back())->seen > kMemberStays)
    Forget(TokenDigest(recent_.back()));
}

void Viewers::Weigh(Member& member) {
  const auto weight_of = [](const Fact& fact) {
    if (fact.said == Fact::Said::kNothing) return 0;
    return fact.said == Fact::Said::kYes ? kNoServesTimes : 1;
  };
  const auto found = members_.find(member.digest);
  if (!member.somebody || found == members_.end() || found->second.get() != &member) return;
  int64_t weight =
      weight_of(member.token) + weight_of(member.everything) + weight_of(member.metrics);
  for (const auto& [ns, fact] : member.namespaces) weight += weight_of(fact);
  weight_ += weight - std::exchange(member.weight, weight);
}

Viewers::Fact& Viewers::NamespaceOf(Member& member, const std::string& ns) {
  if (member.namespaces.size() >= kMostNamespaces && !member.namespaces.contains(ns)) {
    std::erase_if(member.namespaces, [](const auto& each) { return !each.second.under_way; });
  }
  return member.namespaces[ns];
}

std::optional<Viewers::Need> Viewers::Missing(const Member& member, Need need) const {
  need.standing = Judge(member, need, clocks_.steady());
  if (need.standing == Standing::kServes) return std::nullopt;
  return need;
}

std::optional<Viewers::Need> Viewers::Next(Visit& visit) {
  Member& member = *visit.member;
  if (visit.which) {
    for (const std::string& ns : visit.namespaces) {
      const kube::AccessQuestion question = {"get", kGroup, "gpuquotaviews", ns, ""};
      if (auto need = Missing(member, {&NamespaceOf(member, ns), question})) return need;
    }
    return std::nullopt;
  }
  if (auto need = Missing(member, {&member.token, std::nullopt})) return need;
  if (member.token.said == Fact::Said::kNo) {
    visit.refusal = Unknown("the API server does not know this token");
    return std::nullopt;
  }
  const kube::AccessQuestion all = {"list", kGroup, "gpuquotas", "", ""};
  if (auto need = Missing(member, {&member.everything, all})) return need;
  if (member.everything.said == Fact::Said::kYes || visit.what != For::kMetrics)
    return std::nullopt;
  return Missing(member, {&member.metrics, kube::AccessQuestion{"get", "", "", "", "/metrics"}});
}

Viewers::Times Viewers::ServesFor(const Need& need) const {
  const bool no = need.fact->said == Fact::Said::kNo;
  if (no && !need.question) return {kNobodyServes, kNobodyServes};
  if (away_) return {kServes, kServes};
  // A quarter of the budget is left for newcomers and for what comes together.
  const std::chrono::nanoseconds round = budget_.TimeOf(weight_) / kNoServesTimes * 5 / 4;
  const Times yes = {std::clamp<std::chrono::nanoseconds>(round, kServes, kStretch), kLongest};
  if (!no) return yes;
  const bool many = yes.fresh > kServes;
  return {many ? yes.fresh * kNoServesTimes : yes.fresh, yes.longest * kNoServesTimes};
}

Caller Viewers::CallerOf(const Member& member, const Need& need) const {
  const bool is_namespace = need.question && !need.question->ns.empty();
  const bool is_new = is_namespace && need.fact->said == Fact::Said::kNothing;
  return member.somebody && !is_new ? Caller::kKnown : Caller::kStranger;
}

Viewers::Standing Viewers::Judge(const Member& member, const Need& need, TimePoint now) const {
  const Fact& fact = *need.fact;
  const Times serves = ServesFor(need);
  const bool known = fact.said != Fact::Said::kNothing;
  if (known && now - fact.at < serves.fresh) return Standing::kServes;
  if (waiting_ >= kMostWaiting) return Standing::kTooMany;
  if (fact.under_way) return Standing::kWait;
  const Caller caller = CallerOf(member, need);
  const bool own = member.somebody && caller == Caller::kStranger;
  const bool all_used = budget_.Wait(now, caller).count() > 0 ||
                        (own && member.own_budget.Wait(now, Caller::kKnown).count() > 0);
  if (!all_used) return Standing::kAsk;
  return known && now - fact.at < serves.longest ? Standing::kServes : Standing::kTooOften;
}

bool Viewers::Begin(const std::shared_ptr<Visit>& visit, const Need& need) {
  Member& member = *visit->member;
  const TimePoint now = clocks_.steady();
  const Caller caller = CallerOf(member, need);
  if (need.standing == Standing::kTooMany) {
    visit->refusal = AskLater(503, "too many callers wait to be known, ask again later", 2);
    return false;
  }
  if (need.standing == Standing::kTooOften) {
    visit->refusal = AskOften(budget_.Wait(now, caller));
    return false;
  }
  const bool asks = need.standing == Standing::kAsk;
  if (asks) {
    budget_.Take(now, caller);
    if (member.somebody && caller == Caller::kStranger) member.own_budget.Take(now, Caller::kKnown);
    if (!members_.contains(member.digest)) Settle(visit->member, member.somebody);
    need.fact->under_way = true;
  }
  ++waiting_;
  need.fact->waiting.push_back([this, visit](const absl::Status& heard) {
    if (heard.ok()) return GoOn(visit);
    visit->refusal = AskLater(503, "the API server could not be asked who you are, ask again later",
                              kAwaySeconds);
    visit->End({}, {});
  });
  return asks;
}

void Viewers::GoOn(const std::shared_ptr<Visit>& visit) {
  Answer answer;
  Seen seen;
  std::optional<Need> need;
  bool asks = false, ends = true;
  {
    const absl::MutexLock lock(&mutex_);
    if (!visit->which) Find(*visit);
    need = Next(*visit);
    const Member& member = *visit->member;
    const auto yes = [](const Fact& fact) { return fact.said == Fact::Said::kYes; };
    if (need) {
      asks = Begin(visit, *need);
      ends = visit->refusal.has_value();
    } else if (visit->which) {
      for (const std::string& ns : visit->namespaces) {
        const auto fact = member.namespaces.find(ns);
        if (fact != member.namespaces.end() && yes(fact->second)) seen.namespaces.insert(ns);
      }
    } else {
      answer.known.who = visit->member;
      answer.known.everything = yes(member.everything);
      answer.known.metrics = answer.known.everything || yes(member.metrics);
      const std::string own = OwnNamespace(member.user.name);
      if (!own.empty()) answer.known.likely.insert(own);
      for (const auto& [ns, fact] : member.namespaces) {
        if (yes(fact)) answer.known.likely.insert(ns);
      }
    }
  }
  if (asks) Launch(visit, *need);
  // The visit goes on once the review is heard of.
  if (ends) visit->End(std::move(answer), std::move(seen));
}

void Viewers::Launch(const std::shared_ptr<Visit>& visit, const Need& need) {
  const std::shared_ptr<Member> member = visit->member;
  Fact* const fact = need.fact;
  if (!need.question) {
    return reviews_.WhoIs(
        visit->token, [this, member, fact](absl::StatusOr<std::optional<kube::ReviewedUser>> user) {
          if (!user.ok()) return Hear(member, fact, 0, user.status(), std::nullopt);
          const bool somebody = user->has_value();
          Hear(member, fact, 0, somebody, *std::move(user));
        });
  }
  kube::ReviewedUser user;
  uint64_t version = 0;
  {
    const absl::MutexLock lock(&mutex_);
    user = member->user;
    version = member->version;
  }
  reviews_.May(user, *need.question,
               [this, member, fact, version](const absl::StatusOr<bool>& allowed) {
                 Hear(member, fact, version, allowed, std::nullopt);
               });
}

void Viewers::Hear(const std::shared_ptr<Member>& member, Fact* fact, uint64_t version,
                   const absl::StatusOr<bool>& said, std::optional<kube::ReviewedUser> user) {
  std::vector<std::function<void(const absl::Status&)>> waiting;
  {
    const absl::MutexLock lock(&mutex_);
    fact->under_way = false;
    away_ = !said.ok();
    const bool of_token = fact == &member->token;
    if (!said.ok()) {
      Complain(said.status());
    } else if (of_token || version == member->version) {
      complaint_.clear();
      fact->said = *said ? Fact::Said::kYes : Fact::Said::kNo;
      fact->at = clocks_.steady();
    }
    if (said.ok() && of_token) {
      Settle(member, *said);
      if (user && *user != member->user) {
        member->user = *std::move(user);
        ++member->version;
        // What somebody else might do says nothing.
        member->everything.said = member->metrics.said = Fact::Said::kNothing;
        for (auto& [ns, each] : member->namespaces) each.said = Fact::Said::kNothing;
      }
    }
    Weigh(*member);
    waiting.swap(fact->waiting);
    waiting_ -= waiting.size();
  }
  for (const auto& go_on : waiting) go_on(said.status());
}

void Viewers::Complain(const absl::Status& status) {
  const std::string found(status.message());
  if (std::exchange(complaint_, found) == found) return;
  spdlog::warn("pages.auth: nobody new can be let in: {}", found);
}

}  // namespace tranche
