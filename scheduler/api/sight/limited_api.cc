#include "scheduler/api/sight/limited_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "scheduler/api/api.h"
#include "scheduler/api/api_json.h"
#include "scheduler/api/conditional.h"
#include "scheduler/api/lists/pod_list.h"
#include "scheduler/api/lists/rank_json.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

using wire::Json;

enum class Names : uint8_t {
  kNothing,    // says nothing of anybody
  kNamespace,  // the first part behind the path
  kMaybe,      // one in the query, or none
  kNever,      // whatever is seen
};

enum class Filter : uint8_t {
  kAsItIs,
  kPods,
  kPod,
  kExplain,
  kRank,
  kGangs,
  kEvents,
  kReclaims,
  kNodes,
  kQuotas,
  kBudgets,
  kForecast,
  kLedger,
  kHeld,
  kBurnDown
};

struct Path {
  std::string_view path;  // with '/' at its end: all below it
  Names names;
  Filter filter;
};

// All that is answered. A path that is not here is refused.
constexpr Path kPaths[] = {
    {"/version", Names::kNothing, Filter::kAsItIs},           // of the program
    {"/api/openapi.json", Names::kNothing, Filter::kAsItIs},  // likewise
    {"/api/v1/pods", Names::kMaybe, Filter::kPods},
    {"/api/v1/pods/", Names::kNamespace, Filter::kPod},
    {"/api/v1/explain/", Names::kNamespace, Filter::kExplain},
    {"/api/v1/rank/", Names::kNamespace, Filter::kRank},
    {"/api/v1/gangs", Names::kMaybe, Filter::kGangs},
    {"/api/v1/gangs/", Names::kNamespace, Filter::kGangs},
    {"/api/v1/events", Names::kMaybe, Filter::kEvents},
    {"/api/v1/reclaims", Names::kMaybe, Filter::kReclaims},
    {"/api/v1/reclaims/", Names::kNever, Filter::kReclaims},
    {"/api/v1/nodes", Names::kMaybe, Filter::kNodes},
    {"/api/v1/nodes/", Names::kNever, Filter::kNodes},
    {"/api/v1/quotas", Names::kMaybe, Filter::kQuotas},
    {"/api/v1/teams/", Names::kNever, Filter::kQuotas},
    {"/api/v1/budgets", Names::kMaybe, Filter::kBudgets},
    {"/api/v1/burndown/", Names::kNever, Filter::kBurnDown},
    {"/api/v1/forecast", Names::kMaybe, Filter::kForecast},
    {"/api/v1/forecast/", Names::kNamespace, Filter::kForecast},
    {"/api/v1/ledger", Names::kMaybe, Filter::kLedger},
    {"/api/v1/ledger/series", Names::kMaybe, Filter::kLedger},
    {"/api/v1/ledger/held", Names::kMaybe, Filter::kHeld},
};

const Path* PathOf(const http::Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return nullptr;
  for (const Path& each : kPaths) {
    const bool below = each.path.ends_with('/');
    const bool longer =
        request.path.size() > each.path.size() && request.path.starts_with(each.path);
    if (below ? longer : request.path == each.path) return &each;
  }
  return nullptr;
}

// A DNS label, as namespaces are: "" would ask about all of them.
bool IsNamespace(std::string_view text) {
  constexpr std::size_t kLongest = 63;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

std::string Rest(const http::Request& request, const Path& path) {
  return request.path.substr(std::min(path.path.size(), request.path.size()));
}

// As of what is not there: nobody learns what there is.
http::Response NotSeen(std::string_view kind, const std::string& name) {
  return ErrorResponse(
      404, fmt::format("no {} {} is known, or it is not yours to see", kind, wire::Quoted(name)));
}

http::Response List(const http::Request& request, std::string body) {
  return Conditional(request, JsonResponse(std::move(body)));
}

// The last text before the name, of the characters that names have.
NodeName Before(std::string name) {
  if (name.empty()) return {};
  name.back() = static_cast<char>(name.back() - 1);
  return NodeName(name + '\x7f');
}

// The sentence of a forecast.
void DrawForecast(Json& forecast, const Veil& veil) {
  const auto because = forecast.find("because");
  const bool there = because != forecast.end() && because->is_string();
  forecast["because"] = there ? veil.Text(because->get<std::string>()) : "";
}

}  // namespace

