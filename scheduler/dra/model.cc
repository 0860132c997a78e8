#include "scheduler/dra/model.h"

#include <algorithm>
#include <tuple>

namespace tranche::dra {
namespace {

template <typename Named>
const Named* Find(const std::vector<Named>& list, std::string_view domain, std::string_view name) {
  const auto wanted = std::tie(domain, name);
  const auto found =
      std::lower_bound(list.begin(), list.end(), wanted, [](const Named& entry, const auto& key) {
        const std::string_view entry_domain = entry.name.domain;
        const std::string_view entry_name = entry.name.name;
        return std::tie(entry_domain, entry_name) < key;
      });
  if (found == list.end() || found->name.domain != domain || found->name.name != name) {
    return nullptr;
  }
  return &*found;
}

}  // namespace

const Attribute* FindAttribute(const Device& device, std::string_view domain,
                               std::string_view name) {
  return Find(device.attributes, domain, name);
}

const Capacity* FindCapacity(const Device& device, std::string_view domain, std::string_view name) {
  return Find(device.capacities, domain, name);
}

bool IsToleratedBy(const Device& device, const std::vector<Toleration>& tolerations) {
  return Tolerates(tolerations, device.taints) && Tolerates(tolerations, device.rule_taints);
}

std::string_view GpuText(const Device& device, std::string_view name) {
  const Attribute* attribute = FindAttribute(device, kGpuDriver, name);
  const std::string* text =
      attribute == nullptr ? nullptr : std::get_if<std::string>(&attribute->value);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

ObjectRef RefOf(const Object& object) {
  if (const auto* each = std::get_if<DeviceClass>(&object)) {
    return {ObjectRef::Kind::kClass, "", each->name};
  }
  if (const auto* slice = std::get_if<Slice>(&object)) {
    return {ObjectRef::Kind::kSlice, "", slice->name};
  }
  if (const auto* claim = std::get_if<Claim>(&object)) {
    return {ObjectRef::Kind::kClaim, claim->ns, claim->name};
  }
  if (const auto* rule = std::get_if<TaintRule>(&object)) {
    return {ObjectRef::Kind::kTaintRule, "", rule->name};
  }
  const Claim& made = std::get<ClaimTemplate>(object).claim;
  return {ObjectRef::Kind::kTemplate, made.ns, made.name};
}

}  // namespace tranche::dra
