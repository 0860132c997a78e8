// The texts of the answers, byte for byte: members keep their order, and what is absent is null.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/api/advice_api.h"
#include "scheduler/api/api_json.h"
#include "scheduler/api/burn_down.h"
#include "scheduler/api/ledger_json.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/api/router.h"
#include "test/builders/budget.h"
#include "test/builders/machines.h"

namespace tranche {
namespace THIS_FILE {

using test::Utc;
using namespace std::chrono_literals;

NodeView TwoGpus() {
  NodeView node;
  node.name = NodeName("gpu-1");
  node.model = "h100";
  node.ready = true;
  node.closed = Reason::kNoRoom;
  node.closed_detail = "a \"taint\"\n";
  node.knowledge = Knowledge::kExact;
  node.machine = std::make_shared<MachineTable>(std::make_shared<const Machine>(test::CubeMesh()));
  node.links_verified = true;
  node.problems = {"a problem"};
  GpuView shared;
  shared.memory = Mebibytes::Of(81'559);
  shared.free_milli = MilliGpu::Of(500);
  shared.pods = {{{"team-a", "web"}, PodUid("u1"), MilliGpu::Of(500), Mebibytes::Of(40'779)}};
  GpuView mig;
  mig.index = 1;
  mig.uuid = GpuUuid("GPU-1");
  mig.numa = 0;
  mig.healthy = false;
  mig.is_mig = true;
  mig.mig = {{"1g.10gb", 3, 1, {"team-a/web"}}, {"1g.10gb", 4, 1, {}}};
  node.gpus = {shared, mig};
  return node;
}

PodView Bound() {
  PodView pod;
  pod.name = {"team-a", "web"};
  pod.uid = PodUid("u1");
  pod.state = PodState::kBound;
  pod.node = NodeName("gpu-1");
  pod.leaf = "team-a";
  pod.quota_state = QuotaState::kBorrowed;
  Device device;
  device.card = 3;
  device.uuid = GpuUuid("GPU-3");
  device.milli = MilliGpu::Of(500);
  device.memory = Mebibytes::Of(40'779);
  device.mig = MigDevice{"1g.10gb", 4, 1};
  pod.allocation.emplace();
  pod.allocation->epoch = 7;
  pod.allocation->knowledge = Knowledge::kExact;
  pod.allocation->containers = {{"main", {device}}};
  return pod;
}

PodView Waiting() {
  PodView pod;
  pod.name = {"team-b", "train"};
  pod.uid = PodUid("u2");
  pod.gang = "run";
  PodRequest request;
  request.containers = {{"main"}};
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = 2;
  ask.compute = MilliGpu::Of(250);
  ask.memory = {MemoryNeed::Kind::kMib, 20'480};
  request.asks = {ask};
  request.models_any = {"h100", "h200"};
  request.gang = "run";
  request.gang_size = 4;
  request.expected_runtime = 2h;
  pod.request = std::make_shared<const PodRequest>(request);
  pod.waits_since = Utc(2026, 1, 2);
  pod.reason = Reason::kNoRoom;
  pod.detail = "expected 2, found 1";
  pod.eligible_at = Utc(2026, 1, 3);
  pod.observed = Reason::kNoRoom;
  return pod;
}

Reclaim HalfDone() {
  Reclaim reclaim;
  reclaim.name = "r-1";
  reclaim.rule = ReclaimRule::kR1;
  reclaim.members = {{{"team-b", "train"}, PodUid("u2"), NodeName("gpu-1"), true}};
  reclaim.phase = ReclaimPhase::kEvicting;
  ReclaimVictim victim;
  victim.pod = {"team-a", "web"};
  victim.uid = PodUid("u1");
  victim.state = QuotaState::kBorrowed;
  victim.lost_gpu_ms = 1'001;
  victim.evicted_at = Utc(2026, 1, 2);
  reclaim.victims = {victim};
  reclaim.cost.lost_gpu_ms = 1'001;
  reclaim.evaluations = 41;
  reclaim.planned_at = Utc(2026, 1, 2);
  return reclaim;
}

BudgetReport Monthly() {
  BudgetReport report;
  report.spec.name = "monthly";
  report.spec.quota_ref = "org";
  report.view.used = kGpuHour * 7 / 2;
  report.view.effective = kGpuHour * 100;
  report.view.window = {Utc(2026, 1, 1), Utc(2026, 2, 1)};
  report.view.percent = 3;
  report.view.exhausts_at = Utc(2026, 1, 20);
  return report;
}

QuotaView TeamA() {
  QuotaView view;
  view.report.name = "team-a";
  view.report.parent = "org";
  view.report.leaf = true;
  view.report.suspended = true;
  view.reach = {{"h100", 4, Millis(95'500), "Interleaved", "n1 is full"},
                {"any", 0, Millis(0), "", "its nominal is in use"}};
  view.report.namespaces = {"ns-1", "ns-2"};
  QuotaLineReport any;
  any.line.name = "any";
  any.line.nominal = ChargeLimit();
  any.line.available = ChargeLimit();
  any.line.used = {kQuantaPerGpu / 2, kQuantaPerGpu / 4};
  QuotaLineReport h100;
  h100.line.name = "h100@spot";
  h100.line.nominal = {kQuantaPerGpu * 8, kQuantaPerGpu * 8};
  h100.line.available = {kQuantaPerGpu / 8, kQuantaPerGpu};
  h100.line.lent = {kQuantaPerGpu, kQuantaPerGpu};
  h100.marked_borrowed = {kQuantaPerGpu * 3 / 1000, 0};
  view.report.lines = {h100, any};
  view.report.decayed_milli_gpu_hours = 12'034;
  view.report.fair_share = kQuantaPerGpu * 5 / 2;
  view.pending_workloads = 2;
  view.pending_quanta = kQuantaPerGpu * 3;
  return view;
}

TEST(ApiTextTest, NodesAndPods) {
  EXPECT_EQ(
      EncodeNodes(std::vector<NodeView>{TwoGpus(), NodeView()}),
      R"json({"nodes":[{"name":"gpu-1","model":"h100","ready":true,"closed":{"code":"NoRo)json"
      R"json(om","text":"the node has too little free GPU capacity","detail":"a \"taint\")json"
      R"json(\n","eligibleAt":null},"knowledge":"exact","nvlink":{"text":"hybrid cube mes)json"
      R"json(h of 8 GPUs (NV1 to NV2)","groups":[[0,1,2,3,4,5,6,7]],"verified":true},"gpu)json"
      R"json(s":[{"index":null,"uuid":null,"memoryMiB":81559,"freeMilli":500,"freeMiB":0,)json"
      R"json("healthy":true,"numa":null,"mig":null,"replicas":1,"enforcedBy":null,)json"
      R"json("pods":[{"pod":"team-a/we)json"
      R"json(b","uid":"u1","milli":500,"mib":40779}]},{"index":1,"uuid":"GPU-1","memoryMi)json"
      R"json(B":0,"freeMilli":0,"freeMiB":0,"healthy":false,"numa":0,"mig":[{"profile":"1)json"
      R"json(g.10gb","start":3,"size":1,"pod":"team-a/web","pods":["team-a/web"]},{"profi)json"
      R"json(le":"1g.10gb","start":4,"size":1,"pod":null,"pods":[]}],"replicas":1,)json"
      R"json("enforcedBy":null,"pods":[]}],"problems":["a problem"]},{"name":"",)json"
      R"json("model":"","ready":false,"closed":)json"
      R"json(null,"knowledge":"counts","nvlink":null,"gpus":[],"problems":[]}]})json");
  EXPECT_EQ(
      EncodePods(std::vector<PodView>{Bound(), Waiting()}),
      R"json({"pods":[{"namespace":"team-a","name":"web","uid":"u1","state":"bound","node)json"
      R"json(":"gpu-1","gang":null,)json"
      R"json("leaf":"team-a","class":null,"priorityClass":null,"quotaState":"bo)json"
      R"json(rrowed","devices":[{"container":"main","index":3,"uuid":"GPU-3","milli":500,)json"
      R"json("mib":40779,"migProfile":"1g.10gb","migStart":4}],"epoch":7,"knowledge":"exa)json"
      R"json(ct","devicesUnknown":false,"asks":null,"waitsSince":null,"reason":null,"obse)json"
      R"json(rved":null},{"namespace":"team-b","name":"train","uid":"u2","state":"pending)json"
      R"json(","node":null,"gang":"run",)json"
      R"json("leaf":null,"class":null,"priorityClass":null,"quotaState":nul)json"
      R"json(l,"devices":[],"epoch":null,"knowledge":null,"devicesUnknown":false,"asks":{)json"
      R"json("style":"none","devices":[{"container":"main","kind":"share","count":2,"prof)json"
      R"json(ile":null,"milli":250,"mib":20480,"milliOfMemory":null}],"models":["h100","h)json"
      R"json(200"],"notModels":[],"minGpuMemoryMiB":null,"topology":null,"gang":"run","ga)json"
      R"json(ngSize":4,"expectedRuntimeSeconds":7200},"waitsSince":"2026-01-02T00:00:00Z")json"
      R"json(,"reason":{"code":"NoRoom","text":"no node has enough free GPU capacity)json"
      R"json(","detail":"expected 2, found 1","eligibleAt":"2026-01-03T00:00:00Z"},"obser)json"
      R"json(ved":"NoRoom"}]})json");
}

