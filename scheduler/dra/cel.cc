#include "scheduler/dra/cel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "scheduler/dra/cel_value.h"

namespace tranche::dra {
namespace {

using Kind = CelValue::Kind;

constexpr std::size_t kMostExpressions = 10'000;
constexpr std::string_view kNoOverload = "an operation its values do not have";

class Evaluator {
 public:
  Evaluator(const CelTree& tree, const Device& device, std::string_view driver)
      : tree_(tree), device_(device), driver_(driver) {}

  CelValue Evaluate() {
    CelValue value = Value(tree_.root);
    return end_.failed() ? end_ : value;
  }

 private:
  const CelNode& At(int node) const { return tree_.nodes[static_cast<std::size_t>(node)]; }

  CelValue Value(int index) {
    const CelNode& node = At(index);
    switch (node.op) {
      case CelOp::kUnknown:
        return CelUnknown("not supported", node.text);
      case CelOp::kNull:
        return {};
      case CelOp::kBool:
        return CelNumber(Kind::kBool, node.number);
      case CelOp::kInt:
        return CelNumber(Kind::kInt, node.number);
      case CelOp::kString:
        return CelText(Kind::kString, node.text);
      case CelOp::kQuantity:
        return CelNumber(Kind::kQuantity, node.number);
      case CelOp::kSemver:
        return CelVersion(*ParseSemver(node.text));
      case CelOp::kDevice:
        return CelText(Kind::kDevice, {});
      case CelOp::kList:
        return CelUnknown("not supported", "a list other than behind `in`");
      case CelOp::kSelect:
      case CelOp::kIndex:
      case CelOp::kHas:
        return Selected(node);
      case CelOp::kAnd:
      case CelOp::kOr:
        return Joined(node, node.op == CelOp::kOr);
      case CelOp::kConditional:
        return Conditional(node);
      case CelOp::kIn:
        return In(node);
      default:
        return Strict(node);
    }
  }

  // A value that decides wins, then what is unknown, then an error.
  CelValue Joined(const CelNode& node, bool decisive) {
    CelValue result = CelBool(!decisive);
    for (const int arg : node.args) {
      CelValue value = Value(arg);
      if (value.IsBool(decisive)) return value;
      if (!value.failed() && !value.Is(Kind::kBool)) value = CelError("no truth value");
      if (value.failed() && result.kind != Kind::kUnknown &&
          (result.kind != Kind::kError || value.kind == Kind::kUnknown)) {
        result = value;
      }
    }
    return result;
  }

  CelValue Conditional(const CelNode& node) {
    const CelValue condition = Value(node.args[0]);
    if (condition.failed()) return condition;
    if (!condition.Is(Kind::kBool)) return CelError("no truth value before ?");
    return Value(node.args[condition.number != 0 ? 1 : 2]);
  }

  CelValue In(const CelNode& node) {
    const CelNode& list = At(node.args[1]);
    // Nothing is in an empty list, whatever it is.
    if (list.op == CelOp::kList && list.args.empty()) return CelBool(false);
    const CelValue wanted = Value(node.args[0]);
    if (list.op != CelOp::kList) return InMap(wanted, Value(node.args[1]));
    CelValue found = CelBool(false);
    CelValue failed = wanted;
    for (const int entry : list.args) {
      const CelValue value = Value(entry);
      if (value.failed() && failed.kind != Kind::kError) failed = value;
      if (failed.failed()) continue;
      const CelValue equal = CelEquals(wanted, value);
      // What cannot be compared is not equal.
      const bool counts = equal.kind == Kind::kUnknown || equal.IsBool(true);
      if (counts && !found.IsBool(true)) found = equal;
    }
    if (failed.failed()) return failed;
    // Lists of constants alone are looked up by a hash. Versions have none, and who asks for it
    // ends the whole evaluation.
    const bool constant = std::ranges::all_of(list.args, [this](int e) { return IsConstant(e); });
    if (constant && wanted.Is(Kind::kSemver)) {
      return end_ = CelError("a version in a list of constants");
    }
    return found;
  }

