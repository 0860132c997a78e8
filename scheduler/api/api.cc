#include "scheduler/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/api/api_json.h"
#include "scheduler/api/conditional.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr std::size_t kMostPods = 1'000'000;
constexpr uint64_t kMostIds = std::numeric_limits<int64_t>::max();

struct StateWord {
  std::string_view word;
  std::vector<PodState> states;
};
const std::vector<StateWord>& StateWords() {
  static const std::vector<StateWord> words = {
      {"pending", {PodState::kPending}},
      {"claimed", {PodState::kClaimed}},
      {"reserved", {PodState::kReserved}},
      {"bound", {PodState::kBound}},
      {"waiting", {PodState::kPending, PodState::kClaimed}},
      {"placed", {PodState::kReserved, PodState::kBound}},
  };
  return words;
}

constexpr std::pair<std::string_view, PodListQuery::Key> kSortWords[] = {
    {"name", PodListQuery::Key::kName}, {"node", PodListQuery::Key::kNode},
    {"team", PodListQuery::Key::kTeam}, {"state", PodListQuery::Key::kState},
    {"gpus", PodListQuery::Key::kGpus}, {"waitsSince", PodListQuery::Key::kWaitsSince},
};

absl::Status Wrong(std::string_view name, std::string_view expected, const std::string& found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", name, expected, wire::Quoted(found)));
}

std::optional<std::string> Given(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<uint64_t> ReadNumber(std::string_view name, const std::string& text, uint64_t least,
                                    uint64_t most) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    return Wrong(name, fmt::format("a number from {} to {}", least, most), text);
  }
  return number;
}

absl::Status ReadSort(std::string text, PodListQuery& query) {
  const std::string given = text;
  query.descending = text.starts_with('-');
  if (query.descending) text.erase(0, 1);
  const auto* const found =
      std::ranges::find(kSortWords, text, &std::pair<std::string_view, PodListQuery::Key>::first);
  if (found == std::end(kSortWords)) {
    return Wrong("sort", "name, node, team, state, gpus or waitsSince, with - before it to turn it",
                 given);
  }
  query.key = found->second;
  return absl::OkStatus();
}

// Thousandths of GPUs that a pod holds.
int64_t HeldMilli(const PodView& pod) {
  int64_t milli = 0;
  if (!pod.allocation) return milli;
  for (const ContainerDevices& container : pod.allocation->containers) {
    for (const Device& device : container.devices) milli += device.milli.count();
  }
  return milli;
}

// A pod with what it is sorted by: one of the two, `present` where it has it.
struct Ranked {
  PodView pod;
  std::string text;
  int64_t number = 0;
  bool present = true;
};

Ranked RankOf(PodView pod, PodListQuery::Key key) {
  Ranked ranked;
  switch (key) {
    case PodListQuery::Key::kName:
      break;
    case PodListQuery::Key::kNode:
      ranked.text = pod.node.str();
      ranked.present = !ranked.text.empty();
      break;
    case PodListQuery::Key::kTeam:
      ranked.text = pod.leaf;
      ranked.present = !ranked.text.empty();
      break;
    case PodListQuery::Key::kState:
      ranked.number = static_cast<int64_t>(pod.state);
      break;
    case PodListQuery::Key::kGpus:
      ranked.number = HeldMilli(pod);
      break;
    case PodListQuery::Key::kWaitsSince:
      ranked.present = pod.waits_since.has_value();
      if (pod.waits_since) ranked.number = pod.waits_since->time_since_epoch().count();
      break;
  }
  ranked.pod = std::move(pod);
  return ranked;
}

bool Matches(const PodView& pod, const PodListQuery& query) {
  return (!query.ns || pod.name.ns == *query.ns) && (!query.team || pod.leaf == *query.team) &&
         (!query.node || pod.node.str() == *query.node) &&
         (!query.gang || pod.gang == *query.gang) &&
         (query.states.empty() || std::ranges::count(query.states, pod.state) > 0);
}

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