TEST(ApiTextTest, Explanation) {
  Explanation explanation;
  explanation.pod = Waiting();
  explanation.nodes = {{NodeName("gpu-1"), true, Reason::kNone, "", 0},
                       {NodeName("gpu-2"), false, Reason::kNoRoom, "expected 2, found 0", -1}};
  explanation.claims = {{"claim-1",
                         true,
                         NodeName("gpu-1"),
                         {"gpu-0 (GPU-0)"},
                         {{"h100", {kQuantaPerGpu, kQuantaPerGpu / 2}}},
                         {{"team-b", "train"}},
                         {"a sentence"}}};
  explanation.advice = "ask for less";
  explanation.reclaim = HalfDone();
  EXPECT_EQ(
      EncodeExplanation(explanation),
      R"json({"namespace":"team-b","name":"train","uid":"u2","state":"pending","node":nul)json"
      R"json(l,"gang":"run",)json"
      R"json("leaf":null,"class":null,"priorityClass":null,"quotaState":null,"devices":)json"
      R"json([],"epoch":null,"knowledge":null,"devicesUnknown":false,"asks":{"style":"non)json"
      R"json(e","devices":[{"container":"main","kind":"share","count":2,"profile":null,"m)json"
      R"json(illi":250,"mib":20480,"milliOfMemory":null}],"models":["h100","h200"],"notMo)json"
      R"json(dels":[],"minGpuMemoryMiB":null,"topology":null,"gang":"run","gangSize":4,"e)json"
      R"json(xpectedRuntimeSeconds":7200},"waitsSince":"2026-01-02T00:00:00Z","reason":{")json"
      R"json(code":"NoRoom","text":"no node has enough free GPU capacity","detail":")json"
      R"json(expected 2, found 1","eligibleAt":"2026-01-03T00:00:00Z"},"observed":"NoRoom)json"
      R"json(","plan":{"role":"preemptor","name":"r-1","for":{"namespace":"team-b","name")json"
      R"json(:"train"},"leaf":null,"rule":"R1","phase":"Evicting","reason":null,"node":"g)json"
      R"json(pu-1","members":[{"pod":"team-b/train","node":"gpu-1","placed":true}],"victi)json"
      R"json(ms":[{"pod":"team-a/web","leaf":null,"gang":null,"state":"borrowed","node":n)json"
      R"json(ull,"lostGpuSeconds":2,"lastCheckpoint":null,"evictedAt":"2026-01-02T00:00:0)json"
      R"json(0Z","goneAt":null,"gone":false}],"progress":"0 of 1 gone","cost":[0,-1,0,0,0)json"
      R"json(,2,0,0],"search":{"result":"heuristic","evaluations":41},"plannedAt":"2026-0)json"
      R"json(1-02T00:00:00Z","reservedAt":null,"finishedAt":null},"nodes":[{"name":"gpu-1)json"
      R"json(","fits":true,"rank":0,"reason":null,"detail":""},{"name":"gpu-2","fits":fal)json"
      R"json(se,"rank":null,"reason":{"code":"NoRoom","text":"the node has too little fre)json"
      R"json(e GPU capacity","detail":"expected 2, found 0","eligibleAt":null},"detail":")json"
      R"json(expected 2, found 0"}],"claims":[{"name":"claim-1","allocated":true,"node":")json"
      R"json(gpu-1","devices":["gpu-0 (GPU-0)"],"gpus":"1.000","pods":["team-b/train"],"s)json"
      R"json(haring":["a sentence"]}],"advice":"ask for less"})json");
  explanation = {};
  explanation.blocked = PlanBlock{Reason::kNoRoom, "found 1", Utc(2026, 1, 3)};
  EXPECT_EQ(
      EncodeExplanation(explanation),
      R"json({"namespace":"","name":"","uid":"","state":"pending","node":null,"gang":null,)json"
      R"json("leaf":null)json"
      R"json(,"class":null,"priorityClass":null,"quotaState":null,"devices":[],"epoch":nu)json"
      R"json(ll,"knowledge":null,"devicesUnknown":false,"asks":null,"waitsSince":null,"re)json"
      R"json(ason":null,"observed":null,"plan":{"blocked":{"code":"NoRoom","text":"the no)json"
      R"json(de has too little free GPU capacity","detail":"found 1","until":"2026-01-03T)json"
      R"json(00:00:00Z"}},"nodes":[],"claims":[],"advice":""})json");
}

