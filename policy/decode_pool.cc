#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/decode_selector.h"
#include "policy/field.h"
#include "policy/time_zone.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr size_t kMostMaintenanceWindows = 50;

constexpr std::array kPoolCapacities = {Choice<CapacityType>{"OnDemand", CapacityType::kOnDemand},
                                        Choice<CapacityType>{"Reserved", CapacityType::kReserved},
                                        Choice<CapacityType>{"Spot", CapacityType::kSpot}};

bool ReadMoment(const Field& field, Instant& target) {
  const auto text = field.Text();
  const std::optional<Instant> at = text ? ParseInstant(*text) : std::nullopt;
  if (at) {
    target = *at;
  } else {
    field.Fail("a moment such as \"2026-03-01T22:00:00Z\"");
  }
  return at.has_value();
}

void ReadMaintenance(const Field& field, std::vector<PoolWindow>& windows) {
  PoolWindow window;
  int moments = 0;
  std::optional<bool> drain;
  field.ReadMembers(
      {{"from", [&](const Field& from) { moments += ReadMoment(from, window.from) ? 1 : 0; },
        "a moment"},
       {"to", [&](const Field& to) { moments += ReadMoment(to, window.to) ? 1 : 0; }, "a moment"},
       {"drain", [&](const Field& value) { ReadBool(value, drain); }}});
  if (moments == 2 && window.from >= window.to) field.Fail("from to be before to");
  window.drain = drain.value_or(false);
  windows.push_back(window);
}

}  // namespace

absl::StatusOr<GpuPool> DecodeGpuPool(std::string_view json) {
  ObjectHead head;
  GpuPool pool;
  std::optional<LabelSelector> nodes;
  const auto read_capacity = [&](const Field& field) {
    CapacityType type{};
    if (ReadChoice(field, kPoolCapacities, type)) pool.capacity = type;
  };
  const auto read_windows = [&](const Field& field) {
    for (const Field& window : field.Items(0, kMostMaintenanceWindows)) {
      ReadMaintenance(window, pool.windows);
    }
  };
  TRANCHE_RETURN_IF_ERROR(
      ReadDeclared("GPUPool", json, SpecPresence::kRequired, head, [&](const Field& spec) {
        spec.ReadMembers(
            {{"nodes", [&](const Field& field) { ReadSelector(field, nodes); }, "a label selector"},
             {"capacity", read_capacity},
             {"windows", read_windows}});
      }));
  pool.name = head.name;
  pool.nodes = *std::move(nodes);
  return pool;
}

}  // namespace tranche
