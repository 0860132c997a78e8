#include "scheduler/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/api/api_json.h"
#include "scheduler/api/conditional.h"
#include "scheduler/api/lists/changes_since.h"
#include "scheduler/api/lists/pod_list.h"
#include "scheduler/api/lists/query_words.h"
#include "scheduler/api/lists/rank_json.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr uint64_t kMostIds = std::numeric_limits<int64_t>::max();

// The two parts of NAMESPACE/NAME behind the prefix; nullopt where it is anything else.
std::optional<PodName> PodOf(std::string_view path, std::string_view prefix) {
  path.remove_prefix(prefix.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size() ||
      path.find('/', slash + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return PodName{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

http::Response NoSuchPath(std::string_view prefix, std::string_view rest, const std::string& path) {
  return ErrorResponse(404, fmt::format("expected {}{}, found {}", prefix, rest,
                                        wire::Quoted(path.substr(prefix.size()))));
}

http::Response Unknown(std::string_view kind, const std::string& name) {
  return ErrorResponse(404, fmt::format("no {} {} is known", kind, wire::Quoted(name)));
}

// Null: there are none.
std::shared_ptr<const Forecasts> LatestOf(const Forecaster* forecaster) {
  return forecaster == nullptr ? nullptr : forecaster->Latest();
}

http::Response Explain(EngineHost& host, const ApiSources& sources, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/explain/";
  const std::optional<PodName> pod = PodOf(request.path, kPrefix);
  if (!pod) return NoSuchPath(kPrefix, "NAMESPACE/POD", request.path);
  const std::optional<Explanation> explanation =
      host.With(EngineCaller::kPages,
                [&pod](Engine& engine, Instant now) { return engine.Explain(*pod, now); });
  if (!explanation) return Unknown("pod", pod->str());
  const std::shared_ptr<const Forecasts> forecasts = LatestOf(sources.forecaster);
  return Conditional(request,
                     JsonResponse(EncodeExplanation(
                         *explanation, NotesOf(sources, explanation->pod, forecasts.get()))));
}

http::Response Rank(EngineHost& host, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/rank/";
  const std::optional<PodName> pod = PodOf(request.path, kPrefix);
  if (!pod) return NoSuchPath(kPrefix, "NAMESPACE/POD", request.path);
  const std::optional<RankView> rank = host.With(
      EngineCaller::kPages, [&pod](Engine& engine, Instant now) { return engine.Rank(*pod, now); });
  if (!rank) return Unknown("pod", pod->str());
  const std::vector<QuotaView> quotas = host.Quotas(EngineCaller::kPages);
  const auto team = std::ranges::find(
      quotas, rank->own.leaf,
      [](const QuotaView& view) -> const std::string& { return view.report.name; });
  return Conditional(request,
                     JsonResponse(EncodeRank(*rank, team == quotas.end() ? nullptr : &*team)));
}

http::Response OnePod(EngineHost& host, const ApiSources& sources, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/pods/";
  const std::optional<PodName> name = PodOf(request.path, kPrefix);
  if (!name) return NoSuchPath(kPrefix, "NAMESPACE/NAME", request.path);
  // Every uid comes after none.
  const std::vector<PodView> found =
      host.With(EngineCaller::kPages,
                [&name](Engine& engine, Instant) { return engine.Pods(*name, PodUid(), 1); });
  if (found.empty() || found.front().name != *name) return Unknown("pod", name->str());
  const std::shared_ptr<const Forecasts> forecasts = LatestOf(sources.forecaster);
  return Conditional(
      request,
      JsonResponse(EncodePod(found.front(), NotesOf(sources, found.front(), forecasts.get()))));
}

// By the labels that clouds and the usual tools set. A GPUPolicy may name others for gangs.
NodePlace PlaceOf(const Engine& engine, const NodeView& node, Instant now) {
  static const DomainLabels labels;
  NodePlace place;
  const PriceAt price = PriceOf(engine.policy_set().prices, node.traits, node.model, now);
  if (price.price != nullptr && !node.gpus.empty()) {
    place.micros_per_hour = price.micros() * static_cast<int64_t>(node.gpus.size());
    place.currency = price.price->currency;
  }
  const NodeFacts* const facts = engine.FactsOf(node.name);
  if (facts == nullptr) return place;
  for (const auto& [level, text] :
       {std::pair(GangLevel::kClique, &place.nvlink_domain),
        std::pair(GangLevel::kRack, &place.rack), std::pair(GangLevel::kZone, &place.zone)}) {
    for (const std::string& label : labels.of_level[static_cast<std::size_t>(level)]) {
      if (text->empty()) *text = facts->labels.Find(label);
    }
  }
  return place;
}

struct PlacedNodes {
  std::vector<NodeView> nodes;
  std::vector<NodePlace> places;  // of each
  Instant now;
};

// At most `limit` nodes after `after`, in one piece.
PlacedNodes NodesAfter(EngineHost& host, const NodeName& after, std::size_t limit) {
  return host.With(EngineCaller::kPages, [&after, limit](Engine& engine, Instant now) {
    PlacedNodes page;
    page.now = now;
    page.nodes = engine.Nodes(after, limit, now);
    for (const NodeView& node : page.nodes) page.places.push_back(PlaceOf(engine, node, now));
    return page;
  });
}

PlacedNodes AllNodes(EngineHost& host) {
  PlacedNodes all;
  for (;;) {
    PlacedNodes page =
        NodesAfter(host, all.nodes.empty() ? NodeName() : all.nodes.back().name, EngineHost::kPage);
    const bool last = page.nodes.size() < EngineHost::kPage;
    std::ranges::move(page.nodes, std::back_inserter(all.nodes));
    std::ranges::move(page.places, std::back_inserter(all.places));
    if (last) return all;
  }
}

// What GET /api/v1/nodes keeps from one question to the next.
struct NodesMemory {
  ChangesSince<NodeName> changes{NameOfProcess()};
  SharedText whole;
};

http::Response Nodes(EngineHost& host, NodesMemory& memory, const http::Request& request) {
  std::vector<std::string> texts;
  const ChangesSince<NodeName>::Look look = memory.changes.See(
      [&host, &texts] {
        const PlacedNodes all = AllNodes(host);
        texts = EncodeEach(all.nodes, all.places);
        std::vector<ChangesSince<NodeName>::Entry> list;
        list.reserve(texts.size());
        for (std::size_t at = 0; at < texts.size(); ++at) {
          list.push_back({all.nodes[at].name, std::hash<std::string>()(texts[at])});
        }
        return list;
      },
      ParameterOf(request, "since"));
  std::vector<std::string_view> entries;
  for (std::size_t at = 0; at < texts.size(); ++at) {
    if (look.complete || look.changed[at] != 0) entries.push_back(texts[at]);
  }
  http::Response response =
      JsonResponse(EncodeNodes(entries, {look.version, look.complete, look.gone}));
  if (!look.complete) return Conditional(request, std::move(response));
  return memory.whole.Respond(request, std::move(response));
}

http::Response OneNode(EngineHost& host, const ApiSources& sources, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/nodes/";
  const std::string name = request.path.substr(kPrefix.size());
  if (name.empty() || name.find('/') != std::string::npos) {
    return NoSuchPath(kPrefix, "NAME", request.path);
  }
  // The last text before the name, of the characters that names have.
  std::string before = name;
  before.back() = static_cast<char>(before.back() - 1);
  before += '\x7f';
  const PlacedNodes found = NodesAfter(host, NodeName(before), 1);
  if (found.nodes.empty() || found.nodes.front().name.str() != name) return Unknown("node", name);
  const auto readings = sources.readings ? sources.readings() : nullptr;
  return Conditional(request, JsonResponse(EncodeNode(found.nodes.front(), found.places.front(),
                                                      readings.get(), found.now)));
}

bool Concerns(const Reclaim& reclaim, const std::string& team) {
  return reclaim.leaf == team ||
         std::ranges::count(reclaim.victims, team, &ReclaimVictim::leaf) > 0;
}

http::Response OneTeam(EngineHost& host, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/teams/";
  const std::string name = request.path.substr(kPrefix.size());
  if (name.empty() || name.find('/') != std::string::npos) {
    return NoSuchPath(kPrefix, "NAME", request.path);
  }
  const std::vector<QuotaView> quotas = host.Quotas(EngineCaller::kPages);
  const auto quota = std::ranges::find(
      quotas, name, [](const QuotaView& view) -> const std::string& { return view.report.name; });
  if (quota == quotas.end()) return Unknown("team", name);
  std::vector<BudgetReport> budgets;
  std::vector<Reclaim> reclaims;
  host.With(EngineCaller::kPages, [&budgets, &reclaims](Engine& engine, Instant now) {
    budgets = engine.Budgets(now);
    reclaims = engine.Reclaims();
  });
  std::erase_if(budgets, [&quota, &name](const BudgetReport& budget) {
    return budget.spec.quota_ref != name &&
           std::ranges::count(quota->report.namespaces, budget.spec.ns) == 0;
  });
  std::erase_if(reclaims, [&name](const Reclaim& reclaim) { return !Concerns(reclaim, name); });
  return Conditional(request, JsonResponse(EncodeTeam(*quota, budgets, reclaims)));
}

http::Response OneGang(EngineHost& host, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/gangs/";
  // Those that another controller makes have its word and a slash before their names.
  const std::string path = request.path.substr(kPrefix.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == path.size()) {
    return NoSuchPath(kPrefix, "NAMESPACE/NAME", request.path);
  }
  const PodName name{path.substr(0, slash), path.substr(slash + 1)};
  const std::vector<GangView> gangs = host.Gangs();
  const auto found = std::ranges::find(gangs, name, &GangView::name);
  if (found == gangs.end()) return Unknown("gang", name.str());
  return Conditional(request, JsonResponse(EncodeGang(*found)));
}

http::Response OneReclaim(EngineHost& host, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/reclaims/";
  const std::string name = request.path.substr(kPrefix.size());
  if (name.empty() || name.find('/') != std::string::npos) {
    return NoSuchPath(kPrefix, "NAME", request.path);
  }
  const std::vector<Reclaim> reclaims = host.With(
      EngineCaller::kPages, [](const Engine& engine, Instant) { return engine.Reclaims(); });
  const auto found = std::ranges::find(reclaims, name, &Reclaim::name);
  if (found == reclaims.end()) return Unknown("reclaim", name);
  return Conditional(request, JsonResponse(EncodeReclaim(*found)));
}

// What GET /api/v1/pods keeps from one question to the next.
struct PodsMemory {
  ChangesSince<PodKey> changes{NameOfProcess()};
  SharedText whole;
};

struct PodsLook {
  ChangesSince<PodKey>::Look look;
  std::vector<PodView> pods;       // all
  std::vector<std::string> texts;  // of each
};

PodsLook LookAtPods(EngineHost& host, const Forecasts* forecasts, PodsMemory& memory,
                    const std::optional<std::string>& since) {
  PodsLook all;
  all.look = memory.changes.See(
      [&host, &all, forecasts] {
        all.pods = host.Pods();
        std::vector<ChangesSince<PodKey>::Entry> list;
        list.reserve(all.pods.size());
        for (const PodView& pod : all.pods) {
          const std::string& text =
              all.texts.emplace_back(EncodePod(pod, {forecasts}, UseShown::kOfIdle));
          list.push_back({{pod.name, pod.uid}, DigestOf(pod, text)});
        }
        return list;
      },
      since);
  return all;
}

// Those of the look that match, or of these what changed; a pod that does not match, and may have
// done so before, is told as gone.
std::string PodsSince(const PodsLook& all, const PodListQuery& query) {
  const PodOrder order = OrderPods(all.pods, query);
  std::vector<std::string_view> entries;
  std::vector<PodKey> gone = all.look.gone;
  for (const std::size_t place : order.places) {
    if (all.look.complete || all.look.changed[place] != 0) entries.push_back(all.texts[place]);
  }
  for (std::size_t at = 0; at < all.look.changed.size(); ++at) {
    const PodView& pod = all.pods[at];
    if (all.look.changed[at] != 0 && !Matches(pod, query)) gone.push_back({pod.name, pod.uid});
  }
  std::ranges::sort(gone);
  return EncodePods(entries, {order.total, all.look.version, all.look.complete, gone});
}

http::Response Pods(EngineHost& host, const Forecaster* forecaster, PodsMemory& memory,
                    const http::Request& request) {
  const absl::StatusOr<PodListQuery> query = ReadPodListQuery(request);
  if (!query.ok()) return ErrorResponse(query.status());
  const std::optional<std::string> since = ParameterOf(request, "since");
  if (since && query->limit) {
    return ErrorResponse(
        BadParameter("limit", "none beside since", *ParameterOf(request, "limit")));
  }
  const std::shared_ptr<const Forecasts> forecasts = LatestOf(forecaster);
  const PodsLook all = LookAtPods(host, forecasts.get(), memory, since);
  constexpr std::string_view kOptions[] = {"namespace", "team", "node",          "gang",
                                           "state",     "sort", "labelSelector", "limit"};
  const bool narrowed = std::ranges::any_of(kOptions, [&request](std::string_view name) {
    return request.query.contains(std::string(name));
  });
  if (narrowed || !all.look.complete) {
    return Conditional(request, JsonResponse(PodsSince(all, *query)));
  }
  const std::vector<std::string_view> entries(all.texts.begin(), all.texts.end());
  return memory.whole.Respond(request,
                              JsonResponse(EncodePods(entries, {std::nullopt, all.look.version})));
}

}  // namespace

absl::StatusOr<RecentQuery> ReadEventQuery(const http::Request& request) {
  RecentQuery query;
  query.ns = ParameterOf(request, "namespace");
  query.pod = ParameterOf(request, "pod");
  query.node = ParameterOf(request, "node");
  query.leaf = ParameterOf(request, "team");
  if (const auto kind = ParameterOf(request, "kind")) {
    query.kind = FindRecentKind(*kind);
    if (!query.kind) return BadParameter("kind", "a kind of event, as Placed", *kind);
  }
  if (const auto since = ParameterOf(request, "since")) {
    TRANCHE_ASSIGN_OR_RETURN(query.since, ReadNumber("since", *since, 0, kMostIds));
  }
  if (const auto limit = ParameterOf(request, "limit")) {
    TRANCHE_ASSIGN_OR_RETURN(query.limit, ReadNumber("limit", *limit, 1, RecentEvents::kMost));
  }
  return query;
}

PodNotes NotesOf(const ApiSources& sources, const PodView& pod, const Forecasts* forecasts) {
  PodNotes notes;
  notes.forecasts = forecasts;
  notes.right_size = RightSizeOf(sources.advice, pod.uid);
  const bool waits = pod.state == PodState::kPending || pod.state == PodState::kClaimed;
  if (sources.provisioning && waits && !pod.gang.empty()) {
    notes.provisioning = sources.provisioning(pod.name.ns, pod.gang);
  }
  return notes;
}

void AddApi(EngineHost& host, Router& router, const ApiSources& sources) {
  // The two that reach megabytes.
  router.AddAnswer("GET", "/api/v1/nodes",
                   [&host, memory = std::make_shared<NodesMemory>()](const http::Request& request) {
                     return Nodes(host, *memory, request);
                   });
  router.AddAnswer(
      "GET", "/api/v1/pods",
      [&host, forecaster = sources.forecaster, memory = std::make_shared<PodsMemory>()](
          const http::Request& request) { return Pods(host, forecaster, *memory, request); });
  router.AddAnswer("GET", "/api/v1/gangs", [&host](const http::Request&) {
    return JsonResponse(EncodeGangs(host.Gangs()));
  });
  router.AddAnswer("GET", "/api/v1/gangs/",
                   [&host](const http::Request& request) { return OneGang(host, request); });
  router.AddAnswer("GET", "/api/v1/reclaims/",
                   [&host](const http::Request& request) { return OneReclaim(host, request); });
  router.AddAnswer("GET", "/api/v1/events", [&host](const http::Request& request) {
    const absl::StatusOr<RecentQuery> query = ReadEventQuery(request);
    if (!query.ok()) return ErrorResponse(query.status());
    return Conditional(request, JsonResponse(EncodeEvents(host.recent().Read(*query))));
  });
  router.AddAnswer("GET", "/api/v1/nodes/", [&host, sources](const http::Request& request) {
    return OneNode(host, sources, request);
  });
  router.AddAnswer("GET", "/api/v1/pods/", [&host, sources](const http::Request& request) {
    return OnePod(host, sources, request);
  });
  router.AddAnswer("GET", "/api/v1/teams/",
                   [&host](const http::Request& request) { return OneTeam(host, request); });
  router.AddAnswer("GET", "/api/v1/explain/", [&host, sources](const http::Request& request) {
    return Explain(host, sources, request);
  });
  router.AddAnswer("GET", "/api/v1/rank/",
                   [&host](const http::Request& request) { return Rank(host, request); });
  router.AddAnswer("GET", "/api/v1/quotas",
                   [&host, text = std::make_shared<SharedText>()](const http::Request& request) {
                     return text->Respond(
                         request, JsonResponse(EncodeQuotas(host.Quotas(EngineCaller::kPages))));
                   });
  router.AddAnswer("GET", "/api/v1/budgets", [&host](const http::Request& request) {
    return Conditional(
        request,
        JsonResponse(EncodeBudgets(host.With(EngineCaller::kPages, [](Engine& engine, Instant now) {
          return engine.Budgets(now);
        }))));
  });
  router.AddAnswer("GET", "/api/v1/reclaims", [&host](const http::Request& request) {
    Instant asked;
    const std::vector<Reclaim> reclaims =
        host.With(EngineCaller::kPages, [&asked](Engine& engine, Instant now) {
          asked = now;
          return engine.Reclaims();
        });
    return Conditional(request, JsonResponse(EncodeReclaims(reclaims, asked)));
  });
}

}  // namespace tranche