bool LimitedApi::Answers(const http::Request& request) { return PathOf(request) != nullptr; }

http::Response LimitedApi::Refused() {
  return ErrorResponse(403,
                       "expected a caller who may list gpuquotas in the cluster, or asks for "
                       "what is filtered by namespace");
}

std::vector<PodView> LimitedApi::PodsOf(const Sight& sight) const {
  std::vector<PodView> found;
  for (const std::string& ns : sight.namespaces) {
    PodName after = {ns, ""};
    PodUid uid;
    for (bool more = true; more;) {
      std::vector<PodView> page = host_.With(EngineCaller::kPages, [&](Engine& engine, Instant) {
        return engine.Pods(after, uid, EngineHost::kPage);
      });
      more = page.size() == EngineHost::kPage && page.back().name.ns == ns;
      if (!page.empty()) {
        after = page.back().name;
        uid = page.back().uid;
      }
      for (PodView& pod : page) {
        if (pod.name.ns == ns) found.push_back(std::move(pod));
      }
    }
  }
  return found;
}

std::set<std::string> LimitedApi::Candidates() {
  const auto now = std::chrono::steady_clock::now();
  {
    const absl::MutexLock lock(&mutex_);
    if (looked_at_ && now - *looked_at_ < kCandidatesServe) return candidates_;
  }
  std::set<std::string> found;
  for (const PodView& pod : host_.Pods()) found.insert(pod.name.ns);
  for (const QuotaView& quota : host_.Quotas(EngineCaller::kPages)) {
    found.insert(quota.report.namespaces.begin(), quota.report.namespaces.end());
  }
  if (found.size() > kMostCandidates) found.clear();
  const absl::MutexLock lock(&mutex_);
  candidates_ = found;
  looked_at_ = now;
  return found;
}

LimitedApi::Scope LimitedApi::ScopeOf(const http::Request& request,
                                      const std::set<std::string>& likely) {
  Scope scope;
  const Path* const path = PathOf(request);
  if (path == nullptr || path->names == Names::kNothing) return scope;
  std::string named;
  if (path->names == Names::kNamespace) {
    const std::string rest = Rest(request, *path);
    named = rest.substr(0, rest.find('/'));
    scope.named = true;
  } else if (path->names == Names::kMaybe && request.query.contains("namespace")) {
    named = request.query.at("namespace");
    scope.named = true;
  }
  if (scope.named) {
    if (IsNamespace(named)) scope.namespaces = {named};
    return scope;
  }
  std::set<std::string> all = Candidates();
  all.insert(likely.begin(), likely.end());
  scope.namespaces.assign(all.begin(), all.end());
  std::erase_if(scope.namespaces, [](const std::string& ns) { return !IsNamespace(ns); });
  return scope;
}

void LimitedApi::Answer(http::Request request, Sight sight, http::Responder respond) const {
  const Path* const path = PathOf(request);
  if (path == nullptr) return respond(Refused());
  if (path->filter == Filter::kAsItIs) return all_.Route(std::move(request), std::move(respond));
  if (sight.namespaces.empty()) {
    if (path->names == Names::kNamespace) return respond(NotSeen("object", Rest(request, *path)));
    return respond(ErrorResponse(
        403,
        "expected a caller who may get gpuquotaviews in a namespace, found none that is known; "
        "?namespace=NAME names one"));
  }
  std::vector<QuotaView> quotas = host_.Quotas(EngineCaller::kPages);
  const Veil veil(sight, quotas);
  switch (path->filter) {
    case Filter::kAsItIs:
      break;
    case Filter::kPods:
      return respond(Pods(request, veil, sight));
    case Filter::kPod:
      return respond(OnePod(request, veil));
    case Filter::kExplain:
      return respond(Explain(request, veil));
    case Filter::kRank:
      return respond(Rank(request, veil, quotas));
    case Filter::kGangs:
      return respond(Gangs(request, veil));
    case Filter::kEvents:
      return respond(Events(request, veil, sight));
    case Filter::kReclaims:
      return respond(Reclaims(request, veil));
    case Filter::kNodes:
      return respond(Nodes(request, veil));
    case Filter::kQuotas:
      return respond(Quotas(request, veil, std::move(quotas)));
    case Filter::kBudgets:
      return respond(Budgets(request, veil));
    case Filter::kForecast:
      return Forecast(std::move(request), veil, std::move(respond));
    case Filter::kLedger:
      return OfOneTeam(std::move(request), veil, std::move(respond));
    case Filter::kHeld:
      return Held(std::move(request), veil, std::move(respond));
    case Filter::kBurnDown:
      return BurnDown(std::move(request), veil, std::move(respond));
  }
}