http::Response Explain(EngineHost& host, const Forecaster* forecaster,
                       const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/explain/";
  const std::optional<PodName> pod = PodOf(request.path, kPrefix);
  if (!pod) return NoSuchPath(kPrefix, "NAMESPACE/POD", request.path);
  const std::optional<Explanation> explanation =
      host.With(EngineCaller::kPages,
                [&pod](Engine& engine, Instant now) { return engine.Explain(*pod, now); });
  if (!explanation) return Unknown("pod", pod->str());
  return Conditional(request,
                     JsonResponse(EncodeExplanation(*explanation, LatestOf(forecaster).get())));
}

http::Response OnePod(EngineHost& host, const Forecaster* forecaster,
                      const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/pods/";
  const std::optional<PodName> name = PodOf(request.path, kPrefix);
  if (!name) return NoSuchPath(kPrefix, "NAMESPACE/NAME", request.path);
  // Every uid comes after none.
  const std::vector<PodView> found =
      host.With(EngineCaller::kPages,
                [&name](Engine& engine, Instant) { return engine.Pods(*name, PodUid(), 1); });
  if (found.empty() || found.front().name != *name) return Unknown("pod", name->str());
  return Conditional(request, JsonResponse(EncodePod(found.front(), LatestOf(forecaster).get())));
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
       {std::pair(GangLevel::kRack, &place.rack), std::pair(GangLevel::kZone, &place.zone)}) {
    for (const std::string& label : labels.of_level[static_cast<std::size_t>(level)]) {
      if (text->empty()) *text = facts->labels.Find(label);
    }
  }
  return place;
}

struct PlacedNodes {
  std::vector<NodeView> nodes;
  std::vector<NodePlace> places;  // of each
};

// At most `limit` nodes after `after`, in one piece.
PlacedNodes NodesAfter(EngineHost& host, const NodeName& after, std::size_t limit) {
  return host.With(EngineCaller::kPages, [&after, limit](Engine& engine, Instant now) {
    PlacedNodes page;
    page.nodes = engine.Nodes(after, limit, now);
    for (const NodeView& node : page.nodes) page.places.push_back(PlaceOf(engine, node, now));
    return page;
  });
}

std::string AllNodes(EngineHost& host) {
  PlacedNodes all;
  for (;;) {
    PlacedNodes page =
        NodesAfter(host, all.nodes.empty() ? NodeName() : all.nodes.back().name, EngineHost::kPage);
    const bool last = page.nodes.size() < EngineHost::kPage;
    std::ranges::move(page.nodes, std::back_inserter(all.nodes));
    std::ranges::move(page.places, std::back_inserter(all.places));
    if (last) return EncodeNodes(all.nodes, all.places);
  }
}

http::Response OneNode(EngineHost& host, const http::Request& request) {
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
  return Conditional(request, JsonResponse(EncodeNode(found.nodes.front(), found.places.front())));
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

http::Response Pods(EngineHost& host, const Forecaster* forecaster, SharedText& whole,
                    const http::Request& request) {
  constexpr std::string_view kOptions[] = {"namespace", "team", "node", "gang",
                                           "state",     "sort", "limit"};
  const bool narrowed = std::ranges::any_of(kOptions, [&request](std::string_view name) {
    return request.query.contains(std::string(name));
  });
  const std::shared_ptr<const Forecasts> forecasts = LatestOf(forecaster);
  if (!narrowed) {
    return whole.Respond(request,
                         JsonResponse(EncodePods(host.Pods(), std::nullopt, forecasts.get())));
  }
  const absl::StatusOr<PodListQuery> query = ReadPodListQuery(request);
  if (!query.ok()) return ErrorResponse(query.status());
  const ListedPods list = SelectPods(host.Pods(), *query);
  return Conditional(request, JsonResponse(EncodePods(list.pods, list.total, forecasts.get())));
}

}  // namespace

