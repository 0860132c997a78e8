#include "scheduler/api/lists/pod_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "policy/selector_text.h"
#include "scheduler/api/lists/query_words.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

const Labels none;
constexpr std::size_t kMostPods = 1'000'000;
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

absl::Status ReadSort(std::string text, PodListQuery& query) {
  const std::string given = text;
  query.descending = text.starts_with('-');
  if (query.descending) text.erase(0, 1);
  const auto* const found =
      std::ranges::find(kSortWords, text, &std::pair<std::string_view, PodListQuery::Key>::first);
  if (found == std::end(kSortWords)) {
    return BadParameter(
        "sort", "name, node, team, state, gpus or waitsSince, with - before it to turn it", given);
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

// A pod's place with what it is sorted by: one of the two, `present` where it has it.
struct Ranked {
  std::size_t place = 0;
  std::string text;
  int64_t number = 0;
  bool present = true;
};

Ranked RankOf(const PodView& pod, std::size_t place, PodListQuery::Key key) {
  Ranked ranked;
  ranked.place = place;
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
  return ranked;
}

}  // namespace

bool Matches(const PodView& pod, const PodListQuery& query) {
  static const Labels none;
  return (!query.ns || pod.name.ns == *query.ns) && (!query.team || pod.leaf == *query.team) &&
         (!query.node || pod.node.str() == *query.node) &&
         (!query.gang || pod.gang == *query.gang) &&
         (!query.labels || query.labels->Matches(pod.labels ? *pod.labels : none)) &&
         (query.states.empty() || std::ranges::count(query.states, pod.state) > 0);
}

absl::StatusOr<PodListQuery> ReadPodListQuery(const http::Request& request) {
  PodListQuery query;
  query.ns = ParameterOf(request, "namespace");
  query.team = ParameterOf(request, "team");
  query.node = ParameterOf(request, "node");
  query.gang = ParameterOf(request, "gang");
  if (const auto state = ParameterOf(request, "state")) {
    const auto found = std::ranges::find(StateWords(), *state, &StateWord::word);
    if (found == StateWords().end()) {
      return BadParameter("state", "pending, claimed, reserved, bound, waiting or placed", *state);
    }
    query.states = found->states;
  }
  if (const auto labels = ParameterOf(request, "labelSelector")) {
    absl::StatusOr<LineSelector> selector = ParseLabelSelector(*labels);
    if (!selector.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("labelSelector: {}", std::string(selector.status().message())));
    }
    query.labels = *std::move(selector);
  }
  if (const auto sort = ParameterOf(request, "sort")) {
    if (absl::Status status = ReadSort(*sort, query); !status.ok()) return status;
  }
  if (const auto limit = ParameterOf(request, "limit")) {
    TRANCHE_ASSIGN_OR_RETURN(query.limit, ReadNumber("limit", *limit, 1, kMostPods));
  }
  return query;
}

uint64_t DigestOf(const PodView& pod, const std::string& text) {
  uint64_t digest = std::hash<std::string>()(text);
  if (pod.labels == nullptr) return digest;
  const auto add = [&digest](const std::string& part) {
    digest = digest * 0x9e3779b97f4a7c15ULL + std::hash<std::string>()(part);
  };
  for (const auto& [key, value] : *pod.labels) {
    add(key);
    add(value);
  }
  return digest;
}

PodOrder OrderPods(std::span<const PodView> all, const PodListQuery& query) {
  std::vector<Ranked> matching;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (Matches(all[at], query)) matching.push_back(RankOf(all[at], at, query.key));
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
  PodOrder order;
  order.total = matching.size();
  if (query.limit && *query.limit < matching.size()) matching.resize(*query.limit);
  order.places.reserve(matching.size());
  for (const Ranked& ranked : matching) order.places.push_back(ranked.place);
  return order;
}

ListedPods SelectPods(std::vector<PodView> all, const PodListQuery& query) {
  const PodOrder order = OrderPods(all, query);
  ListedPods list;
  list.total = order.total;
  list.pods.reserve(order.places.size());
  for (const std::size_t place : order.places) list.pods.push_back(std::move(all[place]));
  return list;
}

}  // namespace tranche
