#include "scheduler/cli/ledger/past_text.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

// Their values are amounts or words of ours.
constexpr std::string_view kAmounts[] = {
    "tranche.dev/gpu-fraction", "tranche.dev/gpu-memory",       "tranche.dev/gpu-count",
    "tranche.dev/model",        "tranche.dev/min-gpu-memory",   "tranche.dev/topology",
    "tranche.dev/gang-size",    "tranche.dev/expected-runtime",
};
constexpr std::string_view kNodeLabels[] = {
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.count",
    "nvidia.com/mig.strategy",
    "node.kubernetes.io/instance-type",
};

Json TimeJson(const std::optional<Instant>& at) {
  return at ? Json(wire::FormatTime(*at)) : Json();
}

std::string_view WordOf(PastEnd how) {
  switch (how) {
    case PastEnd::kNot:
      return "";
    case PastEnd::kByItself:
      return "ByItself";
    case PastEnd::kDeleted:
      return "Deleted";
    case PastEnd::kDisrupted:
      return "Disrupted";
    case PastEnd::kUnseen:
      return "Unseen";
  }
  return "";
}

// Null: it is not there, or no JSON.
Json ObjectOf(const ledger::RecordedPast& past, std::optional<int64_t> text) {
  const auto found = text ? past.texts.find(*text) : past.texts.end();
  if (found == past.texts.end()) return {};
  Json object = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  return object.is_discarded() ? Json() : object;
}

// Null: there is none.
const Json& Member(const Json& object, const char* name) {
  static const Json kNone;
  return object.is_object() && object.contains(name) ? object.at(name) : kNone;
}

// The entries of a map whose names are among these.
template <std::size_t kCount>
Json Some(const Json& map, const std::string_view (&names)[kCount]) {
  Json kept = Json::object();
  if (!map.is_object()) return kept;
  for (const auto& [name, value] : map.items()) {
    if (std::ranges::find(names, name) != std::end(names)) kept[name] = value;
  }
  return kept;
}

Json ResourcesOf(const Json& containers) {
  Json kept = Json::array();
  if (!containers.is_array()) return kept;
  for (const Json& container : containers) {
    const Json& resources = Member(container, "resources");
    Json amounts = Json::object();
    for (const char* const name : {"limits", "requests"}) {
      if (const Json& map = Member(resources, name); map.is_object()) amounts[name] = map;
    }
    kept.push_back({{"resources", std::move(amounts)}});
  }
  return kept;
}

Json HashedPodObject(const HashedNames& names, const Json& pod) {
  if (!pod.is_object()) return {};
  const Json& written = Member(Member(pod, "metadata"), "annotations");
  Json annotations = Some(written, kAmounts);
  constexpr const char* kGang = "tranche.dev/gang";
  if (const Json& gang = Member(written, kGang); gang.is_string()) {
    annotations[kGang] = names.Of("gang", gang.get_ref<const std::string&>());
  }
  const Json& spec = Member(pod, "spec");
  return {{"metadata", {{"annotations", std::move(annotations)}}},
          {"spec",
           {{"initContainers", ResourcesOf(Member(spec, "initContainers"))},
            {"containers", ResourcesOf(Member(spec, "containers"))}}}};
}

Json HashedNodeObject(const Json& node) {
  if (!node.is_object()) return {};
  const Json& status = Member(node, "status");
  return {
      {"metadata", {{"labels", Some(Member(Member(node, "metadata"), "labels"), kNodeLabels)}}},
      {"status",
       {{"allocatable", Member(status, "allocatable")}, {"capacity", Member(status, "capacity")}}}};
}

// What the object's name is of; empty: it stays.
std::string_view NameOf(const std::string& kind) {
  if (kind == "GPUQuota") return "team";
  if (kind == "Namespace") return "namespace";
  constexpr std::string_view kStay[] = {"Node",      "GPUClass",      "GPUPool",        "GPUPrice",
                                        "GPUPolicy", "PriorityClass", kServerPolicyKind};
  return std::ranges::find(kStay, kind) == std::end(kStay) ? "object" : "";
}

void HashChange(const HashedNames& names, Json& line) {
  const std::string kind = line.at("of").get<std::string>();
  const std::string name = line.at("name").get<std::string>();
  Json& object = line.at("object");
  if (kind == kGangSizeKind) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    const std::string gang = slash < name.size() ? name.substr(slash + 1) : "";
    line["name"] = names.Of("namespace", name.substr(0, slash)) + "/" + names.Of("gang", gang);
    if (!object.is_number()) object = Json();
    return;
  }
  if (const std::string_view of = NameOf(kind); !of.empty()) line["name"] = names.Of(of, name);
  if (kind == "Node") {
    object = HashedNodeObject(object);
  } else if (object.is_object()) {
    // Of others that something was said and not what; null says that it is gone.
    const Json spec = kind == "GPUPrice" ? Member(object, "spec") : Json();
    object = Json::object();
    if (spec.is_object()) object["spec"] = spec;
  }
}

}  // namespace

std::string PastSpanLine(const ledger::RecordedPast& past, Instant from, Instant to) {
  return wire::Dump({{"kind", "span"},
                     {"from", wire::FormatTime(from)},
                     {"to", wire::FormatTime(to)},
                     {"knownFrom", TimeJson(past.from)}});
}

std::string PastChangeLine(const ledger::RecordedPast& past, const ledger::RecordedChange& change,
                           const HashedNames* names) {
  Json line = {{"kind", "change"},
               {"at", wire::FormatTime(change.at)},
               {"of", change.kind},
               {"name", change.name},
               {"object", ObjectOf(past, change.text)}};
  if (names != nullptr) HashChange(*names, line);
  return wire::Dump(line);
}

std::string PastPodLine(const ledger::RecordedPast& past, const ledger::RecordedPod& pod,
                        const HashedNames* names) {
  const auto name = [names](std::string_view of, const std::string& text) {
    return names == nullptr ? text : names->Of(of, text);
  };
  Json object = ObjectOf(past, pod.text);
  Json devices = Json::parse(pod.devices, nullptr, /*allow_exceptions=*/false);
  if (!devices.is_object()) devices = Json();
  if (names != nullptr) {
    object = HashedPodObject(*names, object);
    devices = HashedDevices(*names, pod.devices);
  }
  return wire::Dump({{"kind", "pod"},
                     {"uid", name("uid", pod.uid.str())},
                     {"namespace", name("namespace", pod.name.ns)},
                     {"name", name("pod", pod.name.name)},
                     {"owner", wire::TextOrNull(name("uid", pod.owner))},
                     {"created", wire::FormatTime(pod.created)},
                     {"node", wire::TextOrNull(pod.node.str())},
                     {"started", TimeJson(pod.started)},
                     {"ended", TimeJson(pod.ended)},
                     {"how", wire::TextOrNull(std::string(WordOf(pod.how)))},
                     {"devices", std::move(devices)},
                     {"object", std::move(object)}});
}

}  // namespace tranche
