#include "scheduler/wire/claims/claim_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/dra/extended.h"
#include "scheduler/wire/claims/claim_fields.h"
#include "scheduler/wire/json/node_selector.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMostRequests = 32;
constexpr std::size_t kMostChoices = 8;
constexpr std::size_t kMostConstraints = 32;
constexpr std::size_t kMostConsumers = 256;
constexpr IntegerRange kCount = {1, INT64_MAX};

// Both kinds of a request's body: `exactly` (or a v1beta1 request) and a subrequest.
dra::RequestChoice ReadChoice(Object body, const std::string& where, FieldReader& reader) {
  dra::RequestChoice choice;
  choice.device_class = reader.ReadText(body, "deviceClassName", where);
  if (choice.device_class.empty()) {
    reader.Fail(fmt::format("expected a device class, found none, in {}", where));
  }
  choice.selectors = ReadSelectors(body, where, reader);
  const std::string_view mode = reader.ReadText(body, "allocationMode", where);
  choice.all = mode == "All";
  if (!choice.all && !mode.empty() && mode != "ExactCount") {
    reader.Fail(fmt::format("expected ExactCount or All, found {}, in {}.allocationMode",
                            Quoted(mode), where));
  }
  choice.count = reader.ReadInteger(body, "count", where, kCount).value_or(1);
  choice.admin = reader.ReadBool(body, "adminAccess", where).value_or(false);
  if (const auto constraints = ReadConstraints(body, reader)) {
    choice.tolerations = constraints->tolerations;
  }
  if (const auto capacity = reader.ReadObject(body, "capacity", where)) {
    choice.capacity = ReadAmounts(*capacity, "requests", where, "", reader);
  }
  return choice;
}

dra::Request ReadRequest(Object object, FieldReader& reader) {
  dra::Request request;
  request.name = reader.ReadText(object, "name", "requests");
  const std::string where = fmt::format("requests {}", request.name);
  if (const auto ways = ReadList(object, "firstAvailable", where, kMostChoices, reader);
      ways && ways->size() > 0) {
    for (const Object way : reader.Objects(ways, where)) {
      dra::RequestChoice& choice = request.choices.emplace_back(ReadChoice(way, where, reader));
      choice.name = reader.ReadText(way, "name", where);
    }
    return request;
  }
  const Object body = reader.ReadObject(object, "exactly", where).value_or(object);
  request.choices.push_back(ReadChoice(body, where, reader));
  return request;
}

void ReadDemands(Object devices, FieldReader& reader, dra::Claim& claim) {
  constexpr std::string_view kWhere = "spec.devices";
  for (const Object request :
       reader.Objects(ReadList(devices, "requests", kWhere, kMostRequests, reader), kWhere)) {
    claim.requests.push_back(ReadRequest(request, reader));
  }
  for (const Object object :
       reader.Objects(ReadList(devices, "constraints", kWhere, kMostConstraints, reader), kWhere)) {
    dra::Constraint& constraint = claim.constraints.emplace_back();
    constraint.requests = ReadTextList(object, "requests", kWhere, kMostRequests, reader);
    std::string_view name = reader.ReadText(object, "matchAttribute", kWhere);
    constraint.distinct = name.empty();
    if (name.empty()) name = reader.ReadText(object, "distinctAttribute", kWhere);
    constraint.attribute = QualifiedNameOf(name, "");
    if (constraint.attribute.domain.empty()) {
      reader.Fail(fmt::format("expected an attribute with its domain, found {}, in {}.constraints",
                              Quoted(name), kWhere));
    }
  }
  claim.configs = ReadConfigs(devices, kWhere, reader);
}

dra::AllocatedDevice ReadResult(Object object, FieldReader& reader) {
  constexpr std::string_view kWhere = "status.allocation";
  dra::AllocatedDevice device;
  device.request = reader.ReadText(object, "request", kWhere);
  device.id.driver = reader.ReadText(object, "driver", kWhere);
  device.id.pool = reader.ReadText(object, "pool", kWhere);
  device.id.device = reader.ReadText(object, "device", kWhere);
  device.admin = reader.ReadBool(object, "adminAccess", kWhere).value_or(false);
  device.shared = !reader.ReadText(object, "shareID", kWhere).empty();
  device.consumed = ReadAmounts(object, "consumedCapacity", kWhere, device.id.driver, reader);
  return device;
}

dra::Allocation ReadAllocation(Object object, FieldReader& reader) {
  constexpr std::string_view kWhere = "status.allocation";
  dra::Allocation allocation;
  if (const auto devices = reader.ReadObject(object, "devices", kWhere)) {
    for (const Object result :
         reader.Objects(ReadList(*devices, "results", kWhere, dra::kMostResults, reader), kWhere)) {
      allocation.devices.push_back(ReadResult(result, reader));
    }
    allocation.configs = ReadConfigs(*devices, kWhere, reader);
  }
  if (const auto selector = reader.ReadObject(object, "nodeSelector", kWhere)) {
    allocation.nodes = ReadNodeSelector(*selector, kWhere, reader);
  }
  return allocation;
}

void ReadStatus(Object status, FieldReader& reader, dra::Claim& claim) {
  if (const auto allocation = reader.ReadObject(status, "allocation", "status")) {
    claim.allocation = ReadAllocation(*allocation, reader);
  }
  for (const Object consumer :
       reader.Objects(ReadList(status, "reservedFor", "status", kMostConsumers, reader),
                      "status.reservedFor")) {
    if (reader.ReadText(consumer, "resource", "status.reservedFor") != "pods") continue;
    claim.reserved_for.emplace_back(reader.ReadText(consumer, "uid", "status.reservedFor"));
  }
}

