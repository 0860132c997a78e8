#include "scheduler/cli/cli_validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "policy/decode.h"
#include "policy/policy_store.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/embedded/text_file.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

constexpr int kInvalid = 1;
constexpr int kUnreadable = 2;
constexpr std::string_view kApiVersion = "tranche.dev/v1alpha1";
constexpr std::string_view kGroup = "tranche.dev/";
constexpr std::string_view kListSuffix = "List";
constexpr std::array<std::string_view, 8> kKinds = {"GPUBudget",  "GPUClass",    "GPUPolicy",
                                                    "GPUPool",    "GPUPrice",    "GPUQuota",
                                                    "GPUReclaim", "GPUQuotaView"};

struct Checked {
  std::string file;
  std::string kind;
  std::string name;
  std::vector<std::string> errors;
  std::vector<std::string> notes;

  std::string object() const { return fmt::format("{}/{}", kind, name.empty() ? "-" : name); }
  bool valid() const { return errors.empty(); }
};

// One line that does not steer a terminal, whatever a file put into it.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return text;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

struct TypeMeta {
  std::string_view api_version;
  std::string_view kind;
};

class Validation {
 public:
  absl::Status ReadFile(const std::string& file);
  // After all files.
  void CheckTogether();

  const std::vector<Checked>& objects() const { return objects_; }
  int64_t others() const { return others_; }
  bool valid() const {
    return std::all_of(objects_.begin(), objects_.end(),
                       [](const Checked& object) { return object.valid(); });
  }

 private:
  void Visit(const std::string& file, wire::Element element, TypeMeta type);
  void Check(const std::string& file, wire::Object element, TypeMeta type);
  void CheckOwn(std::string_view json, TypeMeta type, Checked& object);

  PolicyStore store_{GpuPolicy{}, UseReading::kOn};
  std::vector<Checked> objects_;
  std::map<std::pair<std::string, std::string>, size_t> last_;  // kind, name -> of objects_
  std::set<std::string> good_quotas_;
  std::map<std::string, std::vector<size_t>> references_;  // quota -> who refers to it
  int64_t others_ = 0;
};

absl::Status Validation::ReadFile(const std::string& file) {
  const absl::StatusOr<std::string> text = embedded::ReadTextFile(
      file == "-" ? "/dev/stdin" : file, wire::kMaxDocumentBytes, simdjson::SIMDJSON_PADDING);
  if (!text.ok()) return text.status();
  const absl::StatusOr<embedded::Document> document =
      embedded::Document::Parse(*text, wire::Padding::kThere);
  if (!document.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", file, std::string(document.status().message())));
  }
  wire::Array documents;
  if (document->yaml() && document->root().get(documents) == simdjson::SUCCESS) {
    for (const wire::Element element : documents) {
      if (!element.is_null()) Visit(file, element, {});
    }
  } else {
    Visit(file, document->root(), {});
  }
  return absl::OkStatus();
}

// `type`: what the List around it says the element is, where it says nothing itself.
void Validation::Visit(const std::string& file, wire::Element element, TypeMeta type) {
  wire::Object object;
  if (element.get(object) != simdjson::SUCCESS) {
    objects_.push_back({file, "-", "", {"expected a Kubernetes object, found another value"}, {}});
    return;
  }
  type.api_version = wire::FindText(object, "apiVersion").value_or(type.api_version);
  type.kind = wire::FindText(object, "kind").value_or(type.kind);
  const auto items = wire::FindArray(object, "items");
  if (!items || !EndsWith(type.kind, kListSuffix)) {
    Check(file, object, type);
    return;
  }
  TypeMeta item_type;
  if (type.kind != kListSuffix) {
    type.kind.remove_suffix(kListSuffix.size());
    item_type = type;
  }
  for (const wire::Element item : *items) Visit(file, item, item_type);
}

void Validation::Check(const std::string& file, wire::Object element, TypeMeta type) {
  const bool known = std::find(kKinds.begin(), kKinds.end(), type.kind) != kKinds.end();
  const bool own = StartsWith(type.api_version, kGroup) || (type.api_version.empty() && known);
  const auto metadata = wire::FindObject(element, "metadata");
  const std::string_view name =
      metadata ? wire::FindText(*metadata, "name").value_or("") : std::string_view();
  const std::string json = simdjson::minify(element);
  if (!own && !type.kind.empty()) {
    ++others_;
    if (type.kind == "Namespace" || type.kind == "PriorityClass") {
      store_.Upsert(type.kind, name, json);
    }
    return;
  }
  Checked object{file, std::string(type.kind.empty() ? "-" : type.kind), std::string(name), {}, {}};
  if (!known) {
    object.errors.push_back(fmt::format("kind: expected one of {}, found {}",
                                        fmt::join(kKinds, ", "),
                                        type.kind.empty() ? "nothing" : wire::Quoted(type.kind)));
  } else {
    CheckOwn(json, type, object);
  }
  objects_.push_back(std::move(object));
}

