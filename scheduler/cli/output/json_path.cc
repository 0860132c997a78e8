#include "scheduler/cli/output/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "scheduler/cli/output/terminal.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Deeper nesting is no answer of a server: whoever sends it wants the stack.
constexpr int kDeepest = 100;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '/' || static_cast<unsigned char>(c) >= 0x80U;
}

// What stands behind a backslash in quotes.
char Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    default:
      return c;
  }
}

// The end of the action that begins at text[0] == '{', past its '}'; npos where there is none.
std::size_t EndOfAction(std::string_view text) {
  char quote = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') {
        ++at;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '}') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

std::string_view Stripped(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool Holds(const std::string& comparison, int order) {
  if (comparison == "==") return order == 0;
  if (comparison == "!=") return order != 0;
  if (comparison == "<") return order < 0;
  if (comparison == "<=") return order <= 0;
  if (comparison == ">") return order > 0;
  return order >= 0;
}

}  // namespace

// Reads a path from left to right.
class JsonPath::Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Step>> All() {
    std::vector<Step> steps;
    if (Peek() == '$' || Peek() == '@') ++at_;
    if (at_ < text_.size() && IsNameByte(Peek())) {
      TRANCHE_ASSIGN_OR_RETURN(auto name, Name());
      steps.push_back(Member(std::move(name)));
    }
    while (at_ < text_.size() && !AtEndOfPath()) {
      TRANCHE_ASSIGN_OR_RETURN(auto step, Next());
      if (step) steps.push_back(std::move(*step));
    }
    if (at_ < text_.size() && depth_ == 0) return Expected("a path");
    return steps;
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Skip(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  void SkipBlanks() {
    while (Peek() == ' ') ++at_;
  }
  // Inside a filter a path ends where a comparison or the bracket begins.
  bool AtEndOfPath() const {
    return depth_ > 0 && std::string_view(" =!<>)").find(Peek()) != std::string_view::npos;
  }
  absl::Status Expected(std::string_view what) const {
    return absl::InvalidArgumentError(
        fmt::format("expected {} at letter {} of {}, found {}", what, at_ + 1, wire::Quoted(text_),
                    at_ < text_.size() ? wire::Quoted(text_.substr(at_)) : std::string("its end")));
  }
  static Step Member(std::string name) {
    Step step;
    step.name = std::move(name);
    return step;
  }

  absl::StatusOr<std::string> Name() {
    std::string name;
    for (; at_ < text_.size(); ++at_) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) {
        name += text_[++at_];  // "nvidia\.com/gpu"
      } else if (IsNameByte(Peek())) {
        name += Peek();
      } else {
        break;
      }
    }
    if (name.empty()) return Expected("a name");
    return name;
  }

  absl::StatusOr<std::string> Quoted() {
    const char quote = Peek();
    std::string text;
    for (++at_; at_ < text_.size() && Peek() != quote; ++at_) {
      text += Peek() == '\\' && at_ + 1 < text_.size() ? Escaped(text_[++at_]) : Peek();
    }
    if (Peek() != quote) return Expected(fmt::format("{} behind the text", quote));
    ++at_;
    return text;
  }

  std::optional<int64_t> Number() {
    int64_t number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return number;
  }

  // nullopt: a dot alone, which is the value itself.
  absl::StatusOr<std::optional<Step>> Next() {
    if (Skip("..")) {
      TRANCHE_ASSIGN_OR_RETURN(auto name, Name());
      Step step = Member(std::move(name));
      step.kind = Step::Kind::kBelow;
      return step;
    }
    if (Skip(".")) {
      if (at_ == text_.size() || Peek() == '[' || AtEndOfPath()) return std::nullopt;
      if (Skip("*")) return OfKind(Step::Kind::kAll);
      TRANCHE_ASSIGN_OR_RETURN(auto name, Name());
      return Member(std::move(name));
    }
    if (Skip("[")) {
      TRANCHE_ASSIGN_OR_RETURN(auto step, Bracket());
      if (!Skip("]")) return Expected("]");
      return step;
    }
    return Expected("one of . .. [");
  }

  static Step OfKind(Step::Kind kind) {
    Step step;
    step.kind = kind;
    return step;
  }

  absl::StatusOr<Step> Bracket() {
    if (Skip("*")) return OfKind(Step::Kind::kAll);
    if (Peek() == '\'' || Peek() == '"') {
      TRANCHE_ASSIGN_OR_RETURN(auto name, Quoted());
      return Member(std::move(name));
    }
    if (Skip("?(")) return Filter();
    Step step = OfKind(Step::Kind::kIndex);
    step.from = Number();
    if (Skip(":")) {
      step.kind = Step::Kind::kSlice;
      step.to = Number();
    } else if (!step.from) {
      return Expected("a number, *, a quoted name or ?(");
    }
    return step;
  }

  absl::StatusOr<Step> Filter() {
    if (depth_ > 0) return Expected("no filter inside a filter");
    Step step = OfKind(Step::Kind::kFilter);
    SkipBlanks();
    if (Peek() != '@') return Expected("@");
    ++depth_;
    TRANCHE_ASSIGN_OR_RETURN(step.of, All());
    --depth_;
    SkipBlanks();
    for (const char* comparison : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!Skip(comparison)) continue;
      step.comparison = comparison;
      SkipBlanks();
      TRANCHE_ASSIGN_OR_RETURN(step.value, Literal());
      SkipBlanks();
      break;
    }
    if (!Skip(")")) return Expected("== != < <= > >= or )");
    return step;
  }

  absl::StatusOr<Json> Literal() {
    if (Peek() == '\'' || Peek() == '"') {
      TRANCHE_ASSIGN_OR_RETURN(auto text, Quoted());
      return Json(std::move(text));
    }
    const std::size_t end = std::min(text_.find_first_of(" )", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    Json value = Json::parse(word, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded() || value.is_structured()) {
      return Expected("a number, true, false, null or a quoted text");
    }
    at_ = end;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;  // 1 inside a filter
};

absl::StatusOr<JsonPath> JsonPath::Parse(std::string_view text) {
  text = Stripped(text);
  if (text.starts_with('{') && text.ends_with('}')) {
    text = Stripped(text.substr(1, text.size() - 2));
  }
  if (text.empty()) {
    return absl::InvalidArgumentError("expected a path such as .name, found nothing");
  }
  JsonPath path;
  TRANCHE_ASSIGN_OR_RETURN(path.steps_, Reader(text).All());
  return path;
}

std::vector<const Json*> JsonPath::Find(const Json& root) const { return Walk(steps_, root); }

std::vector<const Json*> JsonPath::Walk(const std::vector<Step>& steps, const Json& root) {
  std::vector<const Json*> values = {&root};
  for (const Step& step : steps) {
    std::vector<const Json*> next;
    for (const Json* value : values) Take(step, *value, next);
    values = std::move(next);
  }
  return values;
}

void JsonPath::Take(const Step& step, const Json& value, std::vector<const Json*>& found) {
  switch (step.kind) {
    case Step::Kind::kMember:
      if (const auto member = value.find(step.name); value.is_object() && member != value.end()) {
        found.push_back(&*member);
      }
      break;
    case Step::Kind::kAll:
      if (!value.is_structured()) break;
      for (const Json& item : value) found.push_back(&item);
      break;
    case Step::Kind::kIndex:
    case Step::Kind::kSlice:
      if (value.is_array()) TakeRange(step, value, found);
      break;
    case Step::Kind::kBelow:
      TakeBelow(step, value, found);
      break;
    case Step::Kind::kFilter:
      if (!value.is_structured()) break;
      for (const Json& item : value) {
        if (Passes(step, item)) found.push_back(&item);
      }
      break;
  }
}

void JsonPath::TakeRange(const Step& step, const Json& list, std::vector<const Json*>& found) {
  const auto size = static_cast<int64_t>(list.size());
  const auto place = [size](int64_t at) { return at < 0 ? at + size : at; };
  if (step.kind == Step::Kind::kIndex) {
    const int64_t at = place(*step.from);
    if (at >= 0 && at < size) found.push_back(&list[static_cast<std::size_t>(at)]);
    return;
  }
  const int64_t from = std::max<int64_t>(0, place(step.from.value_or(0)));
  const int64_t to = std::min(size, step.to ? place(*step.to) : size);
  for (int64_t at = from; at < to; ++at) found.push_back(&list[static_cast<std::size_t>(at)]);
}

void JsonPath::TakeBelow(const Step& step, const Json& value, std::vector<const Json*>& found) {
  // Members in the order in which they stand, each before what is below it.
  std::vector<std::pair<const Json*, int>> open = {{&value, 0}};
  while (!open.empty()) {
    const auto [at, depth] = open.back();
    open.pop_back();
    if (!at->is_structured() || depth > kDeepest) continue;
    if (at->is_object()) Take({Step::Kind::kMember, step.name, {}, {}, {}, {}, {}}, *at, found);
    for (std::size_t left = at->size(); left > 0; --left) {
      const auto item = std::next(at->begin(), static_cast<std::ptrdiff_t>(left - 1));
      open.emplace_back(&*item, depth + 1);
    }
  }
}

bool JsonPath::Passes(const Step& filter, const Json& value) {
  const std::vector<const Json*> left = Walk(filter.of, value);
  if (left.empty()) return filter.comparison == "!=";
  if (filter.comparison.empty()) return true;
  const Json& found = *left.front();
  const bool alike =
      (found.is_number() && filter.value.is_number()) || found.type() == filter.value.type();
  if (!alike) return filter.comparison == "!=";
  return Holds(filter.comparison, found < filter.value ? -1 : filter.value < found ? 1 : 0);
}

absl::StatusOr<JsonTemplate> JsonTemplate::Parse(std::string_view text) {
  const std::string_view whole = text;
  // The template itself, then the ranges that are open.
  std::vector<std::vector<Part>> open(1);
  const auto add_text = [&open](std::string_view plain) {
    if (!plain.empty()) open.back().push_back({std::string(plain), std::nullopt, std::nullopt});
  };
  while (!text.empty()) {
    const std::size_t brace = std::min(text.find('{'), text.size());
    add_text(text.substr(0, brace));
    text.remove_prefix(brace);
    if (text.empty()) break;
    const std::size_t end = EndOfAction(text);
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError(
          fmt::format("expected }} behind {}, found none", wire::Quoted(text)));
    }
    const std::string_view action = Stripped(text.substr(1, end - 2));
    text.remove_prefix(end);
    if (action == "end") {
      if (open.size() == 1) {
        return absl::InvalidArgumentError("expected {range ...} before {end}, found none");
      }
      std::vector<Part> each = std::move(open.back());
      open.pop_back();
      open.back().back().each = std::move(each);
    } else if (action.starts_with("range ")) {
      TRANCHE_ASSIGN_OR_RETURN(auto path, JsonPath::Parse(action.substr(6)));
      open.back().push_back({"", std::move(path), std::nullopt});
      open.emplace_back();
    } else if (action.size() > 1 && (action.front() == '"' || action.front() == '\'')) {
      std::string plain;
      for (std::size_t at = 1; at + 1 < action.size(); ++at) {
        plain += action[at] == '\\' && at + 2 < action.size() ? Escaped(action[++at]) : action[at];
      }
      add_text(plain);
    } else {
      TRANCHE_ASSIGN_OR_RETURN(auto path, JsonPath::Parse(action));
      open.back().push_back({"", std::move(path), std::nullopt});
    }
  }
  if (open.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("expected {{end}} for each range of {}, found {} missing", wire::Quoted(whole),
                    open.size() - 1));
  }
  JsonTemplate made;
  made.parts_ = std::move(open.front());
  return made;
}

std::string JsonTemplate::Write(const Json& root) const {
  std::string out;
  Append(parts_, root, out);
  return out;
}

void JsonTemplate::Append(const std::vector<Part>& parts, const Json& root, std::string& out) {
  for (const Part& part : parts) {
    if (!part.path) {
      out += part.text;
      continue;
    }
    bool first = true;
    for (const Json* value : part.path->Find(root)) {
      if (part.each) {
        Append(*part.each, *value, out);
      } else {
        out += (first ? "" : " ") + PlainText(*value);
      }
      first = false;
    }
  }
}

std::string PlainText(const Json& value) {
  return Harmless(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
}

}  // namespace tranche
