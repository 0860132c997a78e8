#include "scheduler/embedded/manifest.h"

#include <fmt/core.h>

#include <functional>
#include <utility>

#include "policy/decode.h"
#include "scheduler/embedded/derived_budget.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/yaml_to_json.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/workloads/workload.h"
#include "topology/base/status.h"

namespace tranche::embedded {
namespace {

constexpr std::string_view kListSuffix = "List";
constexpr std::size_t kMaxSubdomain = 253;
constexpr std::size_t kMaxLabel = 63;

// One object as it stands in the text, its type told by itself or by the List around it.
struct FoundObject {
  wire::Element element;
  wire::Object object;  // the element
  std::string_view api_version, kind;
  std::string where;  // "item 3", "document 2"; empty for a lone object
};
using Visitor = std::function<absl::Status(const FoundObject&)>;

absl::Status At(const std::string& where, std::string_view message) {
  if (where.empty()) return absl::InvalidArgumentError(std::string(message));
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, message));
}

absl::Status At(const std::string& where, const absl::Status& status) {
  return At(where, std::string(status.message()));
}

std::string Inside(const std::string& where, std::string_view step, std::size_t number) {
  return fmt::format("{}{}{} {}", where, where.empty() ? "" : ", ", step, number);
}

absl::Status VisitElement(wire::Element element, FoundObject found, const Visitor& visitor);

// `found` is a List; its items take their type from it where they state none.
absl::Status VisitItems(const FoundObject& found, wire::Array items, const Visitor& visitor) {
  const std::string_view item_kind = found.kind.substr(0, found.kind.size() - kListSuffix.size());
  std::size_t number = 0;
  for (const wire::Element item : items) {
    FoundObject inner;
    inner.kind = item_kind;
    inner.api_version = item_kind.empty() ? std::string_view() : found.api_version;
    inner.where = Inside(found.where, "item", ++number);
    TRANCHE_RETURN_IF_ERROR(VisitElement(item, std::move(inner), visitor));
  }
  return absl::OkStatus();
}

absl::Status VisitElement(wire::Element element, FoundObject found, const Visitor& visitor) {
  found.element = element;
  if (element.get(found.object) != simdjson::SUCCESS) {
    return At(found.where, fmt::format("expected a Kubernetes object, found {}",
                                       wire::DescribeElement(element)));
  }
  wire::FieldReader reader;
  const std::string_view kind = reader.ReadText(found.object, "kind", "object");
  const std::string_view api_version = reader.ReadText(found.object, "apiVersion", "object");
  if (!reader.ok()) return At(found.where, reader.status());
  if (!kind.empty()) found.kind = kind;
  if (!api_version.empty()) found.api_version = api_version;
  if (found.kind.empty()) return At(found.where, "expected text, found nothing, in object.kind");

  const bool plain_list = found.kind == kListSuffix;
  const bool named_list = found.kind.size() > kListSuffix.size() &&
                          found.kind.substr(found.kind.size() - kListSuffix.size()) == kListSuffix;
  const auto items = wire::Find(found.object, "items");
  if (plain_list || (named_list && items)) {
    if (!items) return absl::OkStatus();
    wire::Array array;
    if (items->get(array) != simdjson::SUCCESS) {
      return At(found.where, fmt::format("expected an array, found {}, in object.items",
                                         wire::DescribeElement(*items)));
    }
    return VisitItems(found, array, visitor);
  }
  return visitor(found);
}

absl::Status VisitObjects(const Document& document, const Visitor& visitor) {
  if (!document.yaml()) return VisitElement(document.root(), {}, visitor);
  wire::Array documents;
  if (document.root().get(documents) != simdjson::SUCCESS) return absl::OkStatus();
  const bool many = documents.size() > 1;
  std::size_t number = 0;
  bool any = false;
  for (const wire::Element element : documents) {
    ++number;
    if (element.is_null()) continue;
    any = true;
    FoundObject found;
    if (many) found.where = Inside("", "document", number);
    TRANCHE_RETURN_IF_ERROR(VisitElement(element, std::move(found), visitor));
  }
  return any ? absl::OkStatus()
             : absl::InvalidArgumentError("expected a Kubernetes object, found nothing");
}

// RFC 1123: lower-case letters, digits and hyphens, no hyphen at an end; a subdomain is labels
// joined by dots.
enum class DnsName { kLabel, kSubdomain };
bool IsDnsName(std::string_view text, DnsName form) {
  const bool dots = form == DnsName::kSubdomain;
  if (text.empty() || text.size() > (dots ? kMaxSubdomain : kMaxLabel)) return false;
  bool at_edge = true;
  char last = '.';
  for (const char c : text) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (c == '.' && (!dots || at_edge || last == '-')) return false;
    if (c == '-' && at_edge) return false;
    if (!alphanumeric && c != '-' && c != '.') return false;
    at_edge = c == '.';
    last = c;
  }
  return last != '.' && last != '-';
}

