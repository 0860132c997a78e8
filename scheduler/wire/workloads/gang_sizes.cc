#include "scheduler/wire/workloads/gang_sizes.h"

#include <fmt/format.h>

#include <optional>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/workloads/workload.h"
#include "topology/base/check.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr IntegerRange kSizes = {0, 10'000};  // as of pods' own annotations

int64_t ReadNativeSize(Object spec, FieldReader& reader) {
  constexpr std::string_view kPolicy = "schedulingPolicy";
  const std::optional<Object> policy = reader.ReadObject(spec, kPolicy, "spec");
  if (!policy) return 0;
  if (const std::optional<Object> gang = reader.ReadObject(*policy, "gang", kPolicy)) {
    return reader.ReadInteger(*gang, "minCount", "spec.schedulingPolicy.gang", kSizes).value_or(0);
  }
  return reader.ReadObject(*policy, "basic", kPolicy) ? 1 : 0;
}

}  // namespace

std::string GangOfPodGroup(std::string_view group, std::string_view name) {
  if (group == kNativeGroup) return fmt::format("group/{}", name);
  TRANCHE_CHECK(group == kVolcanoGroup || group == kPluginsGroup);
  return fmt::format("{}/{}", group == kVolcanoGroup ? "volcano" : "podgroup", name);
}

absl::StatusOr<GangSize> DecodePodGroup(Element object, std::string_view group) {
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(object, "object");
  if (!root) return reader.status();
  GangSize out;
  const std::optional<Object> metadata = reader.ReadObject(*root, "metadata", "object");
  const std::string_view name = metadata ? reader.ReadText(*metadata, "name", "metadata") : "";
  if (name.empty()) reader.Fail("expected a name, found none, in metadata.name");
  if (metadata) out.ns = reader.ReadText(*metadata, "namespace", "metadata");
  out.gang = GangOfPodGroup(group, name);
  if (const std::optional<Object> spec = reader.ReadObject(*root, "spec", "object")) {
    const int64_t size = group == kNativeGroup
                             ? ReadNativeSize(*spec, reader)
                             : reader.ReadInteger(*spec, "minMember", "spec", kSizes).value_or(0);
    out.size = static_cast<int>(size);
  }
  if (!reader.ok()) return reader.status();
  return out;
}

absl::StatusOr<GangSize> DecodeGangOwner(Element object, std::string_view kind) {
  TRANCHE_ASSIGN_OR_RETURN(Workload owner, ReadWorkload(object, kind));
  return GangSize{std::move(owner.ns), std::move(owner.gang), static_cast<int>(owner.together)};
}

}  // namespace tranche::wire
