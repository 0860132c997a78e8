// Quotas, budgets and what waits for them, for people and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "quota/tree/limits.h"
#include "scheduler/engine/engine_views.h"

namespace tranche {
namespace {

int64_t Quanta(const std::vector<ModelCharge>& parts) { return GpuEquivalents(TotalOf(parts)); }

std::string Promise(const std::string& model, int64_t promised, int64_t cards) {
  return fmt::format("quotas promise {} GPUs of {}, the cluster has {}",
                     (promised + kQuantaPerGpu - 1) / kQuantaPerGpu, model, cards);
}

}  // namespace

std::string EngineViews::Oversubscription() const {
  std::map<std::string, int64_t> promised;  // nominal by model, saturated
  for (const GpuQuota& quota : cluster_.set->quotas) {
    if (cluster_.book.tree().Find(quota.name) == kNoQuota) continue;
    for (const QuotaLine& line : quota.lines) {
      const absl::StatusOr<LineLimits> limits = ToLimits(line);
      if (!limits.ok()) continue;
      // A dimension without limit promises nothing that could be counted.
      const ChargeLimit& nominal = limits->nominal;
      const int64_t counted =
          std::max(nominal.compute.amount().value_or(0), nominal.memory.amount().value_or(0));
      promised[line.model] = AddSaturating(promised[line.model], counted);
    }
  }
  int64_t cards = 0, by_model = 0;
  for (const auto& [model, count] : cluster_.capacity) cards += count;
  for (const auto& [model, quanta] : promised) {
    if (model == kAnyModel) continue;
    const auto found = cluster_.capacity.find(model);
    const int64_t have = found == cluster_.capacity.end() ? 0 : found->second;
    if (quanta > have * kQuantaPerGpu) return Promise(model, quanta, have);
    by_model += quanta;
  }
  // What `any` lines promise beyond the model lines of the same quotas must fit the rest.
  int64_t any_only = 0;
  for (const GpuQuota& quota : cluster_.set->quotas) {
    int64_t any = 0, models = 0;
    for (const QuotaLine& line : quota.lines) {
      const absl::StatusOr<LineLimits> limits = ToLimits(line);
      if (!limits.ok()) continue;
      (line.model == kAnyModel ? any : models) += limits->nominal.Larger().amount().value_or(0);
    }
    any_only += std::max<int64_t>(any - models, 0);
  }
  if (any_only > std::max<int64_t>(cards * kQuantaPerGpu - by_model, 0)) {
    return Promise(kAnyModel, by_model + any_only, cards);
  }
  return "";
}

// What each leaf would get if the cluster's GPUs were divided now (quota-model section 5, k = 1).
void EngineViews::DivideSurplus(std::vector<QuotaView>& views) const {
  constexpr int64_t kAversion = 1000;
  int64_t cards = 0, usage = 0;
  for (const auto& [model, count] : cluster_.capacity) cards += count;
  for (const QuotaView& view : views) usage += view.report.decayed_milli_gpu_hours;
  std::vector<FairShareMember> members;
  std::vector<QuotaView*> leaves;
  for (QuotaView& view : views) {
    if (!view.report.leaf) continue;
    FairShareMember member;
    member.key = view.report.name;
    member.weight = cluster_.book.WeightOf(view.report.name);
    Charge held;
    ChargeLimit nominal = Charge{};
    for (const QuotaLineReport& line : view.report.lines) {
      // `any`, the last line, covers every model.
      const bool any = line.line.model == kAnyModel;
      held = any ? line.line.used : AddSaturating(held, line.line.used);
      nominal = any ? line.line.nominal : nominal.Plus(line.line.nominal);
    }
    member.nominal = std::min<Limit>(nominal.Larger(), cards * kQuantaPerGpu).saturated();
    member.demand = GpuEquivalents(held) + view.pending_quanta;
    member.usage_ppm = usage == 0 ? 0 : view.report.decayed_milli_gpu_hours * 1'000'000 / usage;
    members.push_back(std::move(member));
    leaves.push_back(&view);
  }
  const std::vector<int64_t> shares = DivideFairly(cards * kQuantaPerGpu, members, kAversion);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i]->report.fair_share = shares[i];
}