// The key of an object of a kept kind. `name` and `ns` as stated; "" is not stated.
absl::StatusOr<ObjectKey> CheckKey(const Kind& kind, std::string_view ns, std::string_view name,
                                   const std::string& where) {
  const std::string place = fmt::format("{}{}{}", where, where.empty() ? "" : ", ", kind.name);
  if (!IsDnsName(name, DnsName::kSubdomain)) {
    return At(place, fmt::format("expected a DNS subdomain, found {}, in metadata.name",
                                 name.empty() ? "nothing" : wire::Quoted(name)));
  }
  ObjectKey key{kind.name, "", std::string(name)};
  if (kind.scope == Scope::kCluster) return key;
  if (ns.empty() && kind.scope == Scope::kNamespace) ns = kDefaultNamespace;
  if (!ns.empty() && !IsDnsName(ns, DnsName::kLabel)) {
    return At(place, fmt::format("expected a DNS label, found {}, in metadata.namespace",
                                 wire::Quoted(ns)));
  }
  key.ns = ns;
  return key;
}

std::string PlaceOf(const std::string& where, const ObjectKey& key) {
  return fmt::format("{}{}{}", where, where.empty() ? "" : ", ", key.str());
}

std::optional<Instant> ReadTime(wire::FieldReader& reader, wire::Object metadata,
                                std::string_view key) {
  const std::string_view text = reader.ReadText(metadata, key, "metadata");
  if (text.empty()) return std::nullopt;
  const auto time = wire::ParseTime(text);
  if (!time) {
    reader.Fail(fmt::format("expected an RFC 3339 time, found {}, in metadata.{}",
                            wire::Quoted(text), key));
  }
  return time;
}

// uid and times of `metadata` into `object`.
absl::Status ReadLife(wire::Object metadata, ManifestObject& object) {
  wire::FieldReader reader;
  object.uid = std::string(reader.ReadText(metadata, "uid", "metadata"));
  object.created = ReadTime(reader, metadata, "creationTimestamp");
  const auto at = ReadTime(reader, metadata, "deletionTimestamp");
  // Other kinds wait for controllers that do not run here.
  if (at && object.kind.name == kPodKind) {
    const auto grace = reader.ReadInteger(metadata, "deletionGracePeriodSeconds", "metadata",
                                          {0, kMaxGraceSeconds});
    object.deletion = Deletion{*at, grace.value_or(0)};
  }
  return reader.status();
}

absl::Status DecodeFacts(wire::Element element, const GpuPolicy& defaults, ManifestObject& object) {
  if (object.kind.name == kNodeKind) {
    TRANCHE_ASSIGN_OR_RETURN(object.facts, wire::DecodeNode(element));
  } else if (object.kind.name == kPodKind) {
    TRANCHE_ASSIGN_OR_RETURN(object.facts, wire::DecodePod(element));
  } else if (object.kind.name == kZonesKind) {
    TRANCHE_ASSIGN_OR_RETURN(object.facts, wire::DecodeNodeZones(element));
  } else if (object.kind.name == kSliceKind) {
    TRANCHE_ASSIGN_OR_RETURN(wire::NodeSlice slice, wire::DecodeResourceSlice(element));
    TRANCHE_ASSIGN_OR_RETURN(dra::Slice whole, wire::DecodeSlice(element));
    object.facts = SliceFacts{std::move(slice), std::move(whole)};
  } else if (const auto kind = DraKindOf(object.kind.name)) {
    TRANCHE_ASSIGN_OR_RETURN(object.facts, wire::DecodeDraObject(element, *kind));
  } else if (object.kind.name == kDeviceKind) {
    TRANCHE_ASSIGN_OR_RETURN(object.facts, wire::DecodeKoordinatorDevice(element));
  } else if (object.kind.name == kPodGroupKind) {
    TRANCHE_ASSIGN_OR_RETURN(wire::GangSize gang,
                             wire::DecodePodGroup(element, GroupOf(object.kind.api_version)));
    gang.ns = object.key.ns;
    object.facts = std::move(gang);
  } else if (!wire::GangOfOwner(object.kind.name, object.key.name).empty()) {
    TRANCHE_ASSIGN_OR_RETURN(wire::GangSize gang, wire::DecodeGangOwner(element, object.kind.name));
    gang.ns = object.key.ns;
    object.facts = std::move(gang);
  } else if (IsOurs(object.kind.name)) {
    return CheckObject(object.kind.name, simdjson::minify(element), defaults);
  } else if (object.kind.name == kDisruptionBudgetKind) {
    return DerivedBudget::Read(element).status();
  }
  return absl::OkStatus();
}