absl::StatusOr<PodListQuery> ReadPodListQuery(const http::Request& request) {
  PodListQuery query;
  query.ns = Given(request, "namespace");
  query.team = Given(request, "team");
  query.node = Given(request, "node");
  query.gang = Given(request, "gang");
  if (const auto state = Given(request, "state")) {
    const auto found = std::ranges::find(StateWords(), *state, &StateWord::word);
    if (found == StateWords().end()) {
      return Wrong("state", "pending, claimed, reserved, bound, waiting or placed", *state);
    }
    query.states = found->states;
  }
  if (const auto sort = Given(request, "sort")) {
    if (absl::Status status = ReadSort(*sort, query); !status.ok()) return status;
  }
  if (const auto limit = Given(request, "limit")) {
    TRANCHE_ASSIGN_OR_RETURN(query.limit, ReadNumber("limit", *limit, 1, kMostPods));
  }
  return query;
}

absl::StatusOr<RecentQuery> ReadEventQuery(const http::Request& request) {
  RecentQuery query;
  query.ns = Given(request, "namespace");
  query.pod = Given(request, "pod");
  query.node = Given(request, "node");
  query.leaf = Given(request, "team");
  if (const auto kind = Given(request, "kind")) {
    query.kind = FindRecentKind(*kind);
    if (!query.kind) return Wrong("kind", "a kind of event, as Placed", *kind);
  }
  if (const auto since = Given(request, "since")) {
    TRANCHE_ASSIGN_OR_RETURN(query.since, ReadNumber("since", *since, 0, kMostIds));
  }
  if (const auto limit = Given(request, "limit")) {
    TRANCHE_ASSIGN_OR_RETURN(query.limit, ReadNumber("limit", *limit, 1, RecentEvents::kMost));
  }
  return query;
}

ListedPods SelectPods(std::vector<PodView> all, const PodListQuery& query) {
  std::vector<Ranked> matching;
  for (PodView& pod : all) {
    if (Matches(pod, query)) matching.push_back(RankOf(std::move(pod), query.key));
  }
  const bool reversed_names = query.key == PodListQuery::Key::kName && query.descending;
  if (reversed_names) std::ranges::reverse(matching);
  // Stable: equal keys keep the order of names.
  std::ranges::stable_sort(matching, [&query](const Ranked& left, const Ranked& right) {
    if (left.present != right.present) return left.present;
    const auto order = std::pair(left.number, std::string_view(left.text)) <=>
                       std::pair(right.number, std::string_view(right.text));
    return query.descending ? order > 0 : order < 0;
  });
  ListedPods list;
  list.total = matching.size();
  if (query.limit && *query.limit < matching.size()) matching.resize(*query.limit);
  list.pods.reserve(matching.size());
  for (Ranked& ranked : matching) list.pods.push_back(std::move(ranked.pod));
  return list;
}

void AddApi(EngineHost& host, Router& router, const Forecaster* forecaster) {
  // The two that reach megabytes.
  router.AddAnswer("GET", "/api/v1/nodes",
                   [&host, text = std::make_shared<SharedText>()](const http::Request& request) {
                     return text->Respond(request, JsonResponse(AllNodes(host)));
                   });
  router.AddAnswer(
      "GET", "/api/v1/pods",
      [&host, forecaster, text = std::make_shared<SharedText>()](const http::Request& request) {
        return Pods(host, forecaster, *text, request);
      });
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
  router.AddAnswer("GET", "/api/v1/nodes/",
                   [&host](const http::Request& request) { return OneNode(host, request); });
  router.AddAnswer("GET", "/api/v1/pods/", [&host, forecaster](const http::Request& request) {
    return OnePod(host, forecaster, request);
  });
  router.AddAnswer("GET", "/api/v1/teams/",
                   [&host](const http::Request& request) { return OneTeam(host, request); });
  router.AddAnswer("GET", "/api/v1/explain/", [&host, forecaster](const http::Request& request) {
    return Explain(host, forecaster, request);
  });
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
