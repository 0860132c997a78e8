// A JSON value that many keep: it never changes, copies share it, and its text is made once, when
// somebody asks for it.
//
// Stands wherever a JSON value is read. Thread rule: one thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "test/sim/base/flat_map.h"

namespace tranche::sim {

using Json = nlohmann::basic_json<FlatMap>;

// The label that says which GPUPool a node is in, in worlds that have pools.
inline constexpr const char* kPoolLabel = "example.com/pool";

class Document {
 public:
  Document() = default;  // null
  Document(Json value) {
    if (!value.is_null()) body_ = std::make_shared<const Body>(Body{std::move(value), {}});
  }
  Document(Json::initializer_list_t members) : Document(Json(members)) {}

  const Json& json() const {
    static const Json kNull;
    return body_ == nullptr ? kNull : body_->value;
  }
  operator const Json&() const { return json(); }
  bool is_null() const { return body_ == nullptr; }
  bool is_object() const { return json().is_object(); }
  // Requires the member.
  const Json& operator[](const char* member) const { return json().at(member); }
  const std::string& text() const {
    static const std::string kNull = "null";
    if (body_ == nullptr) return kNull;
    if (body_->text.empty()) body_->text = body_->value.dump();
    return body_->text;
  }

 private:
  struct Body {
    Json value;
    mutable std::string text;
  };
  std::shared_ptr<const Body> body_;  // null: null
};

}  // namespace tranche::sim