  bool IsConstant(int index) const {
    const CelNode& node = At(index);
    if (node.op == CelOp::kNegate) return At(node.args[0]).op == CelOp::kInt;
    return node.op == CelOp::kBool || node.op == CelOp::kInt || node.op == CelOp::kString;
  }

  CelValue InMap(const CelValue& wanted, const CelValue& map) {
    if (wanted.kind == Kind::kError || map.kind == Kind::kError) {
      return wanted.kind == Kind::kError ? wanted : map;
    }
    if (wanted.failed() || map.failed()) return wanted.failed() ? wanted : map;
    if (!wanted.Is(Kind::kString) || map.optional) return CelError(kNoOverload);
    switch (map.kind) {
      case Kind::kAttributes:
        return CelBool(std::ranges::any_of(device_.attributes, [&](const Attribute& attribute) {
          return attribute.name.domain == wanted.text;
        }));
      case Kind::kCapacities:
        return CelBool(std::ranges::any_of(device_.capacities, [&](const Capacity& capacity) {
          return capacity.name.domain == wanted.text;
        }));
      case Kind::kAttributesOf:
        return CelBool(FindAttribute(device_, map.text, wanted.text) != nullptr);
      case Kind::kCapacitiesOf:
        return CelBool(FindCapacity(device_, map.text, wanted.text) != nullptr);
      default:
        return CelError(kNoOverload);
    }
  }

  // `.name`, `['name']`, their optional forms, and has().
  CelValue Selected(const CelNode& node) {
    if (node.op == CelOp::kHas) {
      const CelNode& select = At(node.args[0]);
      const CelValue owner = Value(select.args[0]);
      if (owner.failed()) return owner;
      const CelValue key = CelText(Kind::kString, select.text);
      if (owner.kind == Kind::kDevice) return CelBool(!Member(owner, select.text).failed());
      return InMap(key, owner);
    }
    CelValue owner = Value(node.args[0]);
    std::string_view name = node.text;
    if (node.op == CelOp::kIndex) {
      const CelValue key = Value(node.args[1]);
      if (owner.kind == Kind::kError) return owner;
      if (key.failed()) return key;
      if (owner.failed()) return owner;
      if (!key.Is(Kind::kString)) return CelError("a key that is no text");
      name = key.text;
    }
    if (owner.failed() || owner.kind == Kind::kNothing) return owner;
    const bool optional = node.optional || owner.optional;
    owner.optional = false;
    if (optional && IsAbsent(owner, name)) return CelText(Kind::kNothing, {});
    CelValue value = Member(owner, name);
    if (!value.failed()) value.optional = optional;
    return value;
  }

  bool IsAbsent(const CelValue& owner, std::string_view name) const {
    if (owner.kind == Kind::kAttributesOf) {
      return FindAttribute(device_, owner.text, name) == nullptr;
    }
    return owner.kind == Kind::kCapacitiesOf && FindCapacity(device_, owner.text, name) == nullptr;
  }

  CelValue Member(const CelValue& owner, std::string_view name) const {
    switch (owner.kind) {
      case Kind::kDevice:
        if (name == "driver") return CelText(Kind::kString, driver_);
        if (name == "attributes") return CelText(Kind::kAttributes, {});
        if (name == "capacity") return CelText(Kind::kCapacities, {});
        if (name == "allowMultipleAllocations") return CelBool(device_.shareable);
        return CelUnknown("not supported: device member", name);
      case Kind::kAttributes:
        return CelText(Kind::kAttributesOf, name);
      case Kind::kCapacities:
        return CelText(Kind::kCapacitiesOf, name);
      case Kind::kAttributesOf: {
        const Attribute* attribute = FindAttribute(device_, owner.text, name);
        return attribute == nullptr ? CelError("no attribute", name) : OfAttribute(*attribute);
      }
      case Kind::kCapacitiesOf: {
        const Capacity* capacity = FindCapacity(device_, owner.text, name);
        if (capacity == nullptr) return CelError("no capacity", name);
        return CelNumber(Kind::kQuantity, capacity->value.milli());
      }
      default:
        return CelError("a member of something that has none:", name);
    }
  }