Forecasts LimitedApi::ForetoldOf(std::span<const PodView> pods, const Veil& veil) const {
  Forecasts shown;
  const std::shared_ptr<const Forecasts> all =
      sources_.forecaster == nullptr ? nullptr : sources_.forecaster->Latest();
  if (all == nullptr) return shown;
  for (const PodView& pod : pods) {
    const auto found = all->pods.find(pod.name);
    if (found == all->pods.end()) continue;
    tranche::Forecast forecast = found->second;
    forecast.because = veil.Text(forecast.because);
    shown.pods.emplace(pod.name, std::move(forecast));
  }
  return shown;
}

PodNotes LimitedApi::NotesOf(const PodView& pod, const Forecasts& foretold,
                             const Veil& veil) const {
  PodNotes notes = tranche::NotesOf(sources_, pod, &foretold);
  if (notes.provisioning) notes.provisioning->message = veil.Text(notes.provisioning->message);
  return notes;
}

http::Response LimitedApi::Pods(const http::Request& request, const Veil& veil,
                                const Sight& sight) const {
  const absl::StatusOr<PodListQuery> query = ReadPodListQuery(request);
  if (!query.ok()) return ErrorResponse(query.status());
  ListedPods list = SelectPods(PodsOf(sight), *query);
  for (PodView& pod : list.pods) veil.Draw(pod);
  const Forecasts foretold = ForetoldOf(list.pods, veil);
  return List(request, EncodePods(list.pods, list.total, &foretold));
}

http::Response LimitedApi::OnePod(const http::Request& request, const Veil& veil) const {
  const std::string name = Rest(request, *PathOf(request));
  const std::size_t slash = std::min(name.find('/'), name.size() - 1);
  const PodName pod = {name.substr(0, slash), name.substr(slash + 1)};
  std::vector<PodView> found = host_.With(EngineCaller::kPages, [&pod](Engine& engine, Instant) {
    return engine.Pods(pod, PodUid(), 1);
  });
  if (found.empty() || found.front().name != pod || !veil.Sees(pod.ns)) return NotSeen("pod", name);
  veil.Draw(found.front());
  const Forecasts foretold = ForetoldOf(found, veil);
  return List(request, EncodePod(found.front(), NotesOf(found.front(), foretold, veil)));
}

http::Response LimitedApi::Explain(const http::Request& request, const Veil& veil) const {
  const std::string name = Rest(request, *PathOf(request));
  const std::size_t slash = std::min(name.find('/'), name.size() - 1);
  const PodName pod = {name.substr(0, slash), name.substr(slash + 1)};
  std::optional<Explanation> explanation =
      host_.With(EngineCaller::kPages,
                 [&pod](Engine& engine, Instant now) { return engine.Explain(pod, now); });
  if (!explanation || !veil.Sees(pod.ns)) return NotSeen("pod", name);
  veil.Draw(*explanation);
  const Forecasts foretold = ForetoldOf({&explanation->pod, 1}, veil);
  return List(request, EncodeExplanation(*explanation, NotesOf(explanation->pod, foretold, veil)));
}

http::Response LimitedApi::Rank(const http::Request& request, const Veil& veil,
                                const std::vector<QuotaView>& quotas) const {
  const std::string name = Rest(request, *PathOf(request));
  const std::size_t slash = std::min(name.find('/'), name.size() - 1);
  const PodName pod = {name.substr(0, slash), name.substr(slash + 1)};
  std::optional<RankView> rank = host_.With(
      EngineCaller::kPages, [&pod](Engine& engine, Instant now) { return engine.Rank(pod, now); });
  if (!rank || !veil.Sees(pod.ns)) return NotSeen("pod", name);
  const auto team = std::ranges::find(
      quotas, rank->own.leaf,
      [](const QuotaView& view) -> const std::string& { return view.report.name; });
  const bool seen = team != quotas.end() && veil.SeesTeam(rank->own.leaf);
  veil.Draw(*rank);
  return List(request, EncodeRank(*rank, seen ? &*team : nullptr));
}

