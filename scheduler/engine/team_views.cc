// Quotas, budgets and what waits for them, for people and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "quota/tree/gpu_text.h"
#include "quota/tree/limits.h"
#include "scheduler/engine/engine_views.h"

namespace tranche {
namespace {

int64_t Quanta(const std::vector<ModelCharge>& parts) { return GpuEquivalents(TotalOf(parts)); }

std::string Promise(const std::string& line, int64_t promised, int64_t have) {
  return fmt::format("quotas promise {} GPUs of {}, the cluster has {}",
                     (promised + kQuantaPerGpu - 1) / kQuantaPerGpu, line, GpusRoundedDown(have));
}

int64_t QuantaOf(const QuotaWalk& walk, const std::string& line) {
  const auto& counts = PartsOf(line).pool.empty() ? walk.capacity : walk.pool_capacity;
  const auto found = counts.find(line);
  return found == counts.end() ? 0 : found->second;
}

// The first promise the hardware cannot keep; empty: none.
std::string Oversubscription(const QuotaWalk& walk) {
  std::set<std::string_view> reported;
  for (const QuotaReport& report : walk.reports) reported.insert(report.name);
  std::map<std::string, int64_t> promised;  // nominal by model, saturated; pools' also by line
  int64_t any_only = 0;  // what `any` lines promise beyond the other lines of the same quotas
  for (const GpuQuota& quota : walk.set->quotas) {
    int64_t any = 0, others = 0;
    for (const QuotaLine& line : quota.lines) {
      const absl::StatusOr<LineLimits> limits = ToLimits(line);
      if (!limits.ok()) continue;
      const ChargeLimit& nominal = limits->nominal;
      const bool is_any = line.model == kAnyModel && line.pool.empty();
      (is_any ? any : others) += nominal.Larger().amount().value_or(0);
      if (!reported.contains(quota.name)) continue;
      // A dimension without limit promises nothing that could be counted.
      const int64_t counted =
          std::max(nominal.compute.amount().value_or(0), nominal.memory.amount().value_or(0));
      int64_t& of_model = promised[line.model];
      of_model = AddSaturating(of_model, counted);
      if (line.pool.empty()) continue;
      int64_t& of_line = promised[LineName(line.model, line.pool)];
      of_line = AddSaturating(of_line, counted);
    }
    any_only += std::max<int64_t>(any - others, 0);
  }
  int64_t all = 0, by_model = 0;
  for (const auto& [model, quanta] : walk.capacity) all += quanta;
  for (const auto& [line, quanta] : promised) {
    if (line == kAnyModel) continue;
    const int64_t have = QuantaOf(walk, line);
    if (quanta > have) return Promise(line, quanta, have);
    const LineParts parts = PartsOf(line);
    // A model's has those of it in pools.
    if (parts.pool.empty() || parts.model == kAnyModel) by_model += quanta;
  }
  if (any_only > std::max<int64_t>(all - by_model, 0)) {
    return Promise(kAnyModel, by_model + any_only, all);
  }
  return "";
}

// What each leaf would get if the cluster's GPUs were divided now (quota-model section 5, k = 1).
void DivideSurplus(const QuotaWalk& walk, std::vector<QuotaView>& views) {
  constexpr int64_t kAversion = 1000;
  int64_t all = 0, usage = 0;
  for (const auto& [model, quanta] : walk.capacity) all += quanta;
  for (const QuotaView& view : views) usage += view.report.decayed_milli_gpu_hours;
  std::vector<FairShareMember> members;
  std::vector<QuotaView*> leaves;
  for (std::size_t i = 0; i < views.size(); ++i) {
    QuotaView& view = views[i];
    if (!view.report.leaf) continue;
    FairShareMember member;
    member.key = view.report.name;
    member.weight = walk.weights[i];
    Charge held;
    ChargeLimit nominal = Charge{};
    for (const QuotaLineReport& line : view.report.lines) {
      // `any`, the last line, covers every model.
      const bool any = line.line.name == kAnyModel;
      held = any ? line.line.used : AddSaturating(held, line.line.used);
      nominal = any ? line.line.nominal : nominal.Plus(line.line.nominal);
    }
    member.nominal = std::min<Limit>(nominal.Larger(), all).saturated();
    member.demand = GpuEquivalents(held) + view.pending_quanta;
    member.usage_ppm = usage == 0 ? 0 : view.report.decayed_milli_gpu_hours * 1'000'000 / usage;
    members.push_back(std::move(member));
    leaves.push_back(&view);
  }
  const std::vector<int64_t> shares = DivideFairly(all, members, kAversion);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i]->report.fair_share = shares[i];
}

// It asks for what no node here has, however empty, or for what cannot be read: no GPUs that come
// free are what it waits for.
bool WaitsForNoRoom(Reason reason) {
  switch (reason) {
    case Reason::kMixedStyles:
    case Reason::kBadAmount:
    case Reason::kUnknownProfile:
    case Reason::kStyleOff:
    case Reason::kUnknownModel:
    case Reason::kExceedsMaxQuota:
    case Reason::kNoGpu:
    case Reason::kNoAgent:
    case Reason::kAgentCannotServe:
    case Reason::kSharingMode:
    case Reason::kCapacity:
    case Reason::kWrongModel:
    case Reason::kWrongDevice:
    case Reason::kOneReplica:
    case Reason::kTooManyPerNode:
    case Reason::kTooLarge:
    case Reason::kNoSuchSet:
      return true;
    default:
      return false;
  }
}

// By quota: those of its leaves, in pods, and in quanta of those that room would serve.
std::map<std::string, std::pair<int64_t, int64_t>> SumBelow(
    const QuotaWalk& walk, const std::vector<PendingRow>& waiting) {
  std::map<std::string_view, std::string_view> parents;
  for (const QuotaReport& report : walk.reports) parents.emplace(report.name, report.parent);
  std::map<std::string, std::pair<int64_t, int64_t>> sums;
  for (const PendingRow& row : waiting) {
    for (auto at = parents.find(row.leaf); at != parents.end(); at = parents.find(at->second)) {
      auto& [workloads, quanta] = sums[std::string(at->first)];
      workloads += row.workloads;
      if (!WaitsForNoRoom(row.reason)) quanta += row.quanta;
    }
  }
  return sums;
}

// Running work of quotas that are gone, by quota.
std::vector<AbandonedWork> AbandonedOf(const Metering& metering) {
  std::map<std::string, AbandonedWork> rows;
  std::map<std::string, std::set<std::string>> namespaces;
  for (const HeldWork* work : metering.Abandoned()) {
    AbandonedWork& row = rows[work->leaf];
    row.quota = work->leaf;
    ++row.pods;
    row.quanta += Quanta(work->parts);
    namespaces[work->leaf].insert(work->pod.ns);
  }
  std::vector<AbandonedWork> out;
  for (auto& [quota, row] : rows) {
    row.namespaces.assign(namespaces[quota].begin(), namespaces[quota].end());
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::vector<QuotaView> QuotaViewsOf(QuotaWalk walk, const std::vector<PendingRow>& waiting) {
  // Nobody is shown who waits for what.
  if (walk.set == nullptr || walk.set->quotas.empty()) return {};
  const auto below = SumBelow(walk, waiting);
  const std::string oversubscribed = Oversubscription(walk);
  std::vector<QuotaView> views;
  for (std::size_t i = 0; i < walk.reports.size(); ++i) {
    QuotaReport& report = walk.reports[i];
    QuotaView view;
    view.reach = std::move(walk.reach[i]);
    const auto found = below.find(report.name);
    if (found != below.end()) {
      view.pending_workloads = found->second.first;
      view.pending_quanta = found->second.second;
    }
    const auto owned = walk.set->owned.find(report.name);
    if (owned != walk.set->owned.end()) report.namespaces = owned->second;
    view.oversubscribed = oversubscribed;
    for (const QuotaLineReport& line : report.lines) {
      view.over_limit |= line.line.available.compute < 0 || line.line.available.memory < 0;
      const std::string& name = line.line.name;
      if (name != kAnyModel && QuantaOf(walk, name) == 0) view.absent_models.push_back(name);
    }
    if (report.parent.empty()) view.abandoned = walk.abandoned;
    view.report = report;
    views.push_back(std::move(view));
  }
  DivideSurplus(walk, views);
  return views;
}

void Engine::QuotaSlice(QuotaWalk& walk, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  if (walk.stage == QuotaWalk::Stage::kMarks) {
    const auto next = cluster.book.RefreshMarks(walk.leaf, QuotaWalk::kWorkAtOnce);
    if (next) {
      walk.leaf = *next;
    } else {
      walk.stage = QuotaWalk::Stage::kReports;
    }
    return;
  }
  walk.set = cluster.set;
  walk.capacity = cluster.capacity;
  walk.pool_capacity = cluster.pool_capacity;
  walk.abandoned = AbandonedOf(parts_->metering);
  walk.reports = cluster.book.Quotas(now);
  for (const QuotaReport& report : walk.reports) {
    walk.weights.push_back(cluster.book.WeightOf(report.name));
    const std::vector<LineReach>* reach = parts_->nominal_reach.Of(report.name);
    walk.reach.push_back(reach == nullptr ? std::vector<LineReach>() : *reach);
  }
  walk.stage = QuotaWalk::Stage::kDone;
}

std::vector<QuotaView> Engine::Quotas(Instant now) {
  QuotaWalk walk;
  while (!walk.done()) QuotaSlice(walk, now);
  return QuotaViewsOf(std::move(walk), Pending(now));
}

std::vector<PendingRow> WaitingWalk::Rows() const {
  std::vector<PendingRow> rows;
  for (const auto& [key, row] : sums) rows.push_back(row);
  return rows;
}

std::vector<std::pair<PodUid, Reason>> WaitingWalk::TakeRefused() {
  std::ranges::sort(refused);
  return std::move(refused);
}

void Engine::WaitingSlice(WaitingWalk& walk) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  // By number first: many wait, in a few rows.
  std::map<std::tuple<QuotaId, const GpuClass*, Reason>, PendingRow> sums;
  const auto add = [&](const PodUid& uid, const PodRequest& request, Reason reason,
                       int64_t quanta) {
    const QuotaMembership membership =
        cluster.book.MembershipOf(request.name.ns, request.priority_class);
    PendingRow& row = sums[{membership.leaf, membership.gpu_class, reason}];
    ++row.workloads;
    row.quanta += quanta;
    if (reason != Reason::kNone) walk.refused.emplace_back(uid, reason);
  };
  // Growing later would move all of them at once.
  if (!walk.after) walk.refused.reserve(cluster.pending.size());
  auto at = walk.after ? cluster.pending.upper_bound(*walk.after) : cluster.pending.begin();
  for (int i = 0; i < WaitingWalk::kPodsAtOnce && at != cluster.pending.end(); ++i, ++at) {
    PodRecord& record = *cluster.Find(*at);
    add(*at, *record.request, WaitsBecause(cluster, record),
        record.asked.empty() ? parts.foreseen.Of(record) : Quanta(record.asked));
    walk.first_came = std::min(walk.first_came.value_or(record.waits_since), record.waits_since);
    walk.after = *at;
  }
  if (at == cluster.pending.end()) {
    for (const auto& [uid, pod] : parts.claim_views.WaitingPods())
      add(uid, *pod->request, pod->last_reason, Quanta(pod->asked));
    walk.through = true;
  }
  for (auto& [key, sum] : sums) {
    const auto& [leaf, gpu_class, reason] = key;
    if (leaf != kNoQuota) sum.leaf = cluster.book.tree().name(leaf);
    if (gpu_class != nullptr) sum.workload_class = gpu_class->name;
    sum.reason = reason;
    PendingRow& row = walk.sums[{sum.leaf, sum.workload_class, reason}];
    sum.workloads += row.workloads;
    sum.quanta += row.quanta;
    row = std::move(sum);
  }
}

std::vector<PendingRow> Engine::Pending(Instant) {
  WaitingWalk walk;
  while (!walk.done()) WaitingSlice(walk);
  return walk.Rows();
}

std::vector<std::pair<PodUid, Reason>> Engine::Waiting() {
  WaitingWalk walk;
  while (!walk.done()) WaitingSlice(walk);
  return walk.TakeRefused();
}

std::map<std::string, int64_t> Engine::PodsByClass() const {
  return parts_->cluster.book.work_by_class();
}

std::optional<PodView> Engine::Pod(const PodUid& uid) {
  const PodRecord* record = parts_->cluster.Find(uid);
  if (record != nullptr) return EngineViews(*parts_).ViewPod(uid, *record);
  const auto claiming = parts_->claim_books.pods.find(uid);
  if (claiming == parts_->claim_books.pods.end()) return std::nullopt;
  return parts_->claim_views.ViewPod(uid, claiming->second);
}

std::vector<BudgetReport> Engine::Budgets(Instant now) {
  parts_->Advance(now);
  return parts_->cluster.book.Budgets(now);
}

std::map<std::string, int64_t> Engine::ChargeFactors() const {
  std::map<std::string, int64_t> factors;
  for (const GpuClass& one : parts_->cluster.set->classes) factors[one.name] = one.charge_factor;
  return factors;
}

std::map<std::string, BudgetStand> Engine::BudgetStands(Instant now) {
  parts_->Advance(now);
  return parts_->cluster.book.BudgetStands(now);
}

Charge Engine::HeldQuanta() const { return parts_->cluster.book.held(); }

Charge Engine::SumHeldQuanta() const {
  Charge held;
  for (const auto& [uid, work] : parts_->cluster.book.holdings()) {
    held = AddSaturating(held, TotalOf(work.parts));
  }
  return held;
}

std::vector<HeldTimeRow> Engine::HeldTime(Instant now) {
  return parts_->cluster.book.sums().Time(now);
}

std::vector<NamespaceHeldRow> Engine::HeldByNamespace() const {
  return parts_->cluster.book.sums().ByNamespace();
}

std::vector<DecayRow> Engine::Decay() const {
  std::vector<DecayRow> rows;
  for (auto& [leaf, state] : parts_->cluster.book.Decay()) rows.push_back({leaf, state});
  return rows;
}

std::vector<CapRow> Engine::NamespaceCapRows() const { return parts_->namespaces.caps.Rows(); }

std::vector<Reclaim> Engine::Reclaims() const {
  std::vector<Reclaim> list;
  for (const auto& [name, reclaim] : parts_->reclaims.all) list.push_back(reclaim);
  std::ranges::stable_sort(list, {}, &Reclaim::planned_at);
  return list;
}

}  // namespace tranche
