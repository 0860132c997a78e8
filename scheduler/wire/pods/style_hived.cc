// HiveD's annotation: a YAML document that asks for whole GPUs and names the pod's group.
//
// Of YAML only what HiveD's own documents use is read: block maps and one list of maps, plain and
// quoted scalars on one line, comments. Anything else is refused with the line.
// Source: request-dialects section 13 (microsoft/hivedscheduler: pkg/api/types.go).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMaxBytes = 16 * 1024;
constexpr std::size_t kMaxGroupName = 247;  // behind "hived/", as long as a gang's name may be
constexpr int64_t kMaxPods = 10'000;

// "  - key: value"
struct Line {
  std::size_t dash = 0;    // where the dash stands
  bool is_item = false;    // has one
  std::size_t indent = 0;  // where the key stands
  std::string_view key;
  std::string_view value;  // without quotes; empty: none, or null
  bool is_scalar = false;  // has a value on this line, null included
  std::string_view whole;
};

struct Spec {
  std::optional<int64_t> cards;
  std::string_view card_type;
  std::string_view group;
  int64_t pods = 0;                   // of all members
  std::vector<int64_t> member_cards;  // of a pod of each member
};

Refusal BadLine(std::string_view expected, std::string_view line) {
  return BadAnnotation(PodKey::kHivedSpec, expected, Trimmed(line));
}

// Takes quotes, a comment and null away; false where the scalar needs a larger part of YAML.
bool ReadScalar(Line& line) {
  std::string_view text = line.value;
  const char quote = text.empty() ? ' ' : text.front();
  if (quote == '"' || quote == '\'') {
    const std::size_t end = text.find(quote, 1);
    if (end == std::string_view::npos || text.find('\\') != std::string_view::npos) return false;
    const std::string_view rest = Trimmed(text.substr(end + 1));
    line.value = text.substr(1, end - 1);
    line.is_scalar = true;
    return rest.empty() || (rest.starts_with('#') && text[end + 1] != '#');
  }
  const std::size_t comment = text.starts_with('#') ? 0 : text.find(" #");
  text = Trimmed(text.substr(0, comment));
  line.is_scalar = !text.empty();
  line.value = text == "null" || text == "~" ? std::string_view() : text;
  constexpr std::string_view kIndicators = "[]{}&*!|>%@`\"',?:-";
  const bool special = kIndicators.find(quote) != std::string_view::npos;
  // A negative number is the one plain scalar that begins with an indicator.
  const bool negative = text.size() > 1 && quote == '-' && text[1] >= '0' && text[1] <= '9';
  return (!special || negative) && text.find(": ") == std::string_view::npos &&
         !text.ends_with(':');
}

std::optional<Line> ReadLine(std::string_view whole) {
  Line line;
  line.whole = whole;
  line.indent = whole.find_first_not_of(' ');
  if (whole[line.indent] == '-') {
    line.is_item = true;
    line.dash = line.indent;
    line.indent = whole.find_first_not_of(' ', line.dash + 1);
    if (line.indent == std::string_view::npos || line.indent == line.dash + 1) return std::nullopt;
  }
  std::string_view text = whole.substr(line.indent);
  const std::optional<std::string_view> key = TakeUntil(text, ':');
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (!key || key->empty() || !std::all_of(key->begin(), key->end(), is_letter)) {
    return std::nullopt;
  }
  line.key = *key;
  if (!text.empty() && text.front() != ' ') return std::nullopt;
  line.value = Trimmed(text);
  return ReadScalar(line) ? std::optional(line) : std::nullopt;
}

std::optional<Refusal> ReadLines(std::string_view text, std::vector<Line>& lines) {
  while (!text.empty()) {
    const std::optional<std::string_view> before = TakeUntil(text, '\n');
    std::string_view whole = before.value_or(text);
    if (!before) text = {};
    if (whole.ends_with('\r')) whole.remove_suffix(1);
    const std::string_view trimmed = Trimmed(whole);
    if (trimmed.empty() || trimmed.front() == '#') continue;
    const std::optional<Line> line =
        whole.find('\t') == std::string_view::npos ? ReadLine(whole) : std::nullopt;
    if (!line) return BadLine("a YAML line such as \"leafCellNumber: 1\"", whole);
    lines.push_back(*line);
  }
  return std::nullopt;
}

// Walks the lines of one document.
class SpecReader {
 public:
  explicit SpecReader(const std::vector<Line>& lines) : lines_(lines) {}

