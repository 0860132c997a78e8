// The objects of a text somebody applies or deletes: one object, Lists of them, YAML documents.
//
// Everything is read and checked here, before anything is stored.
// Errors: InvalidArgument as "item 3, Pod team-a/web: expected, found, in field".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/spec.h"
#include "scheduler/dra/model.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_store.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/node_topology.h"
#include "scheduler/wire/workloads/gang_sizes.h"

namespace tranche::embedded {

// A parsed text. Elements die with it.
class Document {
 public:
  // A text with padding outlives the document.
  static absl::StatusOr<Document> Parse(std::string_view text,
                                        wire::Padding padding = wire::Padding::kNone);

  wire::Element root() const { return root_; }
  bool yaml() const { return yaml_; }  // the root is a list of documents

 private:
  std::unique_ptr<wire::Parser> parser_;  // elements point into it, so it must not move
  std::string json_;                      // of YAML
  wire::Element root_;
  bool yaml_ = false;
};

// A ResourceSlice: what it says of the node's connections, and all it says.
struct SliceFacts {
  wire::NodeSlice node;
  dra::Slice slice;
};

// One object to store. Views and elements live as long as the Document.
struct ManifestObject {
  ObjectKey key;
  Kind kind;
  wire::Element element;
  std::string uid;  // empty: none stated
  std::optional<Instant> created;
  std::optional<Deletion> deletion;  // pods only
  // monostate: no facts are read; policy objects reach the engine as text.
  std::variant<std::monostate, NodeFacts, PodFacts, NodeZones, wire::GangSize,
               wire::KoordinatorDevices, SliceFacts, dra::Object>
      facts;
};

struct Manifest {
  std::vector<ManifestObject> objects;  // in the text's order
  std::map<std::string, int> ignored;   // kind -> objects of kinds that are not kept
};

// `defaults`: the policy that GPUPolicy objects overlay.
absl::StatusOr<Manifest> ReadManifest(const Document& document, const GpuPolicy& defaults);

// One object to delete.
struct DeleteRequest {
  ObjectKey key;
  std::string uid;                       // empty: whichever has the name
  std::optional<int64_t> grace_seconds;  // asked for
};

absl::StatusOr<std::vector<DeleteRequest>> ReadDeleteRequests(const Document& document);

}  // namespace tranche::embedded