absl::StatusOr<ManifestObject> ReadObject(const FoundObject& found, Kind kind,
                                          const GpuPolicy& defaults) {
  wire::FieldReader reader;
  const auto metadata = reader.ReadObject(found.object, "metadata", "object");
  const std::string_view ns = metadata ? reader.ReadText(*metadata, "namespace", "metadata") : "";
  const std::string_view name = metadata ? reader.ReadText(*metadata, "name", "metadata") : "";
  if (!reader.ok()) return At(found.where, reader.status());
  TRANCHE_ASSIGN_OR_RETURN(ObjectKey key, CheckKey(kind, ns, name, found.where));

  ManifestObject object;
  object.key = std::move(key);
  object.kind = std::move(kind);
  object.element = found.element;
  absl::Status status = ReadLife(*metadata, object);
  if (status.ok()) status = DecodeFacts(found.element, defaults, object);
  if (!status.ok()) return At(PlaceOf(found.where, object.key), status);
  return object;
}

absl::StatusOr<DeleteRequest> ReadDelete(const FoundObject& found) {
  const auto kind = KeptKind(found.api_version, KindFromQuery(found.kind));
  if (!kind) {
    return At(found.where,
              fmt::format("expected a kind this cluster keeps, found {}, in object.kind",
                          wire::Quoted(found.kind)));
  }
  wire::FieldReader reader;
  DeleteRequest request;
  std::string_view ns = reader.ReadText(found.object, "namespace", "object");
  std::string_view name = reader.ReadText(found.object, "name", "object");
  request.grace_seconds =
      reader.ReadInteger(found.object, "gracePeriodSeconds", "object", {0, kMaxGraceSeconds});
  if (const auto metadata = reader.ReadObject(found.object, "metadata", "object")) {
    ns = reader.ReadText(*metadata, "namespace", "metadata");
    name = reader.ReadText(*metadata, "name", "metadata");
    request.uid = std::string(reader.ReadText(*metadata, "uid", "metadata"));
  }
  if (!reader.ok()) return At(found.where, reader.status());
  TRANCHE_ASSIGN_OR_RETURN(request.key, CheckKey(*kind, ns, name, found.where));
  return request;
}

}  // namespace

absl::StatusOr<Document> Document::Parse(std::string_view text, wire::Padding padding) {
  if (text.size() > wire::kMaxDocumentBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} bytes, found {}", wire::kMaxDocumentBytes, text.size()));
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  Document document;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  document.yaml_ = begin == std::string_view::npos || text[begin] != '{';
  if (document.yaml_) {
    TRANCHE_ASSIGN_OR_RETURN(document.json_, YamlToJson(text));
    document.json_.reserve(document.json_.size() + simdjson::SIMDJSON_PADDING);
    text = document.json_;
    padding = wire::Padding::kThere;
  }
  document.parser_ = std::make_unique<wire::Parser>();
  TRANCHE_ASSIGN_OR_RETURN(document.root_, document.parser_->Parse(text, padding));
  return document;
}

absl::StatusOr<Manifest> ReadManifest(const Document& document, const GpuPolicy& defaults) {
  Manifest manifest;
  TRANCHE_RETURN_IF_ERROR(VisitObjects(document, [&](const FoundObject& found) {
    std::optional<Kind> kind = KeptKind(found.api_version, found.kind);
    if (!kind) {
      ++manifest.ignored[std::string(found.kind)];
      return absl::OkStatus();
    }
    TRANCHE_ASSIGN_OR_RETURN(ManifestObject object, ReadObject(found, *std::move(kind), defaults));
    manifest.objects.push_back(std::move(object));
    return absl::OkStatus();
  }));
  return manifest;
}

absl::StatusOr<std::vector<DeleteRequest>> ReadDeleteRequests(const Document& document) {
  std::vector<DeleteRequest> requests;
  TRANCHE_RETURN_IF_ERROR(VisitObjects(document, [&](const FoundObject& found) {
    TRANCHE_ASSIGN_OR_RETURN(DeleteRequest request, ReadDelete(found));
    requests.push_back(std::move(request));
    return absl::OkStatus();
  }));
  return requests;
}

}  // namespace tranche::embedded
