#include "scheduler/cli/output/manifest.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "scheduler/cli/output/json.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/yaml_to_json.h"
#include "scheduler/wire/workloads/workload.h"

namespace tranche {
namespace {

// Adds one document; a List stands for its items.
absl::Status Collect(Json document, Json& pods) {
  if (document.is_null()) return absl::OkStatus();
  const std::string kind = document.is_object() ? Text(document, "kind") : "-";
  const bool pods_of = kind == "Pod" || kind == "PodGroup" || wire::IsWorkload(kind);
  if (pods_of || (kind == "-" && document.is_object())) {
    pods.push_back(std::move(document));
    return absl::OkStatus();
  }
  if ((kind == "List" || kind == "PodList") && document.contains("items") &&
      document["items"].is_array()) {
    for (Json& item : document["items"]) {
      if (const absl::Status taken = Collect(std::move(item), pods); !taken.ok()) return taken;
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("expected kind List, Pod, PodGroup, {}, found {}",
                                                wire::WorkloadKinds(), wire::Quoted(kind)));
}

// The documents of YAML or JSON, as a list.
absl::StatusOr<Json> DocumentsOf(const Manifest& manifest) {
  const absl::StatusOr<std::string> json = embedded::YamlToJson(manifest.text);
  if (!json.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", manifest.name, std::string(json.status().message())));
  }
  return Json::parse(*json, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

absl::StatusOr<std::string> EditsOf(const Manifest& manifest) {
  absl::StatusOr<Json> documents = DocumentsOf(manifest);
  if (!documents.ok()) return documents.status();
  Json body = {{"objects", Json::array()}, {"delete", Json::array()}};
  for (Json& document : *documents) {
    if (document.is_null() || document == Json::object()) continue;
    const bool edits = document.is_object() && !document.contains("kind") &&
                       (document.contains("objects") || document.contains("delete"));
    if (!edits) {
      body["objects"].push_back(std::move(document));
      continue;
    }
    for (const char* const key : {"objects", "delete"}) {
      if (!document.contains(key) || document[key].is_null()) continue;
      if (!document[key].is_array()) {
        return absl::InvalidArgumentError(
            fmt::format("{}: expected a list in {}, found another type", manifest.name, key));
      }
      for (Json& edit : document[key]) body[key].push_back(std::move(edit));
    }
  }
  return body.dump();
}

absl::StatusOr<std::string> PodsOf(const Manifest& manifest) {
  absl::StatusOr<Json> documents = DocumentsOf(manifest);
  if (!documents.ok()) return documents.status();
  Json body = {{"pods", Json::array()}};
  for (Json& document : *documents) {
    if (const absl::Status taken = Collect(std::move(document), body["pods"]); !taken.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", manifest.name, std::string(taken.message())));
    }
  }
  if (body["pods"].empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a Pod, found none", manifest.name));
  }
  return body.dump();
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  std::ifstream file(path == "-" ? "/dev/stdin" : path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        fmt::format("expected a readable file, found none at {}", wire::Quoted(path)));
  }
  return Manifest{path, text.str()};
}

}  // namespace tranche
