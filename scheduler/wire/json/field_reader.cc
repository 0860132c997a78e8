#include "scheduler/wire/json/field_reader.h"

#include <fmt/format.h>

namespace tranche::wire {

std::string DescribeElement(Element element) {
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY:
      return "array";
    case simdjson::dom::element_type::OBJECT:
      return "object";
    case simdjson::dom::element_type::INT64:
      return fmt::format("number {}", element.get_int64().value_unsafe());
    case simdjson::dom::element_type::UINT64:
      return fmt::format("number {}", element.get_uint64().value_unsafe());
    case simdjson::dom::element_type::DOUBLE:
      return fmt::format("number {}", element.get_double().value_unsafe());
    case simdjson::dom::element_type::STRING:
      return "text " + Quoted(element.get_string().value_unsafe());
    case simdjson::dom::element_type::BOOL:
      return element.get_bool().value_unsafe() ? "true" : "false";
    case simdjson::dom::element_type::NULL_VALUE:
      break;
  }
  return "null";
}

void FieldReader::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

template <typename Value>
std::optional<Value> FieldReader::ReadAs(Object parent, std::string_view key,
                                         std::string_view where, std::string_view expected) {
  const std::optional<Element> found = Find(parent, key);
  if (!found) return std::nullopt;
  Value value;
  if (found->get(value) == simdjson::SUCCESS) return value;
  Fail(fmt::format("expected {}, found {}, in {}.{}", expected, DescribeElement(*found), where,
                   key));
  return std::nullopt;
}

std::optional<Object> FieldReader::ReadObject(Object parent, std::string_view key,
                                              std::string_view where) {
  return ReadAs<Object>(parent, key, where, "object");
}

std::optional<Array> FieldReader::ReadArray(Object parent, std::string_view key,
                                            std::string_view where) {
  return ReadAs<Array>(parent, key, where, "array");
}

std::string_view FieldReader::ReadText(Object parent, std::string_view key,
                                       std::string_view where) {
  return ReadAs<std::string_view>(parent, key, where, "text").value_or(std::string_view());
}

std::optional<bool> FieldReader::ReadBool(Object parent, std::string_view key,
                                          std::string_view where) {
  return ReadAs<bool>(parent, key, where, "true or false");
}

std::optional<int64_t> FieldReader::ReadInteger(Object parent, std::string_view key,
                                                std::string_view where, IntegerRange range) {
  const std::optional<Element> found = Find(parent, key);
  if (!found) return std::nullopt;
  int64_t value = 0;
  if (found->get(value) == simdjson::SUCCESS && value >= range.low && value <= range.high) {
    return value;
  }
  Fail(fmt::format("expected whole number from {} to {}, found {}, in {}.{}", range.low, range.high,
                   DescribeElement(*found), where, key));
  return std::nullopt;
}

Labels FieldReader::ReadTexts(Object parent, std::string_view key, std::string_view where) {
  Labels labels;
  const std::optional<Object> all = ReadObject(parent, key, where);
  if (!all) return labels;
  for (const auto field : *all) {
    std::string_view value;
    if (field.value.is_null()) {
      labels.erase(std::string(field.key));
    } else if (field.value.get(value) == simdjson::SUCCESS) {
      labels.insert_or_assign(std::string(field.key), std::string(value));
    } else {
      Fail(fmt::format("expected text, found {}, in {}.{}", DescribeElement(field.value), where,
                       key));
    }
  }
  return labels;
}

ObjectList::Iterator::Iterator(const ObjectList& objects) : objects_(objects) {
  if (!objects.list_) return;
  at_ = objects.list_->begin();
  Read();
}

ObjectList::Iterator& ObjectList::Iterator::operator++() {
  ++*at_;
  Read();
  return *this;
}

void ObjectList::Iterator::Read() {
  object_.reset();
  if (*at_ != objects_.list_->end()) object_ = objects_.reader_.AsObject(**at_, objects_.where_);
}

std::optional<Object> FieldReader::AsObject(Element element, std::string_view where) {
  Object object;
  if (element.get(object) == simdjson::SUCCESS) return object;
  Fail(fmt::format("expected object, found {}, in {}", DescribeElement(element), where));
  return std::nullopt;
}

std::optional<std::string_view> FieldReader::AsText(Element element, std::string_view where) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return text;
  Fail(fmt::format("expected text, found {}, in {}", DescribeElement(element), where));
  return std::nullopt;
}

}  // namespace tranche::wire
