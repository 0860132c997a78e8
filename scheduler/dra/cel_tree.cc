#include "scheduler/dra/cel_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "scheduler/dra/cel_lexer.h"
#include "scheduler/dra/quantity.h"
#include "scheduler/dra/semver.h"

namespace tranche::dra {
namespace {

struct FunctionName {
  std::string_view name;
  CelFunction function;
  bool method;
  std::size_t args;  // without the receiver
};

constexpr std::array kFunctions = {
    FunctionName{"quantity", CelFunction::kQuantity, false, 1},
    FunctionName{"isQuantity", CelFunction::kIsQuantity, false, 1},
    FunctionName{"semver", CelFunction::kSemver, false, 1},
    FunctionName{"isSemver", CelFunction::kIsSemver, false, 1},
    FunctionName{"size", CelFunction::kSize, false, 1},
    FunctionName{"size", CelFunction::kSize, true, 0},
    FunctionName{"startsWith", CelFunction::kStartsWith, true, 1},
    FunctionName{"endsWith", CelFunction::kEndsWith, true, 1},
    FunctionName{"contains", CelFunction::kContains, true, 1},
    FunctionName{"matches", CelFunction::kMatches, true, 1},
    FunctionName{"lowerAscii", CelFunction::kLowerAscii, true, 0},
    FunctionName{"upperAscii", CelFunction::kUpperAscii, true, 0},
    FunctionName{"compareTo", CelFunction::kCompareTo, true, 1},
    FunctionName{"isGreaterThan", CelFunction::kIsGreaterThan, true, 1},
    FunctionName{"isLessThan", CelFunction::kIsLessThan, true, 1},
    FunctionName{"add", CelFunction::kQuantityAdd, true, 1},
    FunctionName{"sub", CelFunction::kQuantitySub, true, 1},
    FunctionName{"sign", CelFunction::kSign, false, 1},
    FunctionName{"isInteger", CelFunction::kIsInteger, true, 0},
    FunctionName{"asInteger", CelFunction::kAsInteger, true, 0},
    FunctionName{"major", CelFunction::kMajor, true, 0},
    FunctionName{"minor", CelFunction::kMinor, true, 0},
    FunctionName{"patch", CelFunction::kPatch, true, 0},
    FunctionName{"orValue", CelFunction::kOrValue, true, 1},
    FunctionName{"hasValue", CelFunction::kHasValue, true, 0},
    FunctionName{"value", CelFunction::kValue, true, 0},
};

struct Operator {
  std::string_view sign;
  CelOp op;
};
using Level = std::vector<Operator>;

class CelParser {
 public:
  explicit CelParser(std::string_view text) : lexer_(text) {}

  absl::StatusOr<CelTree> Parse() {
    Advance();
    const int whole = Expression();
    if (status_.ok() && token_.kind != CelToken::Kind::kEnd) Unreadable("more than one expression");
    if (!status_.ok()) return status_;
    tree_.root = whole;
    return std::move(tree_);
  }

