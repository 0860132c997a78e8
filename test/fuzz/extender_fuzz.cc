// Whole request bodies as kube-scheduler would send them, through decoder, engine and encoder.
#include "scheduler/engine/engine.h"
#include "scheduler/wire/protocol/extender_v1.h"
#include "test/builders/cluster.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  static wire::Codec codec;
  static Engine* engine = [] {
    auto* made = new Engine(EngineOptions{});
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    test::SetPolicy(*made, policy);
    made->UpsertNode(test::StockNode("a", 8), test::At(0));
    made->UpsertNode(test::HamiNode("b", 4), test::At(0));
    made->UpsertNode(test::MigNode("c", 4, 1, {{"1g.10gb", 4}, {"3g.40gb", 2}}), test::At(0));
    return made;
  }();
  const std::string body = fuzz::Padded(data, size);
  std::string out;
  wire::ExtenderArgs args;
  if (codec.ReadExtenderArgs(body, args).ok()) {
    // A pod that was deleted is not looked at again.
    static int64_t serial = 0;
    if (!args.pod.request.uid.empty()) args.pod.request.uid = PodUid(std::to_string(++serial));
    FilterAnswer answer;
    engine->Filter(args.pod.request, args.names, test::At(0), answer);
    wire::WriteFilterResult(args, answer, false, out);
    wire::Parser parser;
    TRANCHE_CHECK(parser.Parse(out).ok());
    std::vector<int> ranks;
    engine->Prioritize(args.pod.request, args.names, test::At(0), ranks);
    out.clear();
    wire::WritePriorities(args, ranks, out);
    TRANCHE_CHECK(parser.Parse(out).ok());
    engine->DeletePod(args.pod.request.uid, test::At(0));
  }
  if (const auto preemption = codec.ReadPreemptionArgs(body); preemption.ok()) {
    wire::WritePreemptionResult(preemption->nodes, out);
  }
  (void)codec.ReadBindingArgs(body);
  return 0;
}