  std::optional<Refusal> Read(Spec& spec) {
    const std::size_t indent = lines_.empty() ? 0 : lines_[0].indent;
    std::vector<std::string_view> seen;
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_++];
      if (line.is_item || line.indent != indent) return Misplaced(line);
      if (auto refusal = NoteKey(line, seen)) return refusal;
      if (line.key == "affinityGroup") {
        if (!line.is_scalar) {
          if (auto refusal = ReadGroup(indent, spec)) return refusal;
        } else if (!line.value.empty()) {
          return BadLine("a map under affinityGroup", line.whole);
        }
        continue;
      }
      if (auto refusal = ReadMember(line, spec)) return refusal;
    }
    return std::nullopt;
  }

 private:
  static Refusal Misplaced(const Line& line) {
    return BadLine("lines of one map at one indentation", line.whole);
  }

  static std::optional<Refusal> NoteKey(const Line& line, std::vector<std::string_view>& seen) {
    if (std::find(seen.begin(), seen.end(), line.key) != seen.end()) {
      return BadLine("every key once", line.whole);
    }
    seen.push_back(line.key);
    return std::nullopt;
  }

  static std::optional<Refusal> ReadNumber(const Line& line, int64_t& number) {
    const std::optional<int64_t> value = ParsePositive(line.value);
    if (!value) return BadLine("whole number above 0", line.whole);
    number = *value;
    return std::nullopt;
  }

  // What HiveD knows beside these matters to its own cells only.
  static std::optional<Refusal> ReadMember(const Line& line, Spec& spec) {
    static constexpr std::array<std::string_view, 6> kOthers = {
        "virtualCluster",       "priority",
        "pinnedCellId",         "gangReleaseEnable",
        "lazyPreemptionEnable", "ignoreK8sSuggestedNodes"};
    if (line.key == "leafCellNumber") return ReadNumber(line, spec.cards.emplace());
    if (line.key == "leafCellType") {
      spec.card_type = line.value;
      return std::nullopt;
    }
    const bool known = std::find(kOthers.begin(), kOthers.end(), line.key) != kOthers.end();
    if (known && line.is_scalar) return std::nullopt;
    return BadLine("a field of HiveD's pod scheduling spec with its value", line.whole);
  }

  std::optional<Refusal> ReadGroup(std::size_t outer, Spec& spec) {
    if (at_ == lines_.size() || lines_[at_].indent <= outer) return std::nullopt;
    const std::size_t indent = lines_[at_].indent;
    std::vector<std::string_view> seen;
    while (at_ < lines_.size() && lines_[at_].indent > outer) {
      const Line& line = lines_[at_++];
      if (line.is_item || line.indent != indent) return Misplaced(line);
      if (auto refusal = NoteKey(line, seen)) return refusal;
      if (line.key == "name") {
        spec.group = line.value;
      } else if (line.key == "members" && !line.is_scalar) {
        if (auto refusal = ReadMembers(indent, spec)) return refusal;
      } else {
        return BadLine("name or members of affinityGroup", line.whole);
      }
    }
    return std::nullopt;
  }

  std::optional<Refusal> ReadMembers(std::size_t outer, Spec& spec) {
    if (at_ == lines_.size() || !lines_[at_].is_item || lines_[at_].dash < outer) {
      return std::nullopt;
    }
    const std::size_t dash = lines_[at_].dash;
    while (at_ < lines_.size() && lines_[at_].is_item) {
      const Line& first = lines_[at_];
      if (first.dash != dash) return Misplaced(first);
      int64_t pods = 0, cards = 0;
      std::vector<std::string_view> seen;
      do {
        const Line& line = lines_[at_++];
        if (line.indent != first.indent) return Misplaced(line);
        if (auto refusal = NoteKey(line, seen)) return refusal;
        if (line.key != "podNumber" && line.key != "leafCellNumber") {
          return BadLine("podNumber and leafCellNumber of a member", line.whole);
        }
        if (auto refusal = ReadNumber(line, line.key == "podNumber" ? pods : cards)) return refusal;
      } while (at_ < lines_.size() && !lines_[at_].is_item && lines_[at_].indent > dash);
      if (pods == 0 || cards == 0) {
        return BadLine("podNumber and leafCellNumber of a member", first.whole);
      }
      spec.pods += pods;
      spec.member_cards.push_back(cards);
    }
    return std::nullopt;
  }

  const std::vector<Line>& lines_;
  std::size_t at_ = 0;
};

std::optional<Refusal> ReadGang(const Spec& spec, PodRequest& request) {
  if (spec.group.empty()) return std::nullopt;  // a group of this pod alone
  if (spec.group.size() > kMaxGroupName) {
    return BadLine(fmt::format("affinityGroup name of at most {} bytes", kMaxGroupName),
                   spec.group);
  }
  if (spec.pods > kMaxPods) {
    return BadLine(fmt::format("at most {} pods in affinityGroup", kMaxPods),
                   std::to_string(spec.pods));
  }
  const std::vector<int64_t>& members = spec.member_cards;
  if (std::find(members.begin(), members.end(), *spec.cards) == members.end()) {
    return BadLine("a member of affinityGroup with the pod's leafCellNumber",
                   std::to_string(*spec.cards));
  }
  request.gang = "hived/" + std::string(spec.group);
  request.gang_size = static_cast<int>(spec.pods);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ReadHived(const PodText& text, PodRequest& request) {
  const Amount* const enable = FindAmount(
      text, [](const Amount& amount) { return amount.kind == AmountKind::kHivedEnable; });
  const std::optional<std::string_view> yaml = text.annotations.Get(PodKey::kHivedSpec);
  if (enable == nullptr || !yaml) {
    return BadLine(
        "the annotation together with the limit "
        "hivedscheduler.microsoft.com/pod-scheduling-enable of a container",
        yaml ? "no limit" : "no annotation");
  }
  if (yaml->size() > kMaxBytes) {
    return BadLine(fmt::format("at most {} bytes", kMaxBytes), *yaml);
  }
  std::vector<Line> lines;
  if (std::optional<Refusal> refusal = ReadLines(*yaml, lines)) return refusal;
  Spec spec;
  if (std::optional<Refusal> refusal = SpecReader(lines).Read(spec)) return refusal;
  if (!spec.cards) return BadLine("leafCellNumber", *yaml);
  request.asks.push_back(CardsOf(enable->container, *spec.cards));
  if (!spec.card_type.empty()) request.models_any.push_back(LowerCase(spec.card_type));
  return ReadGang(spec, request);
}

}  // namespace tranche::wire