 private:
  void Unreadable(std::string_view what) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("{} at byte {}", what, token_.at));
    }
  }

  void Advance() {
    if (status_.ok()) status_ = lexer_.Next(token_);
    if (!status_.ok()) token_ = {};
  }

  bool Take(std::string_view sign) {
    if (!token_.Is(sign)) return false;
    Advance();
    return true;
  }

  void Expect(std::string_view sign) {
    if (!Take(sign)) Unreadable(fmt::format("no {}", sign));
  }

  CelNode& At(int node) { return tree_.nodes[static_cast<std::size_t>(node)]; }

  int Make(CelOp op, std::vector<int> args = {}) {
    CelNode node;
    node.op = op;
    for (const int arg : args) node.depth = std::max(node.depth, At(arg).depth + 1);
    if (node.depth > kMostCelDepth) Unreadable("deeper nesting than 64 levels");
    node.args = std::move(args);
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }

  int MakeUnknown(std::string text) {
    const int node = Make(CelOp::kUnknown);
    At(node).text = std::move(text);
    return node;
  }

  int Expression() {
    if (++depth_ > kMostCelDepth) Unreadable("deeper nesting than 64 levels");
    if (!status_.ok()) return MakeUnknown({});
    const int condition = Chain("||", CelOp::kOr);
    int result = condition;
    if (Take("?")) {
      const int yes = Chain("||", CelOp::kOr);
      Expect(":");
      const int no = Expression();
      result = Make(CelOp::kConditional, {condition, yes, no});
    }
    --depth_;
    return result;
  }

  // Operands of `||`, and within them of `&&`, as one node however many they are.
  int Chain(std::string_view sign, CelOp op) {
    const auto operand = [&] { return op == CelOp::kOr ? Chain("&&", CelOp::kAnd) : Relation(); };
    std::vector<int> operands = {operand()};
    while (Take(sign)) operands.push_back(operand());
    return operands.size() == 1 ? operands[0] : Make(op, std::move(operands));
  }

  int Relation() {
    static const Level kLevel = {{"==", CelOp::kEqual},          {"!=", CelOp::kNotEqual},
                                 {"<=", CelOp::kLessOrEqual},    {"<", CelOp::kLess},
                                 {">=", CelOp::kGreaterOrEqual}, {">", CelOp::kGreater}};
    int left = Sum();
    for (;;) {
      std::optional<CelOp> op = TakeOperator(kLevel);
      if (!op && token_.kind == CelToken::Kind::kName && token_.text == "in") {
        Advance();
        op = CelOp::kIn;
      }
      if (!op) return left;
      const int right = Sum();
      left = Make(*op, {left, right});
    }
  }

  int Sum() {
    static const Level kLevel = {{"+", CelOp::kAdd}, {"-", CelOp::kSubtract}};
    int left = Product();
    while (const std::optional<CelOp> op = TakeOperator(kLevel)) {
      const int right = Product();
      left = Make(*op, {left, right});
    }
    return left;
  }

  int Product() {
    static const Level kLevel = {
        {"*", CelOp::kMultiply}, {"/", CelOp::kDivide}, {"%", CelOp::kModulo}};
    int left = Unary();
    while (const std::optional<CelOp> op = TakeOperator(kLevel)) {
      const int right = Unary();
      left = Make(*op, {left, right});
    }
    return left;
  }

  std::optional<CelOp> TakeOperator(const Level& level) {
    for (const Operator& each : level) {
      if (Take(each.sign)) return each.op;
    }
    return std::nullopt;
  }

  int Unary() {
    std::vector<CelOp> signs;
    while (token_.Is("!") || token_.Is("-")) {
      signs.push_back(token_.Is("!") ? CelOp::kNot : CelOp::kNegate);
      Advance();
    }
    int operand = Member();
    for (; !signs.empty() && status_.ok(); signs.pop_back()) {
      operand = Make(signs.back(), {operand});
    }
    return operand;
  }

  int Member() {
    int node = Primary();
    while (status_.ok()) {
      if (Take(".")) {
        const bool optional = Take("?");
        const std::string name = TakeName();
        if (!optional && Take("(")) {
          node = Call(name, node);
        } else {
          const int operand = node;
          node = Make(CelOp::kSelect, {operand});
          At(node).text = name;
          At(node).optional = optional;
        }
      } else if (Take("[")) {
        const bool optional = Take("?");
        const int index = Expression();
        Expect("]");
        node = Make(CelOp::kIndex, {node, index});
        At(node).optional = optional;
      } else {
        break;
      }
    }
    return node;
  }

  std::string TakeName() {
    if (token_.kind != CelToken::Kind::kName) Unreadable("no name");
    std::string name = token_.text;
    Advance();
    return name;
  }

  int Primary() {
    const CelToken token = token_;
    switch (token.kind) {
      case CelToken::Kind::kInt: {
        Advance();
        const int node = Make(CelOp::kInt);
        At(node).number = token.number;
        return node;
      }
      case CelToken::Kind::kString: {
        Advance();
        const int node = Make(CelOp::kString);
        At(node).text = token.text;
        return node;
      }
      case CelToken::Kind::kOtherLiteral:
        Advance();
        return MakeUnknown("a literal that is no whole number or text");
      case CelToken::Kind::kName:
        Advance();
        return Named(token.text);
      case CelToken::Kind::kSign:
        if (Take("(")) {
          const int inner = Expression();
          Expect(")");
          return inner;
        }
        if (Take("[")) return Make(CelOp::kList, List("]"));
        break;
      case CelToken::Kind::kEnd:
        break;
    }
    Unreadable("no operand");
    return MakeUnknown({});
  }

  int Named(const std::string& name) {
    if (name == "true" || name == "false") {
      const int node = Make(CelOp::kBool);
      At(node).number = name == "true" ? 1 : 0;
      return node;
    }
    if (name == "null") return Make(CelOp::kNull);
    if (name == "device") return Make(CelOp::kDevice);
    if (Take("(")) return Call(name, std::nullopt);
    return MakeUnknown(name);
  }

  // Up to and with `end`.
  std::vector<int> List(std::string_view end) {
    std::vector<int> entries;
    if (Take(end)) return entries;
    do {
      entries.push_back(Expression());
    } while (status_.ok() && Take(",") && !token_.Is(end));
    Expect(end);
    return entries;
  }

  // Behind the opening parenthesis.
  int Call(const std::string& name, std::optional<int> receiver) {
    std::vector<int> args = List(")");
    if (!status_.ok()) return MakeUnknown(name);
    if (name == "has" && !receiver && args.size() == 1 && At(args[0]).op == CelOp::kSelect) {
      return Make(CelOp::kHas, std::move(args));
    }
    for (const FunctionName& known : kFunctions) {
      if (known.name != name || known.method != receiver.has_value()) continue;
      if (known.args != args.size()) continue;
      if (receiver) args.insert(args.begin(), *receiver);
      return Known(known.function, std::move(args));
    }
    return MakeUnknown(name + "()");
  }

  // Calls of constants are made here, once.
  int Known(CelFunction function, std::vector<int> args) {
    const CelNode& last = At(args.back());
    const std::string text = last.op == CelOp::kString ? last.text : std::string();
    const bool constant = last.op == CelOp::kString;
    if (function == CelFunction::kMatches) {
      std::optional<Pattern> pattern = constant ? Pattern::Compile(text) : std::nullopt;
      if (!pattern) return MakeUnknown(fmt::format("matches('{}')", text));
      tree_.patterns.push_back(*std::move(pattern));
    }
    if (function == CelFunction::kQuantity && constant) {
      if (const std::optional<Quantity> quantity = ParseQuantity(text)) {
        const int node = Make(CelOp::kQuantity);
        At(node).number = quantity->milli();
        return node;
      }
    }
    if (function == CelFunction::kSemver && constant && ParseSemver(text)) {
      const int node = Make(CelOp::kSemver);
      At(node).text = text;
      return node;
    }
    const int node = Make(CelOp::kCall, std::move(args));
    At(node).function = function;
    if (function == CelFunction::kMatches) {
      At(node).number = static_cast<int64_t>(tree_.patterns.size()) - 1;
    }
    return node;
  }

  CelLexer lexer_;
  CelToken token_;
  CelTree tree_;
  absl::Status status_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<CelTree> ParseCel(std::string_view text) {
  if (text.size() > kMostCelBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} bytes, found {}", kMostCelBytes, text.size()));
  }
  return CelParser(text).Parse();
}

}  // namespace tranche::dra
