#include "bench/tenants/world.h"

#include <algorithm>
#include <utility>

#include "topology/base/check.h"

namespace tranche::bench {
namespace {

constexpr const char* kModel = "gpu";
constexpr const char* kRoot = "cluster";

QuotaTree TreeOf(const Trace& trace) {
  std::vector<QuotaNode> nodes = {{kRoot, "", {{kModel, LineLimits{}}}}};
  for (const Tenant& tenant : trace.tenants) {
    LineLimits limits;
    limits.nominal = ChargeOfGpus(int64_t{tenant.nodes} * kGpusPerNode);
    nodes.push_back({tenant.name, kRoot, {{kModel, limits}}});
  }
  absl::StatusOr<QuotaTree> tree = QuotaTree::Build(std::move(nodes));
  TRANCHE_CHECK(tree.ok());
  return *std::move(tree);
}

}  // namespace

World::World(const Trace& trace)
    : trace_(trace),
      cluster_(trace.nodes()),
      tree_(TreeOf(trace)),
      line_(tree_.FindLine(kModel)),
      states_(trace.jobs.size()) {
  for (const Tenant& tenant : trace.tenants) leaves_.push_back(tree_.Find(tenant.name));
}

bool World::Entitled(int id) const {
  const QuotaId own = leaf(job(id).tenant);
  const int64_t used = GpuEquivalents(tree_.Used(own, line_));
  return tree_.Nominal(own, line_).Larger().Allows(used + job(id).gpus * kQuantaPerGpu);
}

bool World::Admitted(int id) const {
  const QuotaVerdict verdict = tree_.Check(leaf(job(id).tenant), line_, ChargeOfGpus(job(id).gpus));
  return verdict.refusal == QuotaRefusal::kNone;
}

int64_t World::Borrowed(int tenant) const {
  return GpuEquivalents(tree_.Borrowed(leaf(tenant), line_)) / kQuantaPerGpu;
}

void World::Start(int id, const Placement& placement, int64_t now) {
  JobState& job_state = state(id);
  TRANCHE_CHECK(!job_state.running());
  cluster_.Take(placement);
  tree_.Add(leaf(job(id).tenant), line_, ChargeOfGpus(job(id).gpus));
  job_state.placement = placement;
  job_state.working = now + (job_state.evictions > 0 ? kRestart : 0);
  job_state.waits_for_moment.reset();
  ++job_state.run;
  running_.insert(id);
  busy_ += job(id).gpus;
}

void World::Stop(int id) {
  JobState& job_state = state(id);
  TRANCHE_CHECK(job_state.running());
  cluster_.Give(job_state.placement);
  tree_.Remove(leaf(job(id).tenant), line_, ChargeOfGpus(job(id).gpus));
  job_state.placement.clear();
  running_.erase(id);
  busy_ -= job(id).gpus;
}

int64_t World::Evict(int id, int64_t now) {
  JobState& job_state = state(id);
  const int64_t checkpoint = job_state.LastCheckpoint(now);
  job_state.kept += checkpoint - job_state.working;
  ++job_state.evictions;
  Stop(id);
  return std::max<int64_t>(0, now - checkpoint) * job(id).gpus;
}

}  // namespace tranche::bench
