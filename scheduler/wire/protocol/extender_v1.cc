#include "scheduler/wire/protocol/extender_v1.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/protocol/hami_reasons.h"
#include "topology/base/check.h"
#include "topology/base/int128.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

// ---- names without duplicates -------------------------------------------------------------------

uint64_t Fold(uint64_t left, uint64_t right) {
  const Uint128 product = Uint128{left} * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr std::size_t kWord = sizeof(uint64_t);

uint64_t LoadWord(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, kWord);
  return word;
}

// Seeded, so that nobody can prepare names that all meet in one slot.
uint64_t Hash(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = Fold(seed ^ text.size(), kOdd);
  if (text.size() < kWord) {
    for (const char c : text) hash = (hash << 8 | hash >> 56) ^ static_cast<unsigned char>(c);
    return Fold(hash, seed | 1);
  }
  for (std::size_t at = 0; at + kWord < text.size(); at += kWord) {
    hash = Fold(hash ^ LoadWord(text.data() + at), seed | 1);
  }
  return Fold(hash ^ LoadWord(text.data() + text.size() - kWord), kOdd);
}

bool StrictlyAscending(const std::vector<std::string_view>& names) {
  return std::adjacent_find(names.begin(), names.end(), std::greater_equal<>()) == names.end();
}

// Keeps the first of equal names. `table` holds hash (high half) and position + 1 (low half).
void DropDuplicates(ExtenderArgs& args, uint64_t seed, std::vector<uint64_t>& table) {
  std::vector<std::string_view>& names = args.names;
  if (StrictlyAscending(names)) return;
  constexpr uint64_t kLowHalf = 0xffffffff;
  table.assign(std::bit_ceil(2 * names.size()), 0);
  const uint64_t mask = table.size() - 1;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const uint64_t hash = Hash(names[i], seed);
    uint64_t slot = hash & mask;
    bool seen = false;
    for (; table[slot] != 0 && !seen; slot = (slot + 1) & mask) {
      seen = ((table[slot] ^ hash) & ~kLowHalf) == 0 &&
             names[(table[slot] & kLowHalf) - 1] == names[i];
    }
    if (seen) continue;
    names[kept] = names[i];
    if (!args.items.empty()) args.items[kept] = args.items[i];
    ++kept;
    table[slot] = (hash & ~kLowHalf) | kept;
  }
  names.resize(kept);
  if (!args.items.empty()) args.items.resize(kept);
}

// ---- reading ------------------------------------------------------------------------------------

// The member in any case; nullopt when absent, null, or, which is noted, of another type.
template <typename Value>
std::optional<Value> ReadAnyCase(Object parent, std::string_view key, std::string_view expected,
                                 FieldReader& reader) {
  const std::optional<Element> found = FindAnyCase(parent, key);
  if (!found) return std::nullopt;
  Value value;
  if (found->get(value) == simdjson::SUCCESS) return value;
  reader.Fail(fmt::format("expected {}, found {}, in {}", expected, DescribeElement(*found), key));
  return std::nullopt;
}

// The text member, which must be there and not empty.
std::string_view RequireText(Object parent, std::string_view key, FieldReader& reader) {
  const std::string_view text =
      ReadAnyCase<std::string_view>(parent, key, "text", reader).value_or(std::string_view());
  if (text.empty()) reader.Fail(fmt::format("expected text, found nothing, in {}", key));
  return text;
}

absl::StatusOr<PodFacts> ReadPod(Object root) {
  const std::optional<Element> pod = FindAnyCase(root, "Pod");
  if (!pod) return absl::InvalidArgumentError("expected object, found nothing, in Pod");
  return DecodePod(*pod, PodDetail::kRequest);
}

void ReadNames(Array array, FieldReader& reader, std::vector<std::string_view>& names) {
  for (const Element element : array) {
    std::string_view name;
    if (element.get(name) != simdjson::SUCCESS) {
      return reader.Fail(
          fmt::format("expected text, found {}, in NodeNames", DescribeElement(element)));
    }
    names.emplace_back(name.data(), name.size());
  }
}

void ReadNodes(Object list, FieldReader& reader, ExtenderArgs& args) {
  const std::optional<Array> items = reader.ReadArray(list, "items", "Nodes");
  if (!items) return;
  for (const Element element : *items) {
    const std::optional<Object> node = reader.AsObject(element, "Nodes.items");
    if (!node) return;
    const auto metadata = reader.ReadObject(*node, "metadata", "Nodes.items");
    const std::string_view name =
        metadata ? reader.ReadText(*metadata, "name", "Nodes.items.metadata") : std::string_view();
    if (name.empty()) {
      return reader.Fail("expected text, found nothing, in Nodes.items.metadata.name");
    }
    args.names.push_back(name);
    args.items.push_back(element);
  }
}

// A victim as kube-scheduler names it: by a whole Pod, or by a MetaPod's UID alone.
enum class VictimForm : uint8_t { kPod, kMetaPod };