std::vector<PendingRow> EngineViews::Pending() {
  // By number first: many thousands may wait, in a few rows.
  std::map<std::tuple<QuotaId, const GpuClass*, Reason>, PendingRow> sums;
  const auto add = [&](const PodRequest& request, Reason reason, int64_t quanta) {
    const QuotaMembership membership =
        cluster_.book.MembershipOf(request.name.ns, request.priority_class);
    PendingRow& row = sums[{membership.leaf, membership.gpu_class, reason}];
    ++row.workloads;
    row.quanta += quanta;
  };
  for (const PodUid& uid : cluster_.pending) {
    PodRecord& record = *cluster_.Find(uid);
    add(*record.request, record.last_reason,
        record.asked.empty() ? parts_.foreseen.Of(record) : Quanta(record.asked));
  }
  for (const auto& [uid, pod] : parts_.claim_views.WaitingPods())
    add(*pod->request, pod->last_reason, Quanta(pod->asked));
  std::map<std::tuple<std::string, std::string, Reason>, PendingRow> rows;
  for (auto& [key, row] : sums) {
    const auto& [leaf, gpu_class, reason] = key;
    if (leaf != kNoQuota) row.leaf = cluster_.book.tree().name(leaf);
    if (gpu_class != nullptr) row.workload_class = gpu_class->name;
    row.reason = reason;
    rows.emplace(std::tuple(row.leaf, row.workload_class, reason), std::move(row));
  }
  std::vector<PendingRow> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  return out;
}

std::vector<PendingRow> Engine::Pending(Instant) { return EngineViews(*parts_).Pending(); }

std::vector<QuotaView> Engine::Quotas(Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  // Nobody is shown who waits for what.
  if (cluster.set->quotas.empty()) return {};
  std::map<std::string, std::pair<int64_t, int64_t>> waiting;  // leaf and its ancestors
  for (const PendingRow& row : Pending(now)) {
    for (QuotaId id = cluster.book.tree().Find(row.leaf); id != kNoQuota;
         id = cluster.book.tree().parent(id)) {
      auto& [workloads, quanta] = waiting[cluster.book.tree().name(id)];
      workloads += row.workloads;
      quanta += row.quanta;
    }
  }
  const std::string oversubscribed = EngineViews(parts).Oversubscription();
  std::vector<QuotaView> views;
  for (QuotaReport& report : cluster.book.Quotas(now)) {
    QuotaView view;
    const auto found = waiting.find(report.name);
    if (found != waiting.end()) {
      view.pending_workloads = found->second.first;
      view.pending_quanta = found->second.second;
    }
    for (const QuotaLineReport& line : report.lines) {
      view.over_limit |= line.line.available.compute < 0 || line.line.available.memory < 0;
    }
    view.oversubscribed = oversubscribed;
    for (const QuotaLineReport& line : report.lines) {
      const std::string& model = line.line.model;
      const auto cards = cluster.capacity.find(model);
      if (model != kAnyModel && (cards == cluster.capacity.end() || cards->second == 0)) {
        view.absent_models.push_back(model);
      }
    }
    view.report = std::move(report);
    views.push_back(std::move(view));
  }
  EngineViews(parts).DivideSurplus(views);
  return views;
}

std::vector<std::pair<PodUid, Reason>> Engine::Waiting() const {
  std::vector<std::pair<PodUid, Reason>> waiting;
  for (const PodUid& uid : parts_->cluster.pending) {
    const Reason reason = parts_->cluster.pods.at(uid).last_reason;
    if (reason != Reason::kNone) waiting.emplace_back(uid, reason);
  }
  for (const auto& [uid, pod] : parts_->claim_views.WaitingPods()) {
    if (pod->last_reason != Reason::kNone) waiting.emplace_back(uid, pod->last_reason);
  }
  std::ranges::sort(waiting);
  return waiting;
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

Charge Engine::HeldQuanta() const {
  Charge held;
  for (const auto& [uid, work] : parts_->cluster.book.holdings()) {
    held = AddSaturating(held, TotalOf(work.parts));
  }
  return held;
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
