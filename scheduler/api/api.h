// GET /api/v1/{nodes,pods,explain/NS/POD,quotas,budgets,reclaims,events}, and one of them by its
// name: pods/NS/NAME, nodes/NAME, teams/NAME. What people, the command line and the page ask.
//
// Nothing here changes a decision. Refusals are {"error":...} with 400, 404, 405 or 503.
// Thread rule: any thread. Cost: lists copy and encode all nodes or pods, in pieces of which each
// holds the engine for a moment; an object by its name costs the same however large the fleet is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/api/router.h"
#include "scheduler/controllers/forecaster.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

// Which pods of all, in which order: GET /api/v1/pods?namespace&team&node&state&sort&limit.
struct PodListQuery {
  enum class Key : uint8_t { kName, kNode, kTeam, kState, kGpus, kWaitsSince };

  std::optional<std::string> ns = std::nullopt;
  std::optional<std::string> team = std::nullopt;  // "": pods that no team owns
  std::optional<std::string> node = std::nullopt;
  std::optional<std::string> gang = std::nullopt;  // of any namespace; "": pods of none
  std::vector<PodState> states{};                  // empty: any
  Key key = Key::kName;
  bool descending = false;                          // of equal keys the names still ascend
  std::optional<std::size_t> limit = std::nullopt;  // at least 1
};
// Errors: InvalidArgument naming the parameter, what it takes and what was found.
absl::StatusOr<PodListQuery> ReadPodListQuery(const http::Request& request);

struct ListedPods {
  std::vector<PodView> pods;
  std::size_t total = 0;  // how many match, before the limit
};
// `all` is ordered by namespace, name and uid. What has no value for the key comes last, however
// the order goes: of kNode pods without a node, of kWaitsSince those that do not wait.
ListedPods SelectPods(std::vector<PodView> all, const PodListQuery& query);

// Of GET /api/v1/events?namespace&pod&node&team&kind&since&limit. Errors likewise.
absl::StatusOr<RecentQuery> ReadEventQuery(const http::Request& request);

// The host must outlive the router's use, and so must the forecaster. Null: nothing is foretold.
void AddApi(EngineHost& host, Router& router, const Forecaster* forecaster = nullptr);

}  // namespace tranche