PodUid ReadVictim(Object pod, VictimForm form, FieldReader& reader) {
  if (form == VictimForm::kMetaPod) return PodUid(RequireText(pod, "UID", reader));
  const auto metadata = reader.ReadObject(pod, "metadata", "Pods");
  const std::string_view uid =
      metadata ? reader.ReadText(*metadata, "uid", "Pods.metadata") : std::string_view();
  if (uid.empty()) reader.Fail("expected text, found nothing, in Pods.metadata.uid");
  return PodUid(uid);
}

PreemptNode ReadVictims(std::string_view name, Element element, VictimForm form,
                        FieldReader& reader) {
  PreemptNode node;
  node.node = std::string(name);
  if (element.is_null()) return node;
  const std::optional<Object> object = reader.AsObject(element, "victims of a node");
  if (!object) return node;
  node.pdb_violations =
      ReadAnyCase<int64_t>(*object, "NumPDBViolations", "whole number within 64 bits", reader)
          .value_or(0);
  for (const Object fields :
       reader.Objects(ReadAnyCase<Array>(*object, "Pods", "array", reader), "Pods")) {
    node.victims.push_back(ReadVictim(fields, form, reader));
  }
  return node;
}

// Ascending name; of a name given twice the last entry, as in Go.
std::vector<PreemptNode> ReadVictimMap(Object map, VictimForm form, FieldReader& reader) {
  std::vector<PreemptNode> nodes;
  for (const auto field : map) {
    nodes.push_back(ReadVictims(field.key, field.value, form, reader));
    if (!reader.ok()) return nodes;
  }
  const auto by_name = [](const PreemptNode& a, const PreemptNode& b) { return a.node < b.node; };
  std::stable_sort(nodes.begin(), nodes.end(), by_name);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i + 1 < nodes.size() && nodes[i + 1].node == nodes[i].node) continue;
    if (kept != i) nodes[kept] = std::move(nodes[i]);
    ++kept;
  }
  nodes.resize(kept);
  return nodes;
}

// ---- writing ------------------------------------------------------------------------------------

// Is every byte ASCII that stands for itself in a JSON string? Eight bytes a step.
bool IsPlain(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = 0x8080808080808080;
  const auto has_zero = [](uint64_t word) { return (word - kOnes) & ~word & kHighBits; };
  const auto special = [&](uint64_t word) {
    return ((word - kOnes * 0x20) & ~word & kHighBits) | (word & kHighBits) |
           has_zero(word ^ (kOnes * '"')) | has_zero(word ^ (kOnes * '\\'));
  };
  std::size_t at = 0;
  for (; at + kWord <= text.size(); at += kWord) {
    if (special(LoadWord(text.data() + at)) != 0) return false;
  }
  return std::all_of(
      text.begin() + static_cast<std::ptrdiff_t>(at), text.end(),
      [](unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; });
}

// Requires: IsPlain(text).
void AppendPlain(std::string& out, std::string_view text) {
  const std::size_t at = out.size() + 1;
  out.append(text.size() + 2, '"');
  std::copy(text.begin(), text.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
}

void AppendText(std::string& out, std::string_view text) {
  if (!IsPlain(text)) return AppendQuoted(out, text);
  AppendPlain(out, text);
}

void AppendNumber(std::string& out, int64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

// Calls append(position) for each candidate that passes, with commas between.
template <typename Append>
void AppendPassing(const ExtenderArgs& args, const FilterAnswer& answer, std::string& out,
                   Append append) {
  const std::size_t count = answer.untouched ? args.names.size() : answer.chosen.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = answer.untouched ? i : answer.chosen[i];
    TRANCHE_CHECK_LT(position, args.names.size());
    if (i > 0) out += ',';
    append(position);
  }
}

// `"word: text"`; both are plain.
void AppendReason(Reason reason, const PodRequest& request, ReasonStyle style, std::string& out) {
  const std::string_view word =
      style == ReasonStyle::kHami ? HamiWord(reason, request) : std::string_view();
  const std::string_view text = Describe(reason).text;
  if (word.empty()) return AppendPlain(out, text);
  out += '"';
  out += word;
  out += ": ";
  out += text;
  out += '"';
}

void AppendRefused(const ExtenderArgs& args, const FilterAnswer& answer, bool preemption_in_tree,
                   bool curable, ReasonStyle style, std::string& out) {
  bool first = true;
  out += '{';
  for (const auto& [position, reason] : answer.refused) {
    TRANCHE_CHECK_LT(position, args.names.size());
    const ReasonText& text = Describe(reason);
    // While victims leave a nominated node, calling it unresolvable would have kube-scheduler
    // choose a second set of victims elsewhere.
    const bool leaving =
        reason == Reason::kPreemptionInProgress || args.names[position] == args.pod.nominated.str();
    if ((text.preemption_may_help && (preemption_in_tree || leaving)) != curable) continue;
    if (!first) out += ',';
    first = false;
    AppendText(out, args.names[position]);
    out += ':';
    AppendReason(reason, args.pod.request, style, out);
  }
  out += '}';
}

}  // namespace

Codec::Codec() {
  std::random_device random;
  seed_ = (static_cast<uint64_t>(random()) << 32) | random();
}

