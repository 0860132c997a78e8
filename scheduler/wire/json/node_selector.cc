#include "scheduler/wire/json/node_selector.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace tranche::wire {
namespace {

constexpr std::string_view kTermsPath = "nodeAffinity.nodeSelectorTerms";

// False: the term can match nothing.
bool ReadRequirements(Object term, std::string_view list, FieldReader& reader,
                      std::vector<NodeTerm>& terms) {
  for (const Object requirement : reader.Objects(reader.ReadArray(term, list, kTermsPath), list)) {
    const auto op = ParseNodeOperator(reader.ReadText(requirement, "operator", list));
    if (!op) return false;
    NodeTerm& read = terms.emplace_back();
    read.key = reader.ReadText(requirement, "key", list);
    read.is_field = list == "matchFields";
    read.op = *op;
    const std::optional<Array> values = reader.ReadArray(requirement, "values", list);
    if (!values) continue;
    for (const Element value : *values) {
      read.values.emplace_back(reader.AsText(value, list).value_or(std::string_view()));
    }
  }
  return true;
}

void ReadAffinity(Object spec, FieldReader& reader, NodeConstraints& constraints) {
  const auto affinity = reader.ReadObject(spec, "affinity", "spec");
  const auto of_nodes =
      affinity ? reader.ReadObject(*affinity, "nodeAffinity", "spec.affinity") : std::nullopt;
  const auto required =
      of_nodes ? reader.ReadObject(*of_nodes, "requiredDuringSchedulingIgnoredDuringExecution",
                                   "nodeAffinity")
               : std::nullopt;
  if (!required) return;
  constraints.has_affinity = true;
  for (const Object term : reader.Objects(
           reader.ReadArray(*required, "nodeSelectorTerms", "nodeAffinity"), kTermsPath)) {
    std::vector<NodeTerm> terms;
    if (ReadRequirements(term, "matchExpressions", reader, terms) &&
        ReadRequirements(term, "matchFields", reader, terms) && !terms.empty()) {
      constraints.affinity.push_back(std::move(terms));
    }
  }
}

void ReadTolerations(Object spec, FieldReader& reader, NodeConstraints& constraints) {
  constexpr std::string_view kWhere = "spec.tolerations";
  for (const Object toleration :
       reader.Objects(reader.ReadArray(spec, "tolerations", "spec"), kWhere)) {
    Toleration read;
    read.key = reader.ReadText(toleration, "key", kWhere);
    read.value = reader.ReadText(toleration, "value", kWhere);
    read.effect = reader.ReadText(toleration, "effect", kWhere);
    const std::string_view op = reader.ReadText(toleration, "operator", kWhere);
    read.exists = op == "Exists";
    if (read.exists || op.empty() || op == "Equal") {
      constraints.tolerations.push_back(std::move(read));
    }
  }
}

// Affinity but for the nodes that are required.
bool HasWishesOfPlace(Object spec, FieldReader& reader) {
  const std::optional<Object> affinity = reader.ReadObject(spec, "affinity", "spec");
  if (!affinity) return false;
  for (const std::string_view between : {"podAffinity", "podAntiAffinity"}) {
    if (reader.ReadObject(*affinity, between, "spec.affinity")) return true;
  }
  const std::optional<Object> nodes = reader.ReadObject(*affinity, "nodeAffinity", "spec.affinity");
  if (!nodes) return false;
  const std::optional<Array> preferred = reader.ReadArray(
      *nodes, "preferredDuringSchedulingIgnoredDuringExecution", "spec.affinity.nodeAffinity");
  return preferred && preferred->size() > 0;
}

bool HasHostPorts(Object spec, FieldReader& reader) {
  constexpr std::string_view kPorts = "spec.containers[].ports";
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Object container :
         reader.Objects(reader.ReadArray(spec, list, "spec"), "spec.containers")) {
      for (const Object port :
           reader.Objects(reader.ReadArray(container, "ports", "spec.containers[]"), kPorts)) {
        if (reader.ReadInteger(port, "hostPort", kPorts, {0, 65'535}).value_or(0) != 0) return true;
      }
    }
  }
  return false;
}

bool HasBoundVolumes(Object spec, FieldReader& reader) {
  constexpr std::array<std::string_view, 9> kAnywhere = {"name",     "configMap", "secret",
                                                         "emptyDir", "projected", "downwardAPI",
                                                         "hostPath", "nfs",       "image"};
  for (const Object volume :
       reader.Objects(reader.ReadArray(spec, "volumes", "spec"), "spec.volumes")) {
    for (const auto field : volume) {
      if (std::ranges::find(kAnywhere, field.key) == kAnywhere.end()) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<NodeTerm::Operator> ParseNodeOperator(std::string_view name) {
  using Operator = NodeTerm::Operator;
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators = {
      {{"In", Operator::kIn},
       {"NotIn", Operator::kNotIn},
       {"Exists", Operator::kExists},
       {"DoesNotExist", Operator::kDoesNotExist},
       {"Gt", Operator::kGt},
       {"Lt", Operator::kLt}}};
  for (const auto& [text, op] : kOperators) {
    if (text == name) return op;
  }
  return std::nullopt;
}

std::shared_ptr<const NodeConstraints> ReadConstraints(Object spec, FieldReader& reader) {
  NodeConstraints constraints;
  constraints.selector = reader.ReadTexts(spec, "nodeSelector", "spec");
  ReadAffinity(spec, reader, constraints);
  ReadTolerations(spec, reader, constraints);
  if (constraints == NodeConstraints{}) return nullptr;
  return std::make_shared<const NodeConstraints>(std::move(constraints));
}

bool IsJudgedElsewhere(Object spec, FieldReader& reader) {
  for (const std::string_view list : {"topologySpreadConstraints", "resourceClaims"}) {
    const std::optional<Array> items = reader.ReadArray(spec, list, "spec");
    if (items && items->size() > 0) return true;
  }
  return HasWishesOfPlace(spec, reader) || HasHostPorts(spec, reader) ||
         HasBoundVolumes(spec, reader);
}

}  // namespace tranche::wire