void ReadOwner(Object metadata, FieldReader& reader, dra::Claim& claim) {
  const std::optional<Object> annotations = reader.ReadObject(metadata, "annotations", "metadata");
  claim.for_extended_resource =
      annotations && FindText(*annotations, dra::kExtendedClaimAnnotation) == "true";
  for (const Object owner : reader.Objects(
           reader.ReadArray(metadata, "ownerReferences", "metadata"), "metadata.ownerReferences")) {
    if (reader.ReadText(owner, "kind", "metadata.ownerReferences") != "Pod") continue;
    claim.owner = PodUid(reader.ReadText(owner, "uid", "metadata.ownerReferences"));
  }
}

enum class ClaimSource { kClaim, kTemplate };

absl::StatusOr<dra::Claim> Decode(Element element, ClaimSource source) {
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(element, "object");
  if (!object) return reader.status();
  dra::Claim claim;
  ObjectName name = ReadObjectName(*object, reader);
  claim.ns = std::move(name.ns);
  claim.name = std::move(name.name);
  claim.uid = std::move(name.uid);
  std::optional<Object> spec = reader.ReadObject(*object, "spec", "object");
  const bool is_template = source == ClaimSource::kTemplate;
  if (spec && is_template) spec = reader.ReadObject(*spec, "spec", "spec");
  const auto devices = spec ? reader.ReadObject(*spec, "devices", "spec") : std::nullopt;
  if (devices) ReadDemands(*devices, reader, claim);
  if (!is_template) {
    if (name.metadata) ReadOwner(*name.metadata, reader, claim);
    if (const auto status = reader.ReadObject(*object, "status", "object")) {
      ReadStatus(*status, reader, claim);
    }
  }
  if (!reader.ok()) return reader.status();
  return claim;
}

}  // namespace

absl::StatusOr<dra::DeviceClass> DecodeDeviceClass(Element element) {
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(element, "object");
  if (!object) return reader.status();
  dra::DeviceClass result;
  const ObjectName name = ReadObjectName(*object, reader);
  result.name = name.name;
  if (name.metadata) {
    const std::string_view created =
        reader.ReadText(*name.metadata, "creationTimestamp", "metadata");
    result.created = ParseTime(created).value_or(Instant());
  }
  if (const auto spec = reader.ReadObject(*object, "spec", "object")) {
    result.selectors = ReadSelectors(*spec, "spec", reader);
    result.configs = ReadConfigs(*spec, "spec", reader);
    result.extended_resource = reader.ReadText(*spec, "extendedResourceName", "spec");
  }
  if (!reader.ok()) return reader.status();
  return result;
}

absl::StatusOr<dra::TaintRule> DecodeTaintRule(Element element) {
  constexpr std::string_view kSelector = "spec.deviceSelector";
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(element, "object");
  if (!object) return reader.status();
  dra::TaintRule rule;
  rule.name = ReadObjectName(*object, reader).name;
  const auto spec = reader.ReadObject(*object, "spec", "object");
  const auto taint = spec ? reader.ReadObject(*spec, "taint", "spec") : std::optional<Object>();
  if (!taint) reader.Fail("expected object, found nothing, in spec.taint");
  if (!reader.ok()) return reader.status();
  rule.taint = ReadTaint(*taint, "spec.taint", reader);
  if (const auto selector = reader.ReadObject(*spec, "deviceSelector", "spec")) {
    rule.selects = true;
    for (const std::string_view other : {"deviceClassName", "selectors"}) {
      if (!Find(*selector, other)) continue;
      reader.Fail(fmt::format("expected a selector by driver, pool and device, found {}, in {}",
                              other, kSelector));
    }
    const auto read = [&](std::string_view key) -> std::optional<std::string> {
      if (!Find(*selector, key)) return std::nullopt;
      return std::string(reader.ReadText(*selector, key, kSelector));
    };
    rule.driver = read("driver");
    rule.pool = read("pool");
    rule.device = read("device");
  }
  if (!reader.ok()) return reader.status();
  return rule;
}

absl::StatusOr<dra::Claim> DecodeClaim(Element object) {
  return Decode(object, ClaimSource::kClaim);
}
absl::StatusOr<dra::Claim> DecodeClaimTemplate(Element object) {
  return Decode(object, ClaimSource::kTemplate);
}

absl::StatusOr<dra::Object> DecodeDraObject(Element object, dra::ObjectRef::Kind kind) {
  switch (kind) {
    case dra::ObjectRef::Kind::kClass:
      return DecodeDeviceClass(object);
    case dra::ObjectRef::Kind::kSlice:
      return DecodeSlice(object);
    case dra::ObjectRef::Kind::kClaim:
      return DecodeClaim(object);
    case dra::ObjectRef::Kind::kTaintRule:
      return DecodeTaintRule(object);
    case dra::ObjectRef::Kind::kTemplate:
      break;
  }
  TRANCHE_ASSIGN_OR_RETURN(dra::Claim claim, DecodeClaimTemplate(object));
  return dra::ClaimTemplate{std::move(claim)};
}

}  // namespace tranche::wire
