#include "scheduler/wire/protocol/admission_review.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "scheduler/wire/json/field_reader.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";

void ReadUser(Object request, FieldReader& reader, AdmissionAsk& ask) {
  constexpr std::string_view kWhere = "request.userInfo";
  const std::optional<Object> info = reader.ReadObject(request, "userInfo", "request");
  if (!info) return;
  ask.user = reader.ReadText(*info, "username", kWhere);
  const std::optional<Array> groups = reader.ReadArray(*info, "groups", kWhere);
  if (!groups) return;
  for (const Element element : *groups) {
    if (const auto group = reader.AsText(element, "request.userInfo.groups")) {
      ask.groups.push_back(*group);
    }
  }
}

// Only in a Pod's own form: a Binding, an Eviction or a Scale that goes to one is not for us.
bool IsPod(Object request, FieldReader& reader) {
  const std::optional<Object> kind = reader.ReadObject(request, "kind", "request");
  if (!kind) {
    reader.Fail("expected object, found nothing, in request.kind");
    return false;
  }
  return reader.ReadText(*kind, "group", "request.kind").empty() &&
         reader.ReadText(*kind, "version", "request.kind") == "v1" &&
         reader.ReadText(*kind, "kind", "request.kind") == "Pod";
}

AdmissionVerb ParseVerb(std::string_view operation) {
  if (operation == "CREATE") return AdmissionVerb::kCreate;
  if (operation == "UPDATE") return AdmissionVerb::kUpdate;
  return AdmissionVerb::kOther;
}

std::optional<Element> ReadPod(Object request, std::string_view key, FieldReader& reader) {
  const std::optional<Element> pod = Find(request, key);
  const std::string where = fmt::format("request.{}", key);
  if (!pod) {
    reader.Fail(fmt::format("expected object, found nothing, in {}", where));
    return std::nullopt;
  }
  static_cast<void>(reader.AsObject(*pod, where));
  return pod;
}

}  // namespace

absl::StatusOr<AdmissionAsk> ReadAdmissionReview(Element document) {
  FieldReader reader;
  const std::optional<Object> review = reader.AsObject(document, "review");
  if (!review) return reader.status();
  const std::string_view version = reader.ReadText(*review, "apiVersion", "review");
  const std::string_view kind = reader.ReadText(*review, "kind", "review");
  if (version != kApiVersion || kind != kKind) {
    reader.Fail(fmt::format("expected {} {}, found {} {}, in review", kApiVersion, kKind,
                            Quoted(version), Quoted(kind)));
    return reader.status();
  }
  const std::optional<Object> request = reader.ReadObject(*review, "request", "review");
  if (!request) {
    reader.Fail("expected object, found nothing, in review.request");
    return reader.status();
  }
  AdmissionAsk ask;
  ask.uid = reader.ReadText(*request, "uid", "request");
  if (ask.uid.empty()) reader.Fail("expected a text, found none, in request.uid");
  ask.verb = ParseVerb(reader.ReadText(*request, "operation", "request"));
  ask.ns = reader.ReadText(*request, "namespace", "request");
  ask.dry_run = reader.ReadBool(*request, "dryRun", "request").value_or(false);
  ReadUser(*request, reader, ask);
  ask.about_pod = IsPod(*request, reader);
  if (ask.about_pod && ask.verb != AdmissionVerb::kOther) {
    ask.object = ReadPod(*request, "object", reader);
    if (ask.verb == AdmissionVerb::kUpdate) ask.before = ReadPod(*request, "oldObject", reader);
  }
  if (!reader.ok()) return reader.status();
  return ask;
}

std::string EncodeAdmissionReview(std::string_view uid, const AdmissionAnswer& answer) {
  Json response = {{"uid", uid}, {"allowed", answer.allowed()}};
  if (!answer.allowed()) {
    response["status"] = {{"code", answer.code}, {"message", answer.message}};
  }
  if (!answer.warnings.empty()) response["warnings"] = answer.warnings;
  if (answer.allowed() && !answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = absl::Base64Escape(answer.patch);
  }
  return Dump({{"apiVersion", kApiVersion}, {"kind", kKind}, {"response", response}});
}

void JsonPatch::Add(std::string_view path, const Json& value) {
  AddOperation({{"op", "add"}, {"path", path}, {"value", value}});
}

void JsonPatch::Remove(std::string_view path) { AddOperation({{"op", "remove"}, {"path", path}}); }

void JsonPatch::AddOperation(const Json& operation) {
  if (!text_.empty()) text_ += ',';
  text_ += Dump(operation);
}

void AppendPointer(std::string& path, std::string_view member) {
  path += '/';
  for (const char c : member) {
    if (c == '~') {
      path += "~0";
    } else if (c == '/') {
      path += "~1";
    } else {
      path += c;
    }
  }
}

}  // namespace tranche::wire
