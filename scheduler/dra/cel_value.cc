#include "scheduler/dra/cel_value.h"

namespace tranche::dra {
namespace {

using Kind = CelValue::Kind;

constexpr std::string_view kNotCompared = "values of these types are not compared";

int Sign(std::strong_ordering order) {
  if (order == std::strong_ordering::equal) return 0;
  return order == std::strong_ordering::less ? -1 : 1;
}

bool IsMap(const CelValue& value) { return value.kind >= Kind::kDevice; }

}  // namespace

CelValue CelEquals(const CelValue& left, const CelValue& right) {
  if (left.optional || right.optional || left.kind == Kind::kNothing ||
      right.kind == Kind::kNothing || IsMap(left) || IsMap(right)) {
    return CelUnknown("equality of optional values or maps");
  }
  if (left.kind != right.kind) {
    // Of these types the value on the left refuses any other but null.
    const bool refuses = left.kind == Kind::kQuantity || left.kind == Kind::kSemver;
    if (refuses && right.kind != Kind::kNull) return CelError(kNotCompared);
    return CelBool(false);
  }
  if (right.computed) return CelError(kNotCompared);
  switch (left.kind) {
    case Kind::kString:
      return CelBool(left.text == right.text);
    case Kind::kSemver:
      return CelBool(Compare(left.version, right.version) == std::strong_ordering::equal);
    default:
      return CelBool(left.number == right.number);
  }
}

CelValue CelOrder(const CelValue& left, const CelValue& right) {
  if (left.optional || right.optional || left.kind != right.kind) return CelError(kNotCompared);
  switch (left.kind) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kQuantity:
      return CelNumber(Kind::kInt, Sign(left.number <=> right.number));
    case Kind::kString:
      return CelNumber(Kind::kInt, Sign(left.text.compare(right.text) <=> 0));
    case Kind::kSemver:
      return CelNumber(Kind::kInt, Sign(Compare(left.version, right.version)));
    default:
      return CelError(kNotCompared);
  }
}

}  // namespace tranche::dra