TEST(ApiTextTest, WhatIf) {
  WhatIfResult evicts;
  evicts.name = {"team-b", "train"};
  evicts.fits = true;
  evicts.node = NodeName("gpu-1");
  evicts.allocation = Bound().allocation;
  evicts.victims = HalfDone().victims;
  evicts.rule = ReclaimRule::kR1;
  evicts.optimal = true;
  WhatIfResult waits;
  waits.name = {"team-b", "more"};
  waits.reason = Reason::kNoRoom;
  EXPECT_EQ(
      EncodeWhatIf(std::vector<WhatIfResult>{evicts, waits}),
      R"json({"pods":[{"namespace":"team-b","name":"train","fits":true,"node":"gpu-1","de)json"
      R"json(vices":[{"container":"main","index":3,"uuid":"GPU-3","milli":500,"mib":40779)json"
      R"json(,"migProfile":"1g.10gb","migStart":4}],"victims":["team-a/web"],"rule":"R1",)json"
      R"json("cost":[0,-1,0,0,0,0,0,0],"search":{"result":"optimal"},"evictions":[{"pod":)json"
      R"json("team-a/web","leaf":null,"gang":null,"state":"borrowed","node":null,"lostGpu)json"
      R"json(Seconds":2,"lastCheckpoint":null,"evictedAt":"2026-01-02T00:00:00Z","goneAt")json"
      R"json(:null,"gone":false}],"reason":null},{"namespace":"team-b","name":"more","fit)json"
      R"json(s":false,"node":null,"devices":[],"victims":[],"rule":null,"cost":null,"sear)json"
      R"json(ch":null,"evictions":[],"reason":{"code":"NoRoom","text":"no node has enough)json"
      R"json( free GPU capacity","detail":"","eligibleAt":null}}]})json");
}