http::Response LimitedApi::Gangs(const http::Request& request, const Veil& veil) const {
  std::vector<GangView> gangs = host_.Gangs();
  std::erase_if(gangs, [&veil](const GangView& gang) { return !veil.Sees(gang.name.ns); });
  for (GangView& gang : gangs) veil.Draw(gang);
  const std::string name = Rest(request, *PathOf(request));
  if (name.empty()) return List(request, EncodeGangs(gangs));
  const auto found = std::ranges::find_if(
      gangs, [&name](const GangView& gang) { return gang.name.str() == name; });
  if (found == gangs.end()) return NotSeen("gang", name);
  return List(request, EncodeGang(*found));
}

http::Response LimitedApi::Events(const http::Request& request, const Veil& veil,
                                  const Sight& sight) const {
  absl::StatusOr<RecentQuery> query = ReadEventQuery(request);
  if (!query.ok()) return ErrorResponse(query.status());
  RecentEvents::Answer all;
  for (const std::string& ns : sight.namespaces) {
    query->ns = ns;
    RecentEvents::Answer part = host_.recent().Read(*query);
    all.newest = part.newest;
    all.forgotten = part.forgotten;
    std::ranges::move(part.events, std::back_inserter(all.events));
  }
  std::ranges::sort(all.events, {}, &RecentEvent::id);
  if (all.events.size() > query->limit) {
    all.events.erase(all.events.begin(),
                     all.events.end() - static_cast<std::ptrdiff_t>(query->limit));
  }
  for (RecentEvent& event : all.events) veil.Draw(event);
  return List(request, EncodeEvents(all));
}

http::Response LimitedApi::Reclaims(const http::Request& request, const Veil& veil) const {
  Instant asked;
  std::vector<Reclaim> reclaims =
      host_.With(EngineCaller::kPages, [&asked](Engine& engine, Instant now) {
        asked = now;
        return engine.Reclaims();
      });
  std::erase_if(reclaims, [&veil](const Reclaim& reclaim) { return !veil.Concerns(reclaim); });
  for (Reclaim& reclaim : reclaims) veil.Draw(reclaim);
  const std::string name = Rest(request, *PathOf(request));
  if (name.empty()) return List(request, EncodeReclaims(reclaims, asked));
  // By the name that is shown: one that is not shown finds nothing.
  const auto found = std::ranges::find_if(reclaims, [&](const Reclaim& reclaim) {
    return reclaim.name == name && !reclaim.members.empty() &&
           veil.Sees(reclaim.members.front().pod.ns);
  });
  if (found == reclaims.end()) return NotSeen("reclaim", name);
  return List(request, EncodeReclaim(*found));
}

http::Response LimitedApi::Nodes(const http::Request& request, const Veil& veil) const {
  const std::string name = Rest(request, *PathOf(request));
  if (!name.empty()) {
    std::vector<NodeView> one = host_.With(
        EngineCaller::kPages,
        [&name](Engine& engine, Instant now) { return engine.Nodes(Before(name), 1, now); });
    if (one.empty() || one.front().name.str() != name) return NotSeen("node", name);
    veil.Draw(one.front());
    return List(request, EncodeNode(one.front(), {}));
  }
  std::vector<NodeView> nodes = host_.Nodes();
  for (NodeView& node : nodes) veil.Draw(node);
  return List(request, EncodeNodes(nodes));
}

http::Response LimitedApi::Quotas(const http::Request& request, const Veil& veil,
                                  std::vector<QuotaView> quotas) const {
  std::erase_if(quotas,
                [&veil](const QuotaView& quota) { return !veil.SeesTeam(quota.report.name); });
  for (QuotaView& quota : quotas) veil.Draw(quota);
  const std::string name = Rest(request, *PathOf(request));
  if (name.empty()) return List(request, EncodeQuotas(quotas));
  const auto found = std::ranges::find_if(
      quotas, [&name](const QuotaView& quota) { return quota.report.name == name; });
  if (found == quotas.end()) return NotSeen("team", name);
  std::vector<BudgetReport> budgets;
  std::vector<Reclaim> reclaims;
  host_.With(EngineCaller::kPages, [&](Engine& engine, Instant now) {
    budgets = engine.Budgets(now);
    reclaims = engine.Reclaims();
  });
  std::erase_if(budgets, [&](const BudgetReport& budget) {
    return budget.spec.quota_ref != name && !veil.Sees(budget.spec.ns);
  });
  std::erase_if(reclaims, [&veil](const Reclaim& reclaim) { return !veil.Concerns(reclaim); });
  for (Reclaim& reclaim : reclaims) veil.Draw(reclaim);
  return List(request, EncodeTeam(*found, budgets, reclaims));
}

