#include "scheduler/wire/json/yaml_to_json.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/wire/json/json.h"

namespace tranche::embedded {
namespace {

constexpr std::size_t kMaxAliasBytes = 4 * 1024 * 1024;
// One level of the JSON is the list of documents.
constexpr std::size_t kMaxYamlDepth = wire::kMaxDepth - 1;
constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

[[noreturn]] void Refuse(const YAML::Mark& mark, const std::string& message) {
  throw YAML::ParserException(mark, message);
}

std::string QuotedJson(std::string_view text) {
  std::string out;
  wire::AppendQuoted(out, text);
  return out;
}

std::size_t CountDigits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

// The pieces of [-+]digits[.digits][e[-+]digits], or nullopt for other text.
struct NumberText {
  bool negative = false;
  std::string_view whole = {}, fraction = {}, exponent = {};  // exponent with its sign
  bool is_float = false;
};

std::optional<NumberText> SplitNumber(std::string_view text) {
  NumberText number;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    number.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  number.whole = text.substr(0, CountDigits(text));
  text.remove_prefix(number.whole.size());
  if (!text.empty() && text.front() == '.') {
    number.is_float = true;
    text.remove_prefix(1);
    number.fraction = text.substr(0, CountDigits(text));
    text.remove_prefix(number.fraction.size());
  }
  if (number.whole.empty() && number.fraction.empty()) return std::nullopt;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    number.is_float = true;
    const std::size_t sign = text.size() > 1 && (text[1] == '-' || text[1] == '+') ? 1 : 0;
    const std::size_t digits = CountDigits(text.substr(1 + sign));
    if (digits == 0) return std::nullopt;
    number.exponent = text.substr(1, sign + digits);
    text.remove_prefix(1 + sign + digits);
  }
  if (!text.empty()) return std::nullopt;
  while (number.whole.size() > 1 && number.whole.front() == '0') number.whole.remove_prefix(1);
  return number;
}

std::string IntegerJson(const YAML::Mark& mark, std::string_view found, const NumberText& number,
                        int base = 10) {
  const std::string_view digits = number.whole;
  const bool negative = number.negative;
  uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const uint64_t lowest = uint64_t{1} << 63U;
  if (read.ec != std::errc() || (negative && value > lowest)) {
    Refuse(mark, fmt::format("expected an integer within 64 bits, found {}", wire::Quoted(found)));
  }
  return fmt::format("{}{}", negative && value != 0 ? "-" : "", value);
}

std::string FloatJson(const YAML::Mark& mark, std::string_view found, const NumberText& number) {
  std::string json = number.negative ? "-" : "";
  json += number.whole.empty() ? "0" : number.whole;
  if (!number.fraction.empty()) json.append(".").append(number.fraction);
  if (!number.exponent.empty()) json.append("e").append(number.exponent);
  if (number.fraction.empty() && number.exponent.empty()) json += ".0";
  double value = 0;
  if (std::from_chars(json.data(), json.data() + json.size(), value).ec != std::errc()) {
    Refuse(mark, fmt::format("expected a number within double, found {}", wire::Quoted(found)));
  }
  return json;
}

bool IsPrefixedInteger(std::string_view text, std::string_view prefix, std::string_view digits) {
  return text.size() > prefix.size() && text.substr(0, prefix.size()) == prefix &&
         text.find_first_not_of(digits, prefix.size()) == std::string_view::npos;
}

// A plain scalar as the core schema types it, and words of truth as kubectl does: it reads
// YAML 1.1.
std::string PlainJson(const YAML::Mark& mark, std::string_view text) {
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return "null";
  if (IsOneOf(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return "true";
  }
  if (IsOneOf(text, {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
    return "false";
  }
  if (IsPrefixedInteger(text, "0x", "0123456789abcdefABCDEF")) {
    return IntegerJson(mark, text, {.whole = text.substr(2)}, 16);
  }
  if (IsPrefixedInteger(text, "0o", "01234567")) {
    return IntegerJson(mark, text, {.whole = text.substr(2)}, 8);
  }
  if (const auto number = SplitNumber(text)) {
    return number->is_float ? FloatJson(mark, text, *number) : IntegerJson(mark, text, *number);
  }
  const bool has_sign = !text.empty() && (text.front() == '-' || text.front() == '+');
  if (IsOneOf(text.substr(has_sign ? 1 : 0), {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) {
    Refuse(mark, fmt::format("expected a finite number, found {}", wire::Quoted(text)));
  }
  return QuotedJson(text);
}

class JsonWriter : public YAML::EventHandler {
 public:
  std::string& out() { return out_; }
  int document() const { return document_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp takes no token off for what can begin no node, as a comma behind a list that is the
    // whole document, and would make documents of it for ever.
    if (document_ > 0 && mark.pos == document_pos_) {
      Refuse(mark, "expected the end of the text or a new document, found neither");
    }
    document_pos_ = mark.pos;
    if (document_++ > 0) out_ += ',';
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckSize(mark);
    if (AtKey()) Refuse(mark, "expected a key, found null");
    WriteScalar("null", anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckSize(mark);
    if (AtKey()) {
      if (value == "<<" && tag == "?") {
        Refuse(mark, "expected keys written out, found the merge key \"<<\"");
      }
      WriteScalar(QuotedJson(value), anchor);
      return;
    }
    WriteScalar(Typed(mark, tag, value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Refuse(mark, "expected an anchor that is complete");
    const auto [begin, size] = found->second;
    alias_bytes_ += size;
    if (alias_bytes_ > kMaxAliasBytes) {
      Refuse(mark,
             fmt::format("expected at most {} bytes from aliases, found more", kMaxAliasBytes));
    }
    if (AtKey() && out_[begin] != '"') Refuse(mark, "expected a text key, found another value");
    BeginValue();
    out_.append(out_, begin, size);
    EndValue();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, '[');
  }
  void OnSequenceEnd() override { Close(']'); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, '{');
  }
  void OnMapEnd() override { Close('}'); }

 private:
  struct Frame {
    bool map = false;
    bool at_key = false;
    bool empty = true;
    YAML::anchor_t anchor = 0;
    std::size_t begin = 0;
  };

  void CheckSize(const YAML::Mark& mark) const {
    if (out_.size() <= wire::kMaxDocumentBytes) return;
    Refuse(mark,
           fmt::format("expected at most {} bytes as JSON, found more", wire::kMaxDocumentBytes));
  }
  bool AtKey() const { return !frames_.empty() && frames_.back().map && frames_.back().at_key; }

  static std::string Typed(const YAML::Mark& mark, const std::string& tag,
                           const std::string& value) {
    if (tag.empty() || tag == "?") return PlainJson(mark, value);
    if (tag == "!" || tag == fmt::format("{}str", kTagPrefix)) return QuotedJson(value);
    for (const std::string_view type : {"int", "float", "bool", "null"}) {
      if (tag == fmt::format("{}{}", kTagPrefix, type)) return PlainJson(mark, value);
    }
    Refuse(mark,
           fmt::format("expected a value of the core schema, found the tag {}", wire::Quoted(tag)));
  }

  // The separator in front of the value or key that comes next.
  void BeginValue() {
    if (frames_.empty()) return;
    Frame& frame = frames_.back();
    if (frame.map && !frame.at_key) {
      out_ += ':';
    } else if (!frame.empty) {
      out_ += ',';
    }
    frame.empty = false;
  }
  void EndValue() {
    if (!frames_.empty() && frames_.back().map) frames_.back().at_key = !frames_.back().at_key;
  }
  void Remember(YAML::anchor_t anchor, std::size_t begin) {
    if (anchor != 0) anchors_[anchor] = {begin, out_.size() - begin};
  }

  void WriteScalar(std::string_view json, YAML::anchor_t anchor) {
    BeginValue();
    const std::size_t begin = out_.size();
    out_ += json;
    Remember(anchor, begin);
    EndValue();
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, char bracket) {
    if (AtKey()) Refuse(mark, "expected a text key, found a list or map");
    const bool known = tag.empty() || tag == "?" || tag == "!" ||
                       tag == fmt::format("{}{}", kTagPrefix, bracket == '{' ? "map" : "seq");
    if (!known) {
      Refuse(mark, fmt::format("expected a list or map, found the tag {}", wire::Quoted(tag)));
    }
    if (frames_.size() >= kMaxYamlDepth) {
      Refuse(mark, fmt::format("expected at most {} levels, found more", kMaxYamlDepth));
    }
    BeginValue();
    frames_.push_back({bracket == '{', bracket == '{', true, anchor, out_.size()});
    out_ += bracket;
  }

  void Close(char bracket) {
    const Frame frame = frames_.back();
    frames_.pop_back();
    out_ += bracket;
    Remember(frame.anchor, frame.begin);
    EndValue();
  }

  std::string out_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, std::pair<std::size_t, std::size_t>> anchors_;
  std::size_t alias_bytes_ = 0;
  int document_ = 0;
  int document_pos_ = 0;  // where the last one began
};

}  // namespace

absl::StatusOr<std::string> YamlToJson(std::string_view yaml) {
  if (yaml.size() > wire::kMaxDocumentBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} bytes, found {}", wire::kMaxDocumentBytes, yaml.size()));
  }
  JsonWriter writer;
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    writer.out() += '[';
    while (parser.HandleNextDocument(writer)) {
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("YAML document {}, line {}, column {}: {}",
                                                  writer.document(), error.mark.line + 1,
                                                  error.mark.column + 1, error.msg));
  }
  writer.out() += ']';
  return std::move(writer.out());
}

}  // namespace tranche::embedded