TEST(ApiTextTest, Reclaims) {
  Reclaim drain = HalfDone();
  drain.rule = ReclaimRule::kDrain;
  drain.members.clear();
  drain.source = "monthly";
  drain.victims.clear();
  EXPECT_EQ(
      EncodeReclaims(std::vector<Reclaim>{HalfDone(), drain}, Utc(2026, 1, 3)),
      R"json({"reclaims":[{"name":"r-1","for":{"namespace":"team-b","name":"train"},"leaf)json"
      R"json(":null,"rule":"R1","phase":"Evicting","reason":null,"node":"gpu-1","members")json"
      R"json(:[{"pod":"team-b/train","node":"gpu-1","placed":true}],"victims":[{"pod":"te)json"
      R"json(am-a/web","leaf":null,"gang":null,"state":"borrowed","node":null,"lostGpuSec)json"
      R"json(onds":2,"lastCheckpoint":null,"evictedAt":"2026-01-02T00:00:00Z","goneAt":nu)json"
      R"json(ll,"gone":false}],"progress":"0 of 1 gone","cost":[0,-1,0,0,0,2,0,0],"search)json"
      R"json(":{"result":"heuristic","evaluations":41},"plannedAt":"2026-01-02T00:00:00Z")json"
      R"json(,"reservedAt":null,"finishedAt":null},{"name":"r-1","for":{"kind":"GPUBudget)json"
      R"json(","name":"monthly"},"leaf":null,"rule":"Drain","phase":"Evicting","reason":n)json"
      R"json(ull,"node":null,"members":[],"victims":[],"progress":"0 of 0 gone","cost":[0)json"
      R"json(,-1,0,0,0,2,0,0],"search":{"result":"heuristic","evaluations":41},"plannedAt)json"
      R"json(":"2026-01-02T00:00:00Z","reservedAt":null,"finishedAt":null}],"now":"2026-0)json"
      R"json(1-03T00:00:00Z"})json");
}

