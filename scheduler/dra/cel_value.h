// Values of a CEL expression over a device. A part of cel.cc's workings, apart for its size.
//
// Views: a value lives no longer than the tree, the device and the evaluation it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/dra/quantity.h"
#include "scheduler/dra/semver.h"

namespace tranche::dra {

struct CelValue {
  enum class Kind : uint8_t {
    kError,    // text: about what, note: what
    kUnknown,  // text, note: as above
    kNull,
    kBool,
    kInt,
    kString,
    kQuantity,
    kSemver,
    kNothing,  // optional.none()
    kDevice,
    kAttributes,    // device.attributes
    kCapacities,    // device.capacity
    kAttributesOf,  // of the domain in text
    kCapacitiesOf,
  };
  Kind kind = Kind::kNull;
  bool optional = false;  // the value is in an optional
  bool computed = false;  // kQuantity: by add() or sub()
  int64_t number = 0;     // of kBool, kInt, kQuantity (thousandths)
  std::string_view text;
  std::string_view note;
  Semver version;

  bool IsBool(bool value) const {
    return kind == Kind::kBool && !optional && (number != 0) == value;
  }
  bool failed() const { return kind == Kind::kError || kind == Kind::kUnknown; }
  bool Is(Kind wanted) const { return kind == wanted && !optional; }
};

inline CelValue CelError(std::string_view note, std::string_view text = {}) {
  CelValue value;
  value.kind = CelValue::Kind::kError;
  value.note = note;
  value.text = text;
  return value;
}
inline CelValue CelUnknown(std::string_view note, std::string_view text = {}) {
  CelValue value = CelError(note, text);
  value.kind = CelValue::Kind::kUnknown;
  return value;
}
inline CelValue CelNumber(CelValue::Kind kind, int64_t number) {
  CelValue value;
  value.kind = kind;
  value.number = number;
  return value;
}
inline CelValue CelBool(bool truth) { return CelNumber(CelValue::Kind::kBool, truth ? 1 : 0); }
inline CelValue CelText(CelValue::Kind kind, std::string_view text) {
  CelValue value;
  value.kind = kind;
  value.text = text;
  return value;
}
inline CelValue CelVersion(const Semver& version) {
  CelValue value;
  value.kind = CelValue::Kind::kSemver;
  value.version = version;
  return value;
}

// Equality over all types: values of different types differ, except that a quantity or a version on
// the left makes it an error, as does a computed quantity to the right of another. Order within one
// type only.
CelValue CelEquals(const CelValue& left, const CelValue& right);
// -1, 0, 1 as kInt.
CelValue CelOrder(const CelValue& left, const CelValue& right);

}  // namespace tranche::dra