  static CelValue OfAttribute(const Attribute& attribute) {
    if (const bool* truth = std::get_if<bool>(&attribute.value)) return CelBool(*truth);
    if (const int64_t* number = std::get_if<int64_t>(&attribute.value)) {
      return CelNumber(Kind::kInt, *number);
    }
    if (const std::string* text = std::get_if<std::string>(&attribute.value)) {
      return CelText(Kind::kString, *text);
    }
    if (const VersionText* version = std::get_if<VersionText>(&attribute.value)) {
      const std::optional<Semver> parsed = ParseSemver(version->text);
      return parsed ? CelVersion(*parsed)
                    : CelError("no version in attribute", attribute.name.name);
    }
    return CelUnknown("not supported: a list in attribute", attribute.name.name);
  }

  // Operations that fail with any of their operands.
  CelValue Strict(const CelNode& node) {
    CelValue args[2];
    CelValue failed;
    // All that are called here have one or two operands.
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i == 1 && IsLazy(node)) break;
      args[i] = Value(node.args[i]);
      if (args[i].kind == Kind::kError) return args[i];
      if (args[i].failed()) failed = args[i];
    }
    if (failed.failed()) return failed;
    switch (node.op) {
      case CelOp::kNot:
        return args[0].Is(Kind::kBool) ? CelBool(args[0].number == 0) : CelError(kNoOverload);
      case CelOp::kNegate:
        return Arithmetic(CelOp::kSubtract, CelNumber(Kind::kInt, 0), args[0]);
      case CelOp::kEqual:
        return CelEquals(args[0], args[1]);
      case CelOp::kNotEqual: {
        const CelValue equal = CelEquals(args[0], args[1]);
        // What cannot be compared is not equal.
        return equal.kind == Kind::kUnknown ? equal : CelBool(!equal.IsBool(true));
      }
      case CelOp::kLess:
      case CelOp::kLessOrEqual:
      case CelOp::kGreater:
      case CelOp::kGreaterOrEqual:
        return Ordered(node.op, args[0], args[1]);
      case CelOp::kCall:
        return Call(node, args[0], args[1]);
      default:
        return Arithmetic(node.op, args[0], args[1]);
    }
  }

  static bool IsLazy(const CelNode& node) {
    return node.op == CelOp::kCall &&
           (node.function == CelFunction::kOrValue || node.function == CelFunction::kMatches);
  }

  static CelValue Ordered(CelOp op, const CelValue& left, const CelValue& right) {
    // Versions and quantities are ordered by their methods alone.
    if (left.kind == Kind::kQuantity || left.kind == Kind::kSemver) return CelError(kNoOverload);
    const CelValue order = CelOrder(left, right);
    if (order.failed()) return order;
    switch (op) {
      case CelOp::kLess:
        return CelBool(order.number < 0);
      case CelOp::kLessOrEqual:
        return CelBool(order.number <= 0);
      case CelOp::kGreater:
        return CelBool(order.number > 0);
      default:
        return CelBool(order.number >= 0);
    }
  }

