// Which pods a list has, and in which order.
//
// Pure functions, any thread. Cost: a pass over the pods, and of ordering those that match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/selector_text.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/http/server.h"

namespace tranche {

// Which pods of all, in which order: GET
// /api/v1/pods?namespace&team&node&gang&state&labelSelector&sort&limit.
struct PodListQuery {
  enum class Key : uint8_t { kName, kNode, kTeam, kState, kGpus, kWaitsSince };

  std::optional<std::string> ns = std::nullopt;
  std::optional<std::string> team = std::nullopt;  // "": pods that no team owns
  std::optional<std::string> node = std::nullopt;
  std::optional<std::string> gang = std::nullopt;     // of any namespace; "": pods of none
  std::vector<PodState> states{};                     // empty: any
  std::optional<LineSelector> labels = std::nullopt;  // of pods without labels, too
  Key key = Key::kName;
  bool descending = false;                          // of equal keys the names still ascend
  std::optional<std::size_t> limit = std::nullopt;  // at least 1
};
// Errors: InvalidArgument naming the parameter, what it takes and what was found.
absl::StatusOr<PodListQuery> ReadPodListQuery(const http::Request& request);

bool Matches(const PodView& pod, const PodListQuery& query);

// A pod and its successor of the same name are two.
struct PodKey {
  PodName name;
  PodUid uid;
  friend auto operator<=>(const PodKey&, const PodKey&) = default;
};
// It is another one where what is told of the pod (`text`) or what it may be chosen by is other.
uint64_t DigestOf(const PodView& pod, const std::string& text);

struct PodOrder {
  std::vector<std::size_t> places;
  std::size_t total = 0;  // how many match, before the limit
};
// Which of `all` these are, by their places. `all` is ordered by namespace, name and uid. What has
// no value for the key comes last, however the order goes: of kNode pods without a node, of
// kWaitsSince those that do not wait.
PodOrder OrderPods(std::span<const PodView> all, const PodListQuery& query);

struct ListedPods {
  std::vector<PodView> pods;
  std::size_t total = 0;  // how many match, before the limit
};
ListedPods SelectPods(std::vector<PodView> all, const PodListQuery& query);

}  // namespace tranche
