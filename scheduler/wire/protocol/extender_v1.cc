#include "scheduler/wire/protocol/extender_v1.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/plain_text.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/protocol/hami_reasons.h"
#include "scheduler/wire/protocol/name_list.h"
#include "topology/base/check.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

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

absl::StatusOr<Element> PodOf(Object root) {
  const std::optional<Element> pod = FindAnyCase(root, "Pod");
  if (!pod) return absl::InvalidArgumentError("expected object, found nothing, in Pod");
  return *pod;
}

// Empty where the pod has none, or is none.
PodUid UidOf(Element pod) {
  Object object;
  if (pod.get(object) != simdjson::SUCCESS) return PodUid();
  const std::optional<Object> metadata = FindObject(object, "metadata");
  return PodUid(metadata ? FindText(*metadata, "uid").value_or("") : std::string_view());
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

// Is every byte one that stands for itself in a JSON string? Eight bytes a step.
bool IsPlain(std::string_view text) {
  std::size_t at = 0;
  for (; at + kWordBytes <= text.size(); at += kWordBytes) {
    if (SpecialBytes(LoadWord(text.data() + at)) != 0) return false;
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

absl::StatusOr<Object> Codec::Parse(std::string_view body) {
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser_.Parse(body, Padding::kThere));
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(document, "the body");
  if (!root) return reader.status();
  return *root;
}

absl::StatusOr<Object> Codec::ParseHead(std::string_view head) {
  text_.assign(head);
  text_ += '}';
  const std::size_t size = text_.size();
  text_.append(simdjson::SIMDJSON_PADDING, ' ');
  return Parse(std::string_view(text_).substr(0, size));
}

absl::Status Codec::ReadExtenderArgs(std::string_view body, ExtenderArgs& args, PodPart part) {
  args.by_name = true;
  args.items.clear();
  FieldReader reader;
  if (const std::optional<std::string_view> head = ReadTrailingNames(body, args.names)) {
    if (const absl::StatusOr<Object> root = ParseHead(*head); root.ok()) {
      TRANCHE_RETURN_IF_ERROR(ReadPodPart(*root, part, args));
      // The nodes are not looked at, but they must be what they claim to be.
      ReadAnyCase<Object>(*root, "Nodes", "object", reader);
      return reader.status();
    }
  }
  args.names.clear();
  TRANCHE_ASSIGN_OR_RETURN(const Object root, Parse(body));
  TRANCHE_RETURN_IF_ERROR(ReadPodPart(root, part, args));
  const auto names = ReadAnyCase<Array>(root, "NodeNames", "array", reader);
  const auto nodes = ReadAnyCase<Object>(root, "Nodes", "object", reader);
  if (names) {
    ReadNames(*names, reader, args.names);
  } else if (nodes) {
    args.by_name = false;
    ReadNodes(*nodes, reader, args);
  }
  return reader.status();
}

absl::Status Codec::ReadPodPart(Object root, PodPart part, ExtenderArgs& args) {
  TRANCHE_ASSIGN_OR_RETURN(pod_, PodOf(root));
  if (part == PodPart::kRequest) return ReadPod(args);
  args.pod.request.uid = UidOf(pod_);
  return absl::OkStatus();
}

absl::Status Codec::ReadPod(ExtenderArgs& args) {
  TRANCHE_ASSIGN_OR_RETURN(args.pod, DecodePod(pod_, PodDetail::kRequest));
  return absl::OkStatus();
}

absl::StatusOr<PreemptionArgs> Codec::ReadPreemptionArgs(std::string_view body) {
  TRANCHE_ASSIGN_OR_RETURN(const Object root, Parse(body));
  TRANCHE_ASSIGN_OR_RETURN(const Element object, PodOf(root));
  TRANCHE_ASSIGN_OR_RETURN(PodFacts pod, DecodePod(object, PodDetail::kRequest));
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
  const bool passes = answer.untouched || !answer.chosen.empty();
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
  if (passes) {
    out += "{}";
  } else {
    AppendRefused(args, answer, preemption_in_tree, /*curable=*/false, style, out);
  }
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