TEST(ApiTextTest, QuotasAndBudgets) {
  EXPECT_EQ(
      EncodeQuotas(std::vector<QuotaView>{TeamA(), QuotaView()}),
      R"json({"quotas":[{"name":"team-a","parent":"org","mode":"Enforce","namespaces":["n)json"
      R"json(s-1","ns-2"],"lines":[{"model":"h100","pool":"spot","nominalGpus":8,"usedGpu)json"
      R"json(s":0,"borrowedGpus":0.003,"lentGpus":1,"availableGpus":0.125},{"model":"any")json"
      R"json(,"pool":null,"nominalGpus":null,"usedGpus":0.5,"borrowedGpus":0,)json"
      R"json("lentGpus":0,"availableGpus":null}],"p)json"
      R"json(ending":{"workloads":2,"gpus":3},"suspended":true,"reach":[{"model":"h100",")json"
      R"json(gpus":4,"withinSeconds":96,"reason":"Interleaved","text":"a pod of up to 4 h)json"
      R"json(100 GPUs starts within 96s; one of 5 h100 GPUs does not: n1 is full"},{"mode)json"
      R"json(l":"any","gpus":0,"withinSeconds":null,"reason":null,"text":"any: its nomina)json"
      R"json(l is in use"}],"fairShareGpus":2.5,"decayedGpuHours":"12.034"},{"name":"","p)json"
      R"json(arent":null,"mode":"Enforce","namespaces":[],"lines":[],"pending":{"workload)json"
      R"json(s":0,"gpus":0},"suspended":false,"reach":[],"fairShareGpus":0,"decayedGpuHou)json"
      R"json(rs":"0.000"}],"abandoned":[]})json");
  BudgetReport rolling = Monthly();
  rolling.spec.ns = "ns-1";
  rolling.spec.quota_ref = "";
  rolling.spec.window.type = BudgetWindow::Type::kRolling;
  rolling.view.exhausts_at = std::nullopt;
  rolling.restored = Utc(2026, 1, 1);
  EXPECT_EQ(
      EncodeBudgets(std::vector<BudgetReport>{Monthly(), rolling}),
      R"json({"budgets":[{"name":"monthly","quotaRef":"org","namespace":null,"used":"3.50)json"
      R"json(0","committed":"0.000","carriedIn":"0.000","debtIn":"0.000","effective":"100)json"
      R"json(.000","windowStart":"2026-01-01T00:00:00Z","windowEnd":"2026-02-01T00:00:00Z)json"
      R"json(","state":"OK","percent":3,"exhaustsAt":"2026-01-20T00:00:00Z","restoredFrom)json"
      R"json(":null},{"name":"monthly","quotaRef":null,"namespace":"ns-1","used":"3.500",)json"
      R"json("committed":"0.000","carriedIn":"0.000","debtIn":"0.000","effective":"100.00)json"
      R"json(0","windowStart":"2026-01-01T00:00:00Z","windowEnd":null,"state":"OK","perce)json"
      R"json(nt":3,"exhaustsAt":null,"restoredFrom":"2026-01-01T00:00:00Z"}]})json");
  BudgetCase budget;
  budget.report = Monthly();
  budget.now = Utc(2026, 1, 1);
  EXPECT_EQ(
      EncodeBurnDown(budget, BurnDown(budget)),
      R"json({"name":"monthly","windowStart":"2026-01-01T00:00:00Z","windowEnd":"2026-02-)json"
      R"json(01T00:00:00Z","effective":"100.000","used":"3.500","burningPerHour":"0.000",)json"
      R"json("exhaustsAt":"2026-01-20T00:00:00Z","points":[{"at":"2026-01-01T00:00:00Z",")json"
      R"json(used":"0.000"},{"at":"2026-01-01T00:00:00Z","used":"3.500"}]})json");
}

TEST(ApiTextTest, Ledger) {
  EXPECT_EQ(LedgerReportJson({}, {}), R"({"rows":[],"total":"0.000"})");
  const GpuTime hour{kGpuHour, kGpuHour};
  EXPECT_EQ(
      LedgerReportJson({{"team-a", "h100", hour, {}}, {"team-\x01", "a100", hour, hour}},
                       {{0,
                         "team-a",
                         "h100",
                         {Utc(2026, 1, 1), Utc(2026, 1, 2)},
                         hour,
                         {"0011", 42, Utc(2026, 1, 2)}}}),
      R"json({"rows":[{"leaf":"team-a","model":"h100","gpuHours":"1.000"},{"leaf":"team-\)json"
      R"json(u0001","model":"a100","gpuHours":"1.000","restoredGpuHours":"1.000"}],"total)json"
      R"json(":"2.000","restored":[{"leaf":"team-a","model":"h100","gpuHours":"1.000","fr)json"
      R"json(om":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","checkpoint":"2026-01)json"
      R"json(-02T00:00:00Z"}]})json");
}