void Validation::CheckOwn(std::string_view json, TypeMeta type, Checked& object) {
  if (type.api_version.empty()) {
    object.errors.push_back(fmt::format("apiVersion: expected \"{}\", found nothing", kApiVersion));
  }
  if (object.name.empty()) object.errors.emplace_back("metadata.name: expected a name");
  if (const absl::Status status = CheckObject(type.kind, json, GpuPolicy{}); !status.ok()) {
    object.errors.emplace_back(status.message());
  }
  const size_t index = objects_.size();
  const auto [last, is_first] = last_.emplace(std::pair(object.kind, object.name), index);
  if (!is_first) {
    objects_[last->second].notes.push_back(
        fmt::format("stands in {} again, and the last one counts", object.file));
    last->second = index;
  }
  if (!object.valid()) return;
  store_.Upsert(object.kind, object.name, json);
  std::string reference;
  if (object.kind == "GPUQuota") {
    good_quotas_.insert(object.name);
    reference = DecodeGpuQuota(json)->parent;
  } else if (object.kind == "GPUBudget") {
    reference = DecodeGpuBudget(json)->quota_ref;
  }
  if (!reference.empty()) references_[reference].push_back(index);
}

void Validation::CheckTogether() {
  // What is referred to and not given is taken for good: it is in the cluster, or has errors of its
  // own.
  for (const auto& [quota, referrers] : references_) {
    if (good_quotas_.contains(quota)) continue;
    store_.Upsert("GPUQuota", quota,
                  fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{}}}})", quota));
    if (last_.contains(std::pair("GPUQuota", quota))) continue;
    for (const size_t referrer : referrers) {
      objects_[referrer].notes.push_back(
          fmt::format("refers to GPUQuota {}, which is not among the files", quota));
    }
  }
  store_.Commit();
  for (const Finding& finding : store_.findings()) {
    const auto object = last_.find(std::pair(finding.kind, finding.name));
    if (object == last_.end()) continue;
    Checked& checked = objects_[object->second];
    if (finding.reason == "Cycle" || finding.reason == "Duplicate") {
      checked.errors.push_back(finding.message);
    } else if (finding.type != "Ready" || !finding.status) {
      checked.notes.push_back(finding.message);  // well written, and yet without the full effect
    }
  }
}

void WriteJson(const Validation& validation, std::ostream& out) {
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  for (const Checked& object : validation.objects()) {
    objects.push_back({{"file", object.file},
                       {"kind", object.kind},
                       {"name", object.name},
                       {"valid", object.valid()},
                       {"errors", object.errors},
                       {"notes", object.notes}});
  }
  const nlohmann::ordered_json root = {{"objects", std::move(objects)},
                                       {"others", validation.others()}};
  out << wire::Dump(root, wire::kIndented) << '\n';
}

void WriteTable(const Validation& validation, std::ostream& out) {
  Table table({"FILE", "OBJECT", "VERDICT"});
  std::string remarks;
  for (const Checked& object : validation.objects()) {
    table.Add({object.file, object.object(), object.valid() ? "valid" : "invalid"});
    const std::string place = fmt::format("{}: {}", object.file, object.object());
    for (const std::string& error : object.errors) {
      remarks += OneLine(fmt::format("{}: {}", place, error)) + '\n';
    }
    for (const std::string& note : object.notes) {
      remarks += OneLine(fmt::format("{}: note: {}", place, note)) + '\n';
    }
  }
  if (!table.empty()) out << table.Text(TerminalOf(out));
  if (!remarks.empty()) out << '\n' << remarks;
  if (validation.others() > 0) {
    out << fmt::format("\n{} objects of other kinds were not checked\n", validation.others());
  }
}

}  // namespace

int ValidateFiles(const std::vector<std::string>& files, bool json, std::ostream& out,
                  std::ostream& err) {
  Validation validation;
  bool readable = true;
  for (const std::string& file : files) {
    const absl::Status status = validation.ReadFile(file);
    if (status.ok()) continue;
    readable = false;
    err << "tranche: " << OneLine(std::string(status.message())) << '\n';
  }
  validation.CheckTogether();
  if (json) {
    WriteJson(validation, out);
  } else {
    WriteTable(validation, out);
  }
  if (!readable) return kUnreadable;
  return validation.valid() ? 0 : kInvalid;
}

}  // namespace tranche