absl::StatusOr<Object> Codec::Parse(std::string_view body) {
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser_.Parse(body, Padding::kThere));
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(document, "the body");
  if (!root) return reader.status();
  return *root;
}

absl::Status Codec::ReadExtenderArgs(std::string_view body, ExtenderArgs& args) {
  args.by_name = true;
  args.names.clear();
  args.items.clear();
  TRANCHE_ASSIGN_OR_RETURN(const Object root, Parse(body));
  TRANCHE_ASSIGN_OR_RETURN(args.pod, ReadPod(root));
  FieldReader reader;
  const auto names = ReadAnyCase<Array>(root, "NodeNames", "array", reader);
  const auto nodes = ReadAnyCase<Object>(root, "Nodes", "object", reader);
  if (names) {
    ReadNames(*names, reader, args.names);
  } else if (nodes) {
    args.by_name = false;
    ReadNodes(*nodes, reader, args);
  }
  if (!reader.ok()) return reader.status();
  DropDuplicates(args, seed_, seen_);
  return absl::OkStatus();
}

absl::StatusOr<PreemptionArgs> Codec::ReadPreemptionArgs(std::string_view body) {
  TRANCHE_ASSIGN_OR_RETURN(const Object root, Parse(body));
  TRANCHE_ASSIGN_OR_RETURN(PodFacts pod, ReadPod(root));
  PreemptionArgs args;
  args.pod = std::move(pod);
  FieldReader reader;
  const auto meta = ReadAnyCase<Object>(root, "NodeNameToMetaVictims", "object", reader);
  const auto full = ReadAnyCase<Object>(root, "NodeNameToVictims", "object", reader);
  if (meta) {
    args.nodes = ReadVictimMap(*meta, VictimForm::kMetaPod, reader);
  } else if (full) {
    args.nodes = ReadVictimMap(*full, VictimForm::kPod, reader);
  }
  if (!reader.ok()) return reader.status();
  return args;
}

absl::StatusOr<BindingArgs> Codec::ReadBindingArgs(std::string_view body) {
  TRANCHE_ASSIGN_OR_RETURN(const Object root, Parse(body));
  FieldReader reader;
  BindingArgs args;
  args.pod.name = std::string(RequireText(root, "PodName", reader));
  args.pod.ns = std::string(RequireText(root, "PodNamespace", reader));
  args.uid = PodUid(RequireText(root, "PodUID", reader));
  args.node = NodeName(RequireText(root, "Node", reader));
  if (!reader.ok()) return reader.status();
  return args;
}

void WriteFilterResult(const ExtenderArgs& args, const FilterAnswer& answer,
                       bool preemption_in_tree, std::string& out, std::string_view error,
                       ReasonStyle style) {
  out.clear();
  if (args.by_name) {
    out += R"({"Nodes":null,"NodeNames":[)";
    AppendPassing(args, answer, out, [&](std::size_t i) { AppendText(out, args.names[i]); });
    out += ']';
  } else {
    out += R"({"Nodes":{"metadata":{},"items":[)";
    AppendPassing(args, answer, out,
                  [&](std::size_t i) { out += simdjson::minify(args.items[i]); });
    out += R"(]},"NodeNames":null)";
  }
  out += R"(,"FailedNodes":)";
  AppendRefused(args, answer, preemption_in_tree, /*curable=*/true, style, out);
  out += R"(,"FailedAndUnresolvableNodes":)";
  AppendRefused(args, answer, preemption_in_tree, /*curable=*/false, style, out);
  out += R"(,"Error":)";
  AppendText(out, error);
  out += '}';
}

void WriteFilterError(std::string_view message, std::string& out) {
  out =
      R"({"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":)";
  AppendText(out, message);
  out += '}';
}

void WritePriorities(const ExtenderArgs& args, std::span<const int> ranks, std::string& out) {
  TRANCHE_CHECK_EQ(ranks.size(), args.names.size());
  out = "[";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    out += i == 0 ? R"({"Host":)" : R"(,{"Host":)";
    AppendText(out, args.names[i]);
    out += R"(,"Score":)";
    AppendNumber(out, ranks[i]);
    out += '}';
  }
  out += ']';
}

void WritePreemptionResult(std::span<const PreemptNode> nodes, std::string& out) {
  out = R"({"NodeNameToMetaVictims":{)";
  for (const PreemptNode& node : nodes) {
    if (node.victims.empty()) continue;
    if (out.back() != '{') out += ',';
    AppendText(out, node.node);
    out += R"(:{"Pods":[)";
    for (std::size_t k = 0; k < node.victims.size(); ++k) {
      out += k == 0 ? R"({"UID":)" : R"(,{"UID":)";
      AppendText(out, node.victims[k].str());
      out += '}';
    }
    out += R"(],"NumPDBViolations":)";
    AppendNumber(out, node.pdb_violations);
    out += '}';
  }
  out += "}}";
}

void WriteBindingResult(std::string_view error, std::string& out) {
  out = R"({"Error":)";
  AppendText(out, error);
  out += '}';
}

}  // namespace tranche::wire