TEST(ApiTextTest, Advice) {
  Advice advice;
  advice.split.basis = "3 days";
  SplitModel model;
  model.model = "h100";
  model.gpus = 10;
  SplitPart whole;
  whole.gpus = 4;
  SplitPart mig;
  mig.use = SplitPart::Use::kMig;
  mig.geometry.profiles = {{"1g.10gb", 7}};
  model.parts = {whole, mig};
  model.short_of = {"1 x 1 GPU"};
  advice.split.models = {model};
  NodeRepartition node;
  node.node = NodeName("gpu-1");
  node.config_name = "tranche-1";
  node.config_yaml = "tranche-1: []\n";
  node.steps = {{NodeName("gpu-1"), 2, {}, {{{"1g.10gb", 7}}}}};
  node.guards = {"GPU 2 is used"};
  advice.repartition.emplace();
  advice.repartition->nodes = {node};
  DefragEntry gpus;
  gpus.node = NodeName("gpu-2");
  gpus.gpus = {1, 3};
  gpus.moves = {{{"team-a", "web"}, PodUid("u1"), "", NodeName("gpu-3"), 1'001}};
  DefragEntry slice;
  slice.profile = "3g.40gb";
  slice.gpu = 6;
  advice.defragment = {4, 6, 1250, {gpus, slice}, {}};
  EXPECT_EQ(
      EncodeAdvice(advice),
      R"json({"split":{"basis":"3 days","models":[{"model":"h100","gpus":10,"now":{"whole)json"
      R"json(":0,"mig":0,"timeSliced":0},"parts":[{"use":"whole","gpus":4,"geometry":null)json"
      R"json(,"replicas":1,"serves":""},{"use":"mig","gpus":0,"geometry":"7x 1g.10gb","re)json"
      R"json(plicas":1,"serves":""}],"spare":0,"shortOf":["1 x 1 GPU"]}],"notes":[]},"rep)json"
      R"json(artition":{"nodes":[{"node":"gpu-1","config":"tranche-1","configYaml":"tranc)json"
      R"json(he-1: []\n","steps":[{"gpu":2,"from":"whole","to":"7x 1g.10gb"}],"guards":[")json"
      R"json(GPU 2 is used"]}],"waitingServed":0,"expectedMilli":0,"notes":[]},"defragmen)json"
      R"json(t":{"wholeGpusFree":4,"wholeGpusPossible":6,"strandedMilli":1250,"entries":[)json"
      R"json({"node":"gpu-2","gpus":[1,3],"profile":null,"profileGpu":null,"moves":[{"pod)json"
      R"json(":"team-a/web","leaf":null,"to":"gpu-3","lostGpuSeconds":2}],"freedMilli":0,)json"
      R"json("lostGpuSeconds":0,"waitingServed":0},{"node":"","gpus":[],"profile":"3g.40g)json"
      R"json(b","profileGpu":6,"moves":[],"freedMilli":0,"lostGpuSeconds":0,"waitingServe)json"
      R"json(d":0}],"notes":[]},"consolidate":[],"rightSizes":null,"at":"1970-01-01T00:00:0)json"
      R"json(0Z"})json");
  advice = {};
  EXPECT_EQ(
      EncodeAdvice(advice),
      R"json({"split":{"basis":"","models":[],"notes":[]},"repartition":null,"defragment")json"
      R"json(:{"wholeGpusFree":0,"wholeGpusPossible":0,"strandedMilli":0,"entries":[],"no)json"
      R"json(tes":[]},"consolidate":[],"rightSizes":null,"at":"1970-01-01T00:00:00Z"})json");
}

TEST(ApiTextTest, ErrorsKeepTheirTextWhateverItHolds) {
  EXPECT_EQ(ErrorResponse(400, "a \"b\"\t\x01 \xC3\xA9 \xFF").body,
            R"json({"error":"a \"b\"\t\u0001 é �"})json");
}

}  // namespace THIS_FILE
}  // namespace tranche
