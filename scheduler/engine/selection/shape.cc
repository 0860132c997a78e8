#include "scheduler/engine/selection/shape.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "topology/base/table_key.h"

namespace tranche {
namespace {

void AppendTexts(std::string& out, const std::vector<std::string>& texts) {
  AppendToKey(out, static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) AppendToKey(out, text);
}

bool SameConstraints(const NodeConstraints* left, const NodeConstraints* right) {
  if (left == nullptr || right == nullptr) return left == right;
  return *left == *right;
}

}  // namespace

void AppendShape(const PodRequest& request, std::string& out) {
  AppendToKey(out, static_cast<int64_t>(request.style));
  AppendToKey(out, static_cast<int64_t>(request.containers.size()));
  for (const ContainerInfo& container : request.containers) {
    AppendToKey(out, static_cast<int64_t>(container.role));
    AppendToKey(out, container.plugin_count);
    AppendToKey(out, container.pinned_cpu.count());
  }
  AppendToKey(out, static_cast<int64_t>(request.asks.size()));
  for (const Ask& ask : request.asks) {
    AppendToKey(out, ask.container);
    AppendToKey(out, static_cast<int64_t>(ask.resource));
    AppendToKey(out, ask.count);
    AppendToKey(out, ask.mig.profile);
    AppendToKey(out, ask.mig.shared);
    AppendToKey(out, static_cast<int64_t>(ask.memory.kind));
    AppendToKey(out, ask.memory.value);
    AppendToKey(out, ask.compute.count());
    AppendToKey(out, ask.exclusive);
  }
  AppendToKey(out, static_cast<int64_t>(request.pool_needs.size()));
  for (const PoolNeed& need : request.pool_needs) {
    AppendToKey(out, need.key);
    AppendToKey(out, need.count);
  }
  AppendToKey(out, request.refusal ? static_cast<int64_t>(request.refusal->reason) : -1);
  AppendTexts(out, request.models_any);
  AppendTexts(out, request.models_none);
  AppendTexts(out, request.uuids_any);
  AppendTexts(out, request.uuids_none);
  AppendToKey(out, request.min_gpu_memory.count());
  AppendToKey(out, request.cpu.count());
  AppendToKey(out, request.one_numa_node);
  AppendToKey(out, request.follows_placeholder);
  AppendToKey(out, request.vgpu_mode);
  AppendToKey(out, request.strategy ? static_cast<int64_t>(*request.strategy) : -1);
  AppendToKey(out, static_cast<int64_t>(request.card_choice));
  const CardWeights weights = request.card_weights.value_or(CardWeights());
  for (const int64_t weight : {weights.slot, weights.core, weights.memory}) {
    AppendToKey(out, weight);
  }
  AppendToKey(out, request.topology ? static_cast<int64_t>(*request.topology) : -1);
  AppendToKey(out, request.link_floor ? int64_t{request.link_floor->nvlinks} << 8 |
                                            static_cast<int64_t>(request.link_floor->path)
                                      : -1);
  AppendToKey(out, request.nic_floor ? static_cast<int64_t>(*request.nic_floor) : -1);
  // Which containers have any decides where the pod may go; what they say does not.
  for (const OwnLimits& own : request.own_limits) AppendToKey(out, own.container);
}

void AppendConstraints(const NodeConstraints& constraints, std::string& out) {
  AppendToKey(out, static_cast<int64_t>(constraints.selector.size()));
  for (const auto& [key, value] : constraints.selector) {
    AppendToKey(out, key);
    AppendToKey(out, value);
  }
  AppendToKey(out, constraints.has_affinity);
  AppendToKey(out, static_cast<int64_t>(constraints.affinity.size()));
  for (const std::vector<NodeTerm>& term : constraints.affinity) {
    AppendToKey(out, static_cast<int64_t>(term.size()));
    for (const NodeTerm& demand : term) {
      AppendToKey(out, demand.key);
      AppendToKey(out, demand.is_field);
      AppendToKey(out, static_cast<int64_t>(demand.op));
      AppendTexts(out, demand.values);
    }
  }
  AppendToKey(out, static_cast<int64_t>(constraints.tolerations.size()));
  for (const Toleration& toleration : constraints.tolerations) {
    AppendToKey(out, toleration.key);
    AppendToKey(out, toleration.exists);
    AppendToKey(out, toleration.value);
    AppendToKey(out, toleration.effect);
  }
}

bool SameRequest(const PodRequest& left, const PodRequest& right) {
  std::string left_shape, right_shape;
  AppendShape(left, left_shape);
  AppendShape(right, right_shape);
  return left_shape == right_shape && left.gang == right.gang &&
         left.gang_size == right.gang_size && left.gang_rank == right.gang_rank &&
         left.gang_within == right.gang_within && left.expected_runtime == right.expected_runtime &&
         left.judged_elsewhere == right.judged_elsewhere &&
         SameConstraints(left.constraints.get(), right.constraints.get());
}

}  // namespace tranche
