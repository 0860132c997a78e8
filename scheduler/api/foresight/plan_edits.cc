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

constexpr std::string_view kPolicyKinds[] = {"GPUQuota",  "GPUBudget", "GPUClass",
                                             "GPUPolicy", "Namespace", "PriorityClass"};
constexpr std::string_view kKinds =
    "GPUQuota, GPUBudget, GPUClass, GPUPolicy, Namespace, PriorityClass or Node";

bool IsPolicyKind(std::string_view kind) {
  return std::ranges::find(kPolicyKinds, kind) != std::end(kPolicyKinds);
}

absl::Status Wrong(const std::string& where, std::string_view expected, std::string_view found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", where, expected, found));
}

class EditReader {
 public:
  EditReader(std::size_t most, PlanGround ground) : most_(most), ground_(std::move(ground)) {}

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

  absl::StatusOr<PlanEdits> Finish() {
    if (edited_.empty()) return std::move(edits_);
    ground_.store.Commit();
    for (const Finding& finding : ground_.store.findings()) {
      const bool ours = edited_.contains({finding.kind, finding.name});
      if (!ours || finding.type != "Ready" || finding.status) continue;
      return absl::InvalidArgumentError(fmt::format("{} {} would not be in force: {}: {}",
                                                    finding.kind, finding.name, finding.reason,
                                                    finding.message));
    }
    edits_.set = std::make_shared<const PolicySet>(ground_.store.set());
    edits_.defaults = ground_.defaults;
    return std::move(edits_);
  }

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
    if (kind == "Node") return TakeNode(element, name, where);
    if (!IsPolicyKind(kind)) {
      return Wrong(where + ".kind", kKinds, wire::Quoted(kind));
    }
    edited_.insert({kind, name});
    ground_.store.Upsert(kind, name, simdjson::minify(element));
    return absl::OkStatus();
  }

  absl::Status TakeNode(wire::Element element, const std::string& name, const std::string& where) {
    absl::StatusOr<NodeFacts> node = wire::DecodeNode(element);
    if (!node.ok()) return Wrong(where, "a Node", std::string(node.status().message()));
    std::erase_if(edits_.nodes,
                  [&name](const NodeFacts& other) { return other.name.str() == name; });
    edits_.nodes.push_back(*std::move(node));
    return absl::OkStatus();
  }

  absl::Status Drop(wire::Element element, const std::string& where) {
    wire::Object object;
    if (element.get(object) != simdjson::SUCCESS) return Wrong(where, "an object", "another type");
    if (absl::Status status = Count(where); !status.ok()) return status;
    const std::string kind(wire::FindText(object, "kind").value_or(""));
    const std::string name(wire::FindText(object, "name").value_or(""));
    if (name.empty()) return Wrong(where, "kind and name", "no name");
    if (kind == "Node") {
      edits_.gone.emplace_back(name);
      return absl::OkStatus();
    }
    if (!IsPolicyKind(kind)) return Wrong(where + ".kind", kKinds, wire::Quoted(kind));
    if (!ground_.objects.contains({kind, name})) {
      return Wrong(where, fmt::format("a {} that is there", kind), wire::Quoted(name));
    }
    edited_.insert({kind, name});
    ground_.store.Remove(kind, name);
    return absl::OkStatus();
  }

  const std::size_t most_;
  std::size_t edits_made_ = 0;
  PlanGround ground_;
  PlanEdits edits_;
  std::set<std::pair<std::string, std::string>> edited_;  // kind, name
};

}  // namespace

absl::StatusOr<PlanEdits> ReadPlanEdits(std::string_view body, std::size_t most,
                                        PlanGround ground) {
  wire::Parser parser;
  const absl::StatusOr<wire::Element> root = parser.Parse(body);
  if (!root.ok()) return root.status();
  EditReader reader(most, std::move(ground));
  if (absl::Status status = reader.Read(*root); !status.ok()) return status;
  return reader.Finish();
}

}  // namespace tranche