  static CelValue Arithmetic(CelOp op, const CelValue& left, const CelValue& right) {
    if (left.Is(Kind::kString) && right.Is(Kind::kString) && op == CelOp::kAdd) {
      return CelUnknown("not supported", "joined texts");
    }
    if (!left.Is(Kind::kInt) || !right.Is(Kind::kInt)) return CelError(kNoOverload);
    int64_t result = 0;
    bool fails = false;
    switch (op) {
      case CelOp::kAdd:
        fails = __builtin_add_overflow(left.number, right.number, &result);
        break;
      case CelOp::kSubtract:
        fails = __builtin_sub_overflow(left.number, right.number, &result);
        break;
      case CelOp::kMultiply:
        fails = __builtin_mul_overflow(left.number, right.number, &result);
        break;
      default:
        fails = right.number == 0 || (left.number == INT64_MIN && right.number == -1);
        if (!fails) {
          result = op == CelOp::kDivide ? left.number / right.number : left.number % right.number;
        }
        break;
    }
    return fails ? CelError("a number beyond 64 bits or a division by zero")
                 : CelNumber(Kind::kInt, result);
  }

  CelValue Call(const CelNode& node, const CelValue& self, const CelValue& arg) {
    switch (node.function) {
      case CelFunction::kOrValue:
        if (self.kind == Kind::kNothing) return Value(node.args[1]);
        [[fallthrough]];
      case CelFunction::kValue: {
        if (self.kind == Kind::kNothing) return CelError("the value of an absent optional");
        if (!self.optional) return CelError(kNoOverload);
        CelValue inner = self;
        inner.optional = false;
        return inner;
      }
      case CelFunction::kHasValue:
        if (self.kind != Kind::kNothing && !self.optional) return CelError(kNoOverload);
        return CelBool(self.optional);
      case CelFunction::kCompareTo:
      case CelFunction::kIsGreaterThan:
      case CelFunction::kIsLessThan:
        return Compared(node.function, self, arg);
      default:
        break;
    }
    if (self.Is(Kind::kQuantity)) return OfQuantity(node.function, self, arg);
    if (self.Is(Kind::kSemver)) return OfSemver(node.function, self);
    if (self.Is(Kind::kString)) return OfString(node, self, arg);
    if (self.kind >= Kind::kDevice) return CelUnknown("not supported: a function of a map");
    return CelError(kNoOverload);
  }

  static CelValue Compared(CelFunction function, const CelValue& self, const CelValue& arg) {
    if (!self.Is(Kind::kQuantity) && !self.Is(Kind::kSemver)) return CelError(kNoOverload);
    const CelValue order = CelOrder(self, arg);
    if (order.failed() || function == CelFunction::kCompareTo) return order;
    return CelBool(function == CelFunction::kIsGreaterThan ? order.number > 0 : order.number < 0);
  }

  static CelValue OfQuantity(CelFunction function, const CelValue& self, const CelValue& arg) {
    const Quantity value = Quantity::Milli(self.number);
    switch (function) {
      case CelFunction::kSign:
        return CelNumber(Kind::kInt, (self.number > 0) - (self.number < 0));
      case CelFunction::kIsInteger:
        return CelBool(value.is_whole());
      case CelFunction::kAsInteger:
        return value.is_whole() ? CelNumber(Kind::kInt, value.whole())
                                : CelError("a quantity that is not whole");
      case CelFunction::kQuantityAdd:
      case CelFunction::kQuantitySub: {
        if (!arg.Is(Kind::kQuantity) && !arg.Is(Kind::kInt)) return CelError(kNoOverload);
        const Quantity other =
            arg.kind == Kind::kInt ? Quantity::Whole(arg.number) : Quantity::Milli(arg.number);
        const Quantity sum = function == CelFunction::kQuantityAdd ? value + other : value - other;
        CelValue computed = CelNumber(Kind::kQuantity, sum.milli());
        computed.computed = true;
        return computed;
      }
      default:
        return CelError(kNoOverload);
    }
  }

  static CelValue OfSemver(CelFunction function, const CelValue& self) {
    switch (function) {
      case CelFunction::kMajor:
        return CelNumber(Kind::kInt, self.version.major);
      case CelFunction::kMinor:
        return CelNumber(Kind::kInt, self.version.minor);
      case CelFunction::kPatch:
        return CelNumber(Kind::kInt, self.version.patch);
      default:
        return CelError(kNoOverload);
    }
  }

