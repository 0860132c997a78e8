#include "scheduler/wire/claims/claim_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/wire/json/node_selector.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMostSelectors = 32;
constexpr std::size_t kMostConfigs = 64;  // of an allocation: 32 of the claim, 32 of classes
constexpr std::size_t kMostCelBytes = 10 * 1024;
constexpr std::size_t kMostTerms = 128;

// False: the term can match nothing.
bool ReadRequirements(Object term, std::string_view list, std::string_view where,
                      FieldReader& reader, std::vector<NodeTerm>& terms) {
  for (const Object requirement :
       reader.Objects(ReadList(term, list, where, kMostTerms, reader), where)) {
    const auto op = ParseNodeOperator(reader.ReadText(requirement, "operator", where));
    if (!op) return false;
    NodeTerm& read = terms.emplace_back();
    read.key = reader.ReadText(requirement, "key", where);
    read.is_field = list == "matchFields";
    read.op = *op;
    read.values = ReadTextList(requirement, "values", where, kMostTerms, reader);
  }
  return true;
}

}  // namespace

ObjectName ReadObjectName(Object object, FieldReader& reader) {
  ObjectName result;
  result.metadata = reader.ReadObject(object, "metadata", "object");
  if (result.metadata) {
    result.ns = reader.ReadText(*result.metadata, "namespace", "metadata");
    result.name = reader.ReadText(*result.metadata, "name", "metadata");
    result.uid = reader.ReadText(*result.metadata, "uid", "metadata");
  }
  if (result.name.empty()) reader.Fail("expected a name, found none, in metadata.name");
  return result;
}

std::optional<Array> ReadList(Object parent, std::string_view key, std::string_view where,
                              std::size_t most, FieldReader& reader) {
  const std::optional<Array> list = reader.ReadArray(parent, key, where);
  if (!list || list->size() <= most) return list;
  reader.Fail(fmt::format("expected at most {} entries, found {}, in {}.{}", most, list->size(),
                          where, key));
  return std::nullopt;
}

std::vector<std::string> ReadTextList(Object parent, std::string_view key, std::string_view where,
                                      std::size_t most, FieldReader& reader) {
  std::vector<std::string> texts;
  const std::optional<Array> list = ReadList(parent, key, where, most, reader);
  if (!list) return texts;
  for (const Element element : *list) {
    texts.emplace_back(reader.AsText(element, where).value_or(std::string_view()));
  }
  return texts;
}

Taint ReadTaint(Object taint, std::string_view where, FieldReader& reader) {
  return {std::string(reader.ReadText(taint, "key", where)),
          std::string(reader.ReadText(taint, "value", where)),
          std::string(reader.ReadText(taint, "effect", where))};
}

std::optional<dra::Quantity> ReadQuantity(Object parent, std::string_view key,
                                          std::string_view where, FieldReader& reader) {
  const std::optional<Element> found = Find(parent, key);
  if (!found) return std::nullopt;
  std::string_view text;
  int64_t number = 0;
  std::optional<dra::Quantity> quantity;
  if (found->get(text) == simdjson::SUCCESS) {
    quantity = dra::ParseQuantity(text);
  } else if (found->get(number) == simdjson::SUCCESS) {
    quantity = dra::Quantity::Whole(number);
  }
  if (!quantity) {
    reader.Fail(fmt::format("expected a quantity, found {}, in {}.{}", DescribeElement(*found),
                            where, key));
  }
  return quantity;
}

dra::QualifiedName QualifiedNameOf(std::string_view text, std::string_view domain) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(domain), std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::vector<dra::CapacityAmount> ReadAmounts(Object parent, std::string_view key,
                                             std::string_view where, std::string_view domain,
                                             FieldReader& reader) {
  std::vector<dra::CapacityAmount> amounts;
  const std::optional<Object> map = reader.ReadObject(parent, key, where);
  if (!map) return amounts;
  for (const auto field : *map) {
    const std::optional<dra::Quantity> amount = ReadQuantity(*map, field.key, where, reader);
    if (amount) amounts.push_back({QualifiedNameOf(field.key, domain), *amount});
  }
  std::sort(amounts.begin(), amounts.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  return amounts;
}

NodeConstraints ReadNodeSelector(Object selector, std::string_view where, FieldReader& reader) {
  NodeConstraints constraints;
  constraints.has_affinity = true;
  for (const Object term :
       reader.Objects(ReadList(selector, "nodeSelectorTerms", where, kMostTerms, reader), where)) {
    std::vector<NodeTerm> terms;
    if (ReadRequirements(term, "matchExpressions", where, reader, terms) &&
        ReadRequirements(term, "matchFields", where, reader, terms) && !terms.empty()) {
      constraints.affinity.push_back(std::move(terms));
    }
  }
  return constraints;
}

std::vector<std::string> ReadSelectors(Object parent, std::string_view where, FieldReader& reader) {
  std::vector<std::string> selectors;
  const std::optional<Array> list = ReadList(parent, "selectors", where, kMostSelectors, reader);
  if (!list) return selectors;
  for (const Element element : *list) {
    const std::optional<Object> selector = reader.AsObject(element, where);
    const std::optional<Object> cel =
        selector ? reader.ReadObject(*selector, "cel", where) : std::nullopt;
    if (!reader.ok()) break;
    // A selector of a later kind: no text is one that can be read, so that nothing is concluded.
    const std::string_view text = cel ? reader.ReadText(*cel, "expression", where) : "";
    if (text.size() > kMostCelBytes) {
      reader.Fail(fmt::format("expected at most {} bytes of CEL, found {}, in {}", kMostCelBytes,
                              text.size(), where));
    }
    selectors.emplace_back(text);
  }
  return selectors;
}

std::vector<dra::DriverConfig> ReadConfigs(Object parent, std::string_view where,
                                           FieldReader& reader) {
  std::vector<dra::DriverConfig> configs;
  for (const Object config :
       reader.Objects(ReadList(parent, "config", where, kMostConfigs, reader), where)) {
    dra::DriverConfig& read = configs.emplace_back();
    read.requests = ReadTextList(config, "requests", where, dra::kMostResults, reader);
    const std::optional<Object> opaque = reader.ReadObject(config, "opaque", where);
    if (!opaque) continue;
    read.driver = reader.ReadText(*opaque, "driver", where);
    const std::optional<Object> parameters = FindObject(*opaque, "parameters");
    if (parameters && read.driver == dra::kGpuDriver) read.sharing = ReadSharing(*parameters);
  }
  return configs;
}

}  // namespace tranche::wire
