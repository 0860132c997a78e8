#include "scheduler/wire/admission_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/object_json.h"

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

// Only in a Pod's own form: a Binding, an Eviction or a Scale that goes to one is none of ours.
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
  std::string out = "{";
  AppendMember(out, "apiVersion", kApiVersion);
  AppendMember(out, "kind", kKind);
  out += R"(,"response":{)";
  AppendMember(out, "uid", uid);
  out += answer.allowed() ? R"(,"allowed":true)" : R"(,"allowed":false)";
  if (!answer.allowed()) {
    out += fmt::format(R"(,"status":{{"code":{},"message":)", answer.code);
    AppendQuoted(out, answer.message);
    out += '}';
  }
  if (!answer.warnings.empty()) {
    out += R"(,"warnings":[)";
    for (const std::string& warning : answer.warnings) {
      if (out.back() != '[') out += ',';
      AppendQuoted(out, warning);
    }
    out += ']';
  }
  if (answer.allowed() && !answer.patch.empty()) {
    AppendMember(out, "patchType", "JSONPatch");
    AppendMember(out, "patch", Base64(answer.patch));
  }
  return out + "}}";
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t kGroup = 3;
  std::string out;
  out.reserve((bytes.size() + kGroup - 1) / kGroup * 4);
  for (std::size_t at = 0; at < bytes.size(); at += kGroup) {
    const std::size_t taken = std::min(kGroup, bytes.size() - at);
    uint32_t bits = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      bits = bits << 8 | (i < taken ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i <= kGroup; ++i) {
      out += i <= taken ? kDigits[bits >> (18 - 6 * i) & 0x3F] : '=';
    }
  }
  return out;
}

void JsonPatch::Begin(std::string_view operation, std::string_view path) {
  if (!text_.empty()) text_ += ',';
  text_ += '{';
  AppendMember(text_, "op", operation);
  AppendMember(text_, "path", path);
}

void JsonPatch::Add(std::string_view path, std::string_view json) {
  Begin("add", path);
  text_ += R"(,"value":)";
  text_ += json;
  text_ += '}';
}

void JsonPatch::Remove(std::string_view path) {
  Begin("remove", path);
  text_ += '}';
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
