// What a Pod object says of its claims.
#include <map>
#include <string>
#include <utility>

#include "scheduler/dra/extended.h"
#include "scheduler/wire/claims/claim_fields.h"
#include "scheduler/wire/claims/claim_objects.h"

namespace tranche::wire {
namespace {

// A claim may be made of a template of a megabyte each. A pod with more of them is refused, and
// counts as one that cannot be read.
constexpr std::size_t kMostClaims = 256;

class PodClaimsDecoder {
 public:
  absl::StatusOr<dra::PodClaims> Decode(Element element) {
    const std::optional<Object> object = reader_.AsObject(element, "object");
    if (!object) return reader_.status();
    if (const auto spec = reader_.ReadObject(*object, "spec", "object")) {
      ReadClaims(*spec);
      ReadContainers(*spec, "initContainers");
      ReadContainers(*spec, "containers");
    }
    if (const auto status = reader_.ReadObject(*object, "status", "object")) {
      ReadGenerated(*status);
      ReadExtended(*status);
    }
    if (!reader_.ok()) return reader_.status();
    return std::move(pod_);
  }

 private:
  // Of any length: what a list costs is linear in the pod.
  template <typename Read>
  void ForEach(Object parent, std::string_view key, std::string_view where, Read read) {
    for (const Object object : reader_.Objects(reader_.ReadArray(parent, key, where), where)) {
      read(object);
    }
  }

  std::string Text(Object object, std::string_view key, std::string_view where) {
    return std::string(reader_.ReadText(object, key, where));
  }

  void ReadClaims(Object spec) {
    constexpr std::string_view kWhere = "spec.resourceClaims";
    for (const Object claim :
         reader_.Objects(ReadList(spec, "resourceClaims", "spec", kMostClaims, reader_), kWhere)) {
      pod_.claims.push_back({Text(claim, "name", kWhere), Text(claim, "resourceClaimName", kWhere),
                             Text(claim, "resourceClaimTemplateName", kWhere)});
    }
  }

  void ReadContainers(Object spec, std::string_view list) {
    ForEach(spec, list, "spec", [&](Object container) {
      const auto resources = reader_.ReadObject(container, "resources", list);
      if (!resources) return;
      const std::string name = Text(container, "name", list);
      ReadAsks(*resources, name, list);
      ForEach(*resources, "claims", list, [&](Object claim) {
        pod_.containers.push_back({name, Text(claim, "name", list), Text(claim, "request", list)});
      });
    });
  }

  // Limits of extended resources are their requests.
  void ReadAsks(Object resources, const std::string& container, std::string_view list) {
    const auto limits = reader_.ReadObject(resources, "limits", list);
    if (!limits) return;
    for (const auto field : *limits) {
      if (!field.key.starts_with(dra::kImplicitPrefix)) continue;
      const auto count = ReadQuantity(*limits, field.key, list, reader_);
      if (count && count->whole() > 0) {
        pod_.asks.push_back({container, std::string(field.key), count->whole()});
      }
    }
  }

  void ReadGenerated(Object status) {
    constexpr std::string_view kWhere = "status.resourceClaimStatuses";
    std::map<std::string, dra::PodClaim*> named;
    for (dra::PodClaim& claim : pod_.claims) named.emplace(claim.name, &claim);
    ForEach(status, "resourceClaimStatuses", "status", [&](Object entry) {
      const auto found = named.find(Text(entry, "name", kWhere));
      std::string claim = Text(entry, "resourceClaimName", kWhere);
      // A claim the spec names is never another one.
      if (found != named.end() && !found->second->template_name.empty()) {
        found->second->claim = std::move(claim);
      }
    });
  }

  void ReadExtended(Object status) {
    constexpr std::string_view kWhere = "status.extendedResourceClaimStatus";
    const auto object = reader_.ReadObject(status, "extendedResourceClaimStatus", "status");
    if (!object) return;
    dra::ExtendedStatus& extended = pod_.extended.emplace();
    extended.claim = Text(*object, "resourceClaimName", kWhere);
    ForEach(*object, "requestMappings", kWhere, [&](Object mapping) {
      extended.mappings.push_back({Text(mapping, "containerName", kWhere),
                                   Text(mapping, "resourceName", kWhere),
                                   Text(mapping, "requestName", kWhere)});
    });
  }

  FieldReader reader_;
  dra::PodClaims pod_;
};

}  // namespace

absl::StatusOr<dra::PodClaims> DecodePodClaims(Element pod) {
  return PodClaimsDecoder().Decode(pod);
}

}  // namespace tranche::wire
