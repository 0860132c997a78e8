#include "scheduler/api/foresight/plan_edits.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/node_decode.h"

namespace tranche {
namespace {

constexpr std::string_view kPolicyKinds[] = {"GPUQuota", "GPUBudget", "GPUClass",  "GPUPolicy",
                                             "GPUPool",  "GPUPrice",  "Namespace", "PriorityClass"};
constexpr std::string_view kKinds =
    "GPUQuota, GPUBudget, GPUClass, GPUPolicy, GPUPool, GPUPrice, Namespace, PriorityClass or Node";
constexpr std::string_view kNodeKind = "Node";

bool IsPolicyKind(std::string_view kind) {
  return std::ranges::find(kPolicyKinds, kind) != std::end(kPolicyKinds);
}

absl::Status Wrong(const std::string& where, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", where, expected, found));
}

class EditReader {
 public:
  explicit EditReader(std::size_t most) : most_(most) {}

  absl::Status Read(wire::Element root) {
    wire::Object object;
    if (root.get(object) != simdjson::SUCCESS) return Wrong("body", "an object", "another type");
    const bool one = wire::Find(object, "kind") && !wire::Find(object, "items");
    if (one) return Take(root, "body");
    for (const char* const list : {"objects", "items"}) {
      if (absl::Status status = ReadList(object, list, &EditReader::Take); !status.ok()) {
        return status;
      }
    }
    if (!wire::Find(object, "objects") && !wire::Find(object, "items") &&
        !wire::Find(object, "delete")) {
      return Wrong("body", "objects, delete, a List or an object", "none of them");
    }
    return ReadList(object, "delete", &EditReader::Drop);
  }

  std::vector<ObjectEdit> Edits() { return std::move(edits_); }

 private:
  using Step = absl::Status (EditReader::*)(wire::Element, const std::string&);

  absl::Status ReadList(wire::Object object, const char* name, Step step) {
    const std::optional<wire::Element> found = wire::Find(object, name);
    if (!found) return absl::OkStatus();
    wire::Array list;
    if (found->get(list) != simdjson::SUCCESS) return Wrong(name, "a list", "another type");
    std::size_t at = 0;
    for (const wire::Element element : list) {
      if (absl::Status status = (this->*step)(element, fmt::format("{}[{}]", name, at++));
          !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Count(const std::string& where) {
    if (++edits_made_ <= most_) return absl::OkStatus();
    return Wrong(where, fmt::format("at most {} edits", most_), "more");
  }

  absl::Status Take(wire::Element element, const std::string& where) {
    wire::Object object;
    if (element.get(object) != simdjson::SUCCESS) return Wrong(where, "an object", "another type");
    const std::string kind(wire::FindText(object, "kind").value_or(""));
    if (kind == "List") return ReadList(object, "items", &EditReader::Take);
    if (absl::Status status = Count(where); !status.ok()) return status;
    const std::optional<wire::Object> metadata = wire::FindObject(object, "metadata");
    const std::string name(metadata ? wire::FindText(*metadata, "name").value_or("")
                                    : std::string_view());
    if (name.empty()) return Wrong(where, "metadata.name", "none");
    if (kind != kNodeKind && !IsPolicyKind(kind)) {
      return Wrong(where + ".kind", kKinds, wire::Quoted(kind));
    }
    edits_.push_back({kind, name, simdjson::minify(element), where});
    return absl::OkStatus();
  }

  absl::Status Drop(wire::Element element, const std::string& where) {
    wire::Object object;
    if (element.get(object) != simdjson::SUCCESS) return Wrong(where, "an object", "another type");
    if (absl::Status status = Count(where); !status.ok()) return status;
    const std::string kind(wire::FindText(object, "kind").value_or(""));
    const std::string name(wire::FindText(object, "name").value_or(""));
    if (name.empty()) return Wrong(where, "kind and name", "no name");
    if (kind != kNodeKind && !IsPolicyKind(kind)) {
      return Wrong(where + ".kind", kKinds, wire::Quoted(kind));
    }
    edits_.push_back({kind, name, "", where});
    return absl::OkStatus();
  }

  const std::size_t most_;
  std::size_t edits_made_ = 0;
  std::vector<ObjectEdit> edits_;
};

absl::Status TakeNode(const ObjectEdit& edit, PlanEdits& edits) {
  if (edit.json.empty()) {
    edits.gone.emplace_back(edit.name);
    return absl::OkStatus();
  }
  wire::Parser parser;
  const absl::StatusOr<wire::Element> element = parser.Parse(edit.json);
  if (!element.ok()) return element.status();
  absl::StatusOr<NodeFacts> node = wire::DecodeNode(*element);
  if (!node.ok()) return Wrong(edit.where, "a Node", std::string(node.status().message()));
  std::erase_if(edits.nodes,
                [&edit](const NodeFacts& other) { return other.name.str() == edit.name; });
  edits.nodes.push_back(*std::move(node));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ObjectEdit>> ReadObjectEdits(std::string_view body, std::size_t most) {
  wire::Parser parser;
  const absl::StatusOr<wire::Element> root = parser.Parse(body);
  if (!root.ok()) return root.status();
  EditReader reader(most);
  if (absl::Status status = reader.Read(*root); !status.ok()) return status;
  return reader.Edits();
}

absl::StatusOr<PlanEdits> ReadPlanEdits(std::string_view body, std::size_t most,
                                        PlanGround ground) {
  const absl::StatusOr<std::vector<ObjectEdit>> read = ReadObjectEdits(body, most);
  if (!read.ok()) return read.status();
  PlanEdits edits;
  std::set<std::pair<std::string, std::string>> edited;  // kind, name
  for (const ObjectEdit& edit : *read) {
    if (edit.kind == kNodeKind) {
      if (absl::Status status = TakeNode(edit, edits); !status.ok()) return status;
      continue;
    }
    edited.insert({edit.kind, edit.name});
    if (!edit.json.empty()) {
      ground.store.Upsert(edit.kind, edit.name, edit.json);
    } else if (ground.objects.contains({edit.kind, edit.name})) {
      ground.store.Remove(edit.kind, edit.name);
    } else {
      return Wrong(edit.where, fmt::format("a {} that is there", edit.kind),
                   wire::Quoted(edit.name));
    }
  }
  if (edited.empty()) return edits;
  ground.store.Commit();
  for (const Finding& finding : ground.store.findings()) {
    const bool ours = edited.contains({finding.kind, finding.name});
    if (!ours || finding.type != "Ready" || finding.status) continue;
    return absl::InvalidArgumentError(fmt::format("{} {} would not be in force: {}: {}",
                                                  finding.kind, finding.name, finding.reason,
                                                  finding.message));
  }
  edits.set = std::make_shared<const PolicySet>(ground.store.set());
  edits.defaults = ground.defaults;
  return edits;
}

}  // namespace tranche
