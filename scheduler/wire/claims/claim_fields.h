// Fields that several objects of resource.k8s.io have in common.
//
// The reader notes what is wrong; see field_reader.h. One thread at a time.
// Source: kubernetes/api resource/v1 types, dra facts section 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// metadata.name; an absent one is an error.
struct ObjectName {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<Object> metadata;
};
ObjectName ReadObjectName(Object object, FieldReader& reader);

// The member as array of at most `most` elements; nullopt when absent or wrong.
std::optional<Array> ReadList(Object parent, std::string_view key, std::string_view where,
                              std::size_t most, FieldReader& reader);
std::vector<std::string> ReadTextList(Object parent, std::string_view key, std::string_view where,
                                      std::size_t most, FieldReader& reader);

// One element of `taints`.
Taint ReadTaint(Object taint, std::string_view where, FieldReader& reader);

// Text or a whole number; nullopt when absent or wrong.
std::optional<dra::Quantity> ReadQuantity(Object parent, std::string_view key,
                                          std::string_view where, FieldReader& reader);

// "domain/name"; without a domain `domain` is taken.
dra::QualifiedName QualifiedNameOf(std::string_view text, std::string_view domain);

// A map of quantities, ascending name.
std::vector<dra::CapacityAmount> ReadAmounts(Object parent, std::string_view key,
                                             std::string_view where, std::string_view domain,
                                             FieldReader& reader);

// A core/v1 NodeSelector. A term with an operator we do not know matches nothing.
NodeConstraints ReadNodeSelector(Object selector, std::string_view where, FieldReader& reader);

// CEL expressions of a list of selectors.
std::vector<std::string> ReadSelectors(Object parent, std::string_view where, FieldReader& reader);

// Opaque configurations of a class, claim or allocation. Those of NVIDIA's GPU driver are read as
// far as we know them (see dra/sharing.h).
std::vector<dra::DriverConfig> ReadConfigs(Object parent, std::string_view where,
                                           FieldReader& reader);

// Parameters of gpu.nvidia.com; nullopt: of a kind we do not know, or not as its schema says.
std::optional<dra::Sharing> ReadSharing(Object parameters);

}  // namespace tranche::wire
