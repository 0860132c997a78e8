// kube-scheduler's extender wire types (k8s.io/kube-scheduler/extender/v1) <-> our values.
//
// Keys are written in Go's CapitalCase and read in any case; null and absent are the same. One
// Codec holds the parser and scratch space of one thread, so that a call allocates nothing per
// candidate node once warm. Candidates in kube-scheduler's own form cost it 16 bytes each; else it
// grows to about 14 times the largest body it read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/engine/engine.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// ExtenderArgs. Views point into the Codec and the body, valid until the Codec's next call.
struct ExtenderArgs {
  PodFacts pod;                         // PodDetail::kRequest of it
  bool by_name = true;                  // NodeNames was set (nodeCacheCapable)
  std::vector<std::string_view> names;  // candidates as they came; one may be given twice
  std::vector<Element> items;           // by_name false: the Node objects, parallel to names
};

// Nodes whose room would suffice without eviction come without victims (Kubernetes 1.38).
struct PreemptionArgs {
  PodFacts pod;
  std::vector<PreemptNode> nodes;  // ascending name
};
struct BindingArgs {
  PodName pod;
  PodUid uid;
  NodeName node;
};

// How much of the pod is read at once. kUid: of its request the uid alone, and no error in it is
// seen.
enum class PodPart : uint8_t { kUid, kRequest };

class Codec {
 public:
  // `body` must be readable for 64 bytes behind its end. Errors: InvalidArgument, short, naming
  // field and what was found; the caller answers 400.
  absl::Status ReadExtenderArgs(std::string_view body, ExtenderArgs& args,
                                PodPart part = PodPart::kRequest);
  // The whole pod of what was read last. Requires: ReadExtenderArgs gave no error.
  absl::Status ReadPod(ExtenderArgs& args);
  absl::StatusOr<PreemptionArgs> ReadPreemptionArgs(std::string_view body);
  absl::StatusOr<BindingArgs> ReadBindingArgs(std::string_view body);

 private:
  absl::StatusOr<Object> Parse(std::string_view body);

  // `head`: an object without its closing brace.
  absl::StatusOr<Object> ParseHead(std::string_view head);
  absl::Status ReadPodPart(Object root, PodPart part, ExtenderArgs& args);

  Parser parser_;
  std::string text_;  // of ParseHead, which elements point into
  Element pod_;
};

// ExtenderFilterResult in the form the question came in. `preemption_in_tree`: device misfits that
// eviction could cure go to FailedNodes instead of FailedAndUnresolvableNodes; those of the node
// the pod is nominated for, and nodes where its victims are leaving, always do. Where a candidate
// passes FailedAndUnresolvableNodes is empty: to kube-scheduler a node listed nowhere is just that,
// and reading reasons it does not show would be most of what the call costs it (ADR 0042).
// Not empty, `error` fails the scheduling cycle, and the pod is tried again without waiting for an
// event.
enum class ReasonStyle : uint8_t {
  kOwn,
  kHami,  // behind the word HAMi's users know, where it has one (hami_reasons.h)
};
void WriteFilterResult(const ExtenderArgs& args, const FilterAnswer& answer,
                       bool preemption_in_tree, std::string& out, std::string_view error = "",
                       ReasonStyle style = ReasonStyle::kOwn);
void WriteFilterError(std::string_view message, std::string& out);
// HostPriorityList; ranks are parallel to args.names.
void WritePriorities(const ExtenderArgs& args, std::span<const int> ranks, std::string& out);
// Nodes without victims are left out: kube-scheduler takes an entry without pods for an error.
void WritePreemptionResult(std::span<const PreemptNode> nodes, std::string& out);
// ExtenderBindingResult; empty means success.
void WriteBindingResult(std::string_view error, std::string& out);

}  // namespace tranche::wire
