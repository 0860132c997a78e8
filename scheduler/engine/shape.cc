#include "scheduler/engine/shape.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tranche {
namespace {

void Append(std::string& out, int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(std::string& out, std::string_view text) {
  Append(out, static_cast<int64_t>(text.size()));
  out += text;
}

void AppendTexts(std::string& out, const std::vector<std::string>& texts) {
  Append(out, static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) AppendText(out, text);
}

}  // namespace

void AppendShape(const PodRequest& request, std::string& out) {
  Append(out, static_cast<int64_t>(request.dialect));
  Append(out, static_cast<int64_t>(request.containers.size()));
  for (const ContainerInfo& container : request.containers) {
    Append(out, static_cast<int64_t>(container.role));
    Append(out, container.plugin_count);
    Append(out, container.pinned_cpu.count());
  }
  Append(out, static_cast<int64_t>(request.asks.size()));
  for (const Ask& ask : request.asks) {
    Append(out, ask.container);
    Append(out, static_cast<int64_t>(ask.resource));
    Append(out, ask.count);
    AppendText(out, ask.mig.profile);
    Append(out, ask.mig.shared);
    Append(out, static_cast<int64_t>(ask.memory.kind));
    Append(out, ask.memory.value);
    Append(out, ask.compute.count());
    Append(out, ask.exclusive);
  }
  Append(out, static_cast<int64_t>(request.pool_needs.size()));
  for (const PoolNeed& need : request.pool_needs) {
    AppendText(out, need.key);
    Append(out, need.count);
  }
  Append(out, request.refusal ? static_cast<int64_t>(request.refusal->reason) : -1);
  AppendTexts(out, request.models_any);
  AppendTexts(out, request.models_none);
  AppendTexts(out, request.uuids_any);
  AppendTexts(out, request.uuids_none);
  Append(out, request.min_gpu_memory.count());
  Append(out, request.cpu.count());
  Append(out, request.one_numa_node);
  Append(out, request.follows_keeper);
  AppendText(out, request.vgpu_mode);
  Append(out, request.strategy ? static_cast<int64_t>(*request.strategy) : -1);
  Append(out, static_cast<int64_t>(request.card_choice));
  Append(out, request.topology ? static_cast<int64_t>(*request.topology) : -1);
  Append(out, request.link_floor ? int64_t{request.link_floor->nvlinks} << 8 |
                                       static_cast<int64_t>(request.link_floor->path)
                                 : -1);
  Append(out, request.nic_floor ? static_cast<int64_t>(*request.nic_floor) : -1);
}

void AppendConstraints(const NodeConstraints& constraints, std::string& out) {
  Append(out, static_cast<int64_t>(constraints.selector.size()));
  for (const auto& [key, value] : constraints.selector) {
    AppendText(out, key);
    AppendText(out, value);
  }
  Append(out, constraints.has_affinity);
  Append(out, static_cast<int64_t>(constraints.affinity.size()));
  for (const std::vector<NodeTerm>& term : constraints.affinity) {
    Append(out, static_cast<int64_t>(term.size()));
    for (const NodeTerm& demand : term) {
      AppendText(out, demand.key);
      Append(out, demand.is_field);
      Append(out, static_cast<int64_t>(demand.op));
      AppendTexts(out, demand.values);
    }
  }
  Append(out, static_cast<int64_t>(constraints.tolerations.size()));
  for (const Toleration& toleration : constraints.tolerations) {
    AppendText(out, toleration.key);
    Append(out, toleration.exists);
    AppendText(out, toleration.value);
    AppendText(out, toleration.effect);
  }
}

}  // namespace tranche