http::Response LimitedApi::Budgets(const http::Request& request, const Veil& veil) const {
  std::vector<BudgetReport> budgets = host_.With(
      EngineCaller::kPages, [](Engine& engine, Instant now) { return engine.Budgets(now); });
  std::erase_if(budgets, [&veil](const BudgetReport& each) { return !veil.SeesBudget(each); });
  return List(request, EncodeBudgets(budgets));
}

// The unfiltered answer taken apart: of each pod that is seen its times, and a sentence that names
// nobody else.
void LimitedApi::Forecast(http::Request request, Veil veil, http::Responder respond) const {
  const bool one = !Rest(request, *PathOf(request)).empty();
  http::Request plain = request;
  plain.if_none_match.clear();
  plain.accept_encoding.clear();
  plain.query.clear();
  all_.Route(std::move(plain), [request = std::move(request), veil = std::move(veil), one,
                                respond = std::move(respond)](const http::Response& response) {
    Json body = Json::parse(response.text(), nullptr, /*allow_exceptions=*/false);
    if (response.status != 200 || !body.is_object()) {
      if (response.status != 404) return respond(AskLater(503, "nothing is foretold now", 2));
      return respond(NotSeen("pod or waiting gang", request.path));
    }
    if (one) {
      DrawForecast(body, veil);
      return respond(List(request, wire::Dump(body)));
    }
    Json shown = Json::array();
    for (Json& each : body["forecasts"]) {
      if (!veil.Sees(each.value("namespace", ""))) continue;
      DrawForecast(each, veil);
      shown.push_back(std::move(each));
    }
    body["forecasts"] = std::move(shown);
    respond(List(request, wire::Dump(body)));
  });
}

// Rows of the caller's namespaces.
void LimitedApi::Held(http::Request request, Veil veil, http::Responder respond) const {
  request.if_none_match.clear();
  request.accept_encoding.clear();
  all_.Route(std::move(request), [veil = std::move(veil),
                                  respond = std::move(respond)](const http::Response& response) {
    if (response.status != 200) return respond(response);
    Json body = Json::parse(response.text(), nullptr, /*allow_exceptions=*/false);
    if (!body.is_object()) return respond(AskLater(503, "the ledger cannot be read now", 2));
    Json shown = Json::array();
    for (Json& row : body["rows"]) {
      if (veil.Sees(row.value("namespace", ""))) shown.push_back(std::move(row));
    }
    body["rows"] = std::move(shown);
    respond(JsonResponse(wire::Dump(body)));
  });
}

// The ledger keeps to one team by itself.
void LimitedApi::OfOneTeam(http::Request request, const Veil& veil, http::Responder respond) const {
  const auto leaf = request.query.find("leaf");
  if (leaf == request.query.end() && veil.teams().size() == 1) {
    request.query["leaf"] = *veil.teams().begin();
  } else if (leaf == request.query.end() || !veil.SeesTeam(leaf->second)) {
    return respond(ErrorResponse(
        403, fmt::format(
                 "leaf: expected a team of yours ({})",
                 veil.teams().empty() ? "none" : fmt::to_string(fmt::join(veil.teams(), ", ")))));
  }
  all_.Route(std::move(request), std::move(respond));
}

void LimitedApi::BurnDown(http::Request request, const Veil& veil, http::Responder respond) const {
  const std::string name = Rest(request, *PathOf(request));
  const std::vector<BudgetReport> budgets = host_.With(
      EngineCaller::kPages, [](Engine& engine, Instant now) { return engine.Budgets(now); });
  const bool seen = std::ranges::any_of(budgets, [&](const BudgetReport& each) {
    return each.spec.name == name && veil.SeesBudget(each);
  });
  if (!seen) return respond(NotSeen("budget", name));
  all_.Route(std::move(request), std::move(respond));
}

}  // namespace tranche
