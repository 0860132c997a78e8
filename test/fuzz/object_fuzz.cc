// Pods and nodes as any client of the API server may have written them.
#include "scheduler/engine/engine.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/reclaim_json.h"
#include "test/builders/cluster.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  static wire::Parser parser;
  const std::string text = fuzz::Padded(data, size);
  const auto document = parser.Parse(text, wire::Padding::kThere);
  if (!document.ok()) return 0;
  Engine engine{EngineOptions{}};
  auto node = wire::DecodeNode(*document);
  if (node.ok()) engine.UpsertNode(std::move(*node), test::At(0));
  auto pod = wire::DecodePod(*document);
  if (pod.ok()) {
    engine.UpsertNode(test::HamiNode("n", 2), test::At(0));
    pod->node = NodeName("n");
    engine.UpsertPod(std::move(*pod), test::At(0));
  }
  // Only a record that can be read again is one.
  const auto reclaim = wire::DecodeReclaim(text);
  if (reclaim.ok()) {
    TRANCHE_CHECK(!wire::EncodeReclaimSpec(*reclaim).empty());
    engine.RestoreReclaims({*reclaim});
    engine.FinishRestore(test::At(0));
  }
  TRANCHE_CHECK(engine.Audit().empty());
  return 0;
}