  CelValue OfString(const CelNode& node, const CelValue& self, const CelValue& arg) {
    switch (node.function) {
      case CelFunction::kStartsWith:
      case CelFunction::kEndsWith:
      case CelFunction::kContains:
        if (!arg.Is(Kind::kString)) return CelError(kNoOverload);
        if (node.function == CelFunction::kStartsWith) {
          return CelBool(self.text.starts_with(arg.text));
        }
        if (node.function == CelFunction::kEndsWith) return CelBool(self.text.ends_with(arg.text));
        return CelBool(self.text.find(arg.text) != std::string_view::npos);
      case CelFunction::kMatches: {
        const Pattern& pattern = tree_.patterns[static_cast<std::size_t>(node.number)];
        const std::optional<bool> matches = pattern.Matches(self.text);
        return matches ? CelBool(*matches) : CelUnknown("not supported: matches() of", self.text);
      }
      case CelFunction::kSize:
        // Code points: bytes that do not continue one.
        return CelNumber(Kind::kInt, std::ranges::count_if(self.text, [](char c) {
                           return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
                         }));
      case CelFunction::kLowerAscii:
        return CelText(Kind::kString, Cased(self.text, 'A', 'a'));
      case CelFunction::kUpperAscii:
        return CelText(Kind::kString, Cased(self.text, 'a', 'A'));
      case CelFunction::kQuantity:
      case CelFunction::kIsQuantity: {
        const std::optional<Quantity> value = ParseQuantity(self.text);
        // Text that we cannot hold may still be a quantity.
        if (!value) return CelUnknown("not held as a quantity:", self.text);
        if (node.function == CelFunction::kIsQuantity) return CelBool(true);
        return CelNumber(Kind::kQuantity, value->milli());
      }
      case CelFunction::kSemver:
      case CelFunction::kIsSemver: {
        const std::optional<Semver> value = ParseSemver(self.text);
        if (node.function == CelFunction::kIsSemver) return CelBool(value.has_value());
        return value ? CelVersion(*value) : CelError("no version:", self.text);
      }
      default:
        return CelError(kNoOverload);
    }
  }

  std::string_view Cased(std::string_view text, char from, char to) {
    std::string& cased = texts_.emplace_back(text);
    for (char& c : cased) {
      if (c >= from && c < from + 26) c = static_cast<char>(c - from + to);
    }
    return cased;
  }

  const CelTree& tree_;
  const Device& device_;
  std::string_view driver_;
  std::deque<std::string> texts_;  // made on the way; their places stay
  CelValue end_;                   // an error that nothing absorbs
};

}  // namespace

Expression Expression::Compile(std::string_view text) {
  Expression expression;
  absl::StatusOr<CelTree> tree = ParseCel(text);
  if (tree.ok()) {
    expression.tree_ = *std::move(tree);
  } else {
    expression.unreadable_ = std::string(tree.status().message());
  }
  return expression;
}

Verdict Expression::Matches(const Device& device, std::string_view driver) const {
  if (!unreadable_.empty()) return {Match::kUnknown, unreadable_};
  Evaluator evaluator(tree_, device, driver);
  const CelValue value = evaluator.Evaluate();
  if (value.failed()) {
    const Match match = value.kind == Kind::kError ? Match::kError : Match::kUnknown;
    return {match, fmt::format("{}{}{}", value.note, value.text.empty() ? "" : " ", value.text)};
  }
  if (!value.Is(Kind::kBool)) return {Match::kError, "the value is neither true nor false"};
  return {value.number != 0 ? Match::kYes : Match::kNo, {}};
}

const Expression& Expressions::Get(const std::string& text) {
  const auto found = compiled_.find(text);
  if (found != compiled_.end()) return found->second;
  if (compiled_.size() == kMostExpressions) compiled_.clear();
  return compiled_.emplace(text, Expression::Compile(text)).first->second;
}

}  // namespace tranche::dra
