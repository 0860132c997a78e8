// Holdings, admission and time. What administrators declare is taken up in quota_declared.cc;
// reports and words are in quota_report.cc.
#include "quota/quota_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr Millis kDecayHalfLife = std::chrono::hours(168);
constexpr Millis kPastKept = std::chrono::hours(24 * 33);  // longer than any window
// Namespaces and priority classes remembered; questions may name any.
constexpr std::size_t kMostRoutes = 20'000;

bool IsNever(const QuotaMembership& membership) {
  return membership.gpu_class != nullptr &&
         membership.gpu_class->preemptible == Preemptible::kNever;
}

std::string MeterKey(const PodUid& uid, const std::string& model) {
  return uid.str() + "/" + model;
}

AdmissionCode CodeOf(QuotaRefusal refusal) {
  switch (refusal) {
    case QuotaRefusal::kNone:
      return AdmissionCode::kAdmitted;
    case QuotaRefusal::kExceedsMax:
      return AdmissionCode::kExceedsMaxQuota;
    case QuotaRefusal::kBorrowLimit:
      return AdmissionCode::kBorrowLimit;
    case QuotaRefusal::kLenderLimit:
      return AdmissionCode::kLenderLimit;
    case QuotaRefusal::kWaiting:
      return AdmissionCode::kWaitingForQuota;
  }
  TRANCHE_CHECK(false);
}

HeldSums::Holder HolderOf(const HeldWork& work) {
  return {work.pod.ns, work.leaf, work.workload_class, work.parts};
}

Charge Minus(const Charge& left, const Charge& right) {
  return {left.compute - right.compute, left.memory - right.memory};
}

bool Exceeds(const Charge& wanted, const ChargeLimit& limit, QuotaVerdict& verdict) {
  for (const Dimension dimension : kDimensions) {
    const int64_t amount = PartOf(wanted, dimension);
    if (PartOf(limit, dimension).Allows(amount)) continue;
    verdict.dimension = dimension;
    verdict.short_by = amount - PartOf(limit, dimension).saturated();
    return true;
  }
  return false;
}

}  // namespace

QuotaBook::QuotaBook() : set_(std::make_shared<const PolicySet>()) {}

void QuotaBook::AddToTree(const HeldWork& work, int sign) {
  const QuotaId leaf = tree_.Find(work.leaf);
  if (work.leaf.empty() || leaf == kNoQuota) return;
  const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
  const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
  for (const ModelCharge& part : work.parts) {
    const LineId line = tree_.LineOf(leaf, part.model);
    if (sign > 0) {
      tree_.Add(leaf, line, part.charge);
    } else {
      tree_.Remove(leaf, line, part.charge);
    }
    if (!never) continue;
    for (const LineId charged : {line, kAnyLine}) {
      if (charged == kNoLine) continue;
      Charge& held = never_held_[{work.leaf, charged}];
      held = sign > 0 ? AddSaturating(held, part.charge) : Minus(held, part.charge);
    }
  }
}

// ---- the past ---------------------------------------------------------------------------------

void QuotaBook::Restore(const std::vector<WindowClosing>& closings,
                        const std::vector<std::pair<std::string, DecayedUsage::State>>& decay) {
  closings_.insert(closings_.end(), closings.begin(), closings.end());
  for (const auto& [leaf, state] : decay) {
    auto at = leaves_.try_emplace(leaf, LeafUse{{}, DecayedUsage(kDecayHalfLife), true, {}}).first;
    at->second.decayed.Restore(state);
    // What is held still says so by itself.
    at->second.decayed.Hold(0, state.at);
  }
}

void QuotaBook::AddPast(const PastUse& use) {
  const PastLife life{use.since, use.running.value_or(PastLife::kNeverRan), use.until};
  past_.Add({use.leaf, use.ns, use.workload_class, use.parts, use.sign}, {&life, 1});
}

// ---- questions --------------------------------------------------------------------------------

bool QuotaBook::MetersOf(const HeldWork& work, const GpuBudget& budget) const {
  if (!budget.ns.empty()) return budget.ns == work.pod.ns;
  if (work.leaf.empty()) return false;
  for (QuotaId id = tree_.Find(work.leaf); id != kNoQuota; id = tree_.parent(id)) {
    if (tree_.name(id) == budget.quota_ref) return true;
  }
  return false;
}

int64_t QuotaBook::WeightFor(const GpuBudget& budget, const std::string& model,
                             const std::string& workload_class) const {
  const int64_t rate = RateOf(budget, model);
  const GpuClass* gpu_class = set_->ClassNamed(workload_class);
  return rate * (gpu_class == nullptr ? kUsualRate : gpu_class->charge_factor);
}

QuotaMembership QuotaBook::MembershipOf(const std::string& ns,
                                        const std::string& priority_class) const {
  auto [at, fresh] = routes_.try_emplace(ns);
  Route& route = at->second;
  if (fresh) {
    const std::vector<const GpuQuota*> leaves = set_->LeavesOf(ns);
    HeldWork work;
    work.pod.ns = ns;
    if (leaves.size() > 1) route.membership.leaf_found = QuotaMembership::Leaf::kConflict;
    if (leaves.size() == 1) {
      route.membership.leaf_found = QuotaMembership::Leaf::kFound;
      route.membership.leaf = tree_.Find(leaves.front()->name);
      route.membership.mode = leaves.front()->mode;
      work.leaf = leaves.front()->name;
    }
    for (std::size_t i = 0; i < set_->budgets.size(); ++i) {
      if (MetersOf(work, set_->budgets[i])) route.budgets.push_back(i);
    }
  }
  QuotaMembership membership = route.membership;
  membership.budgets = route.budgets;
  const auto [found, unknown] = classes_.try_emplace(priority_class);
  if (unknown) found->second = set_->ClassOf(priority_class);
  membership.gpu_class = found->second;
  return membership;
}

Charge QuotaBook::NeverHeld(const std::string& leaf, LineId line) const {
  const auto found = never_held_.find({leaf, line});
  return found == never_held_.end() ? Charge{} : found->second;
}

// The strictest budget decides. One that demotes lets work in that can be preempted.
void QuotaBook::AskBudgets(const QuotaMembership& membership, std::span<const ModelCharge> parts,
                           std::optional<Millis> runtime, Instant now, Admission& admission) const {
  const std::string no_class;
  const std::string& workload_class =
      membership.gpu_class == nullptr ? no_class : membership.gpu_class->name;
  for (const std::size_t position : membership.budgets) {
    const BudgetMeter& meter = meters_[position].meter;
    const OnExhaustion on_exhaustion = meter.spec().on_exhaustion;
    if (on_exhaustion == OnExhaustion::kWarn) continue;
    // Charges of several models have different weights: each is asked for by itself.
    for (const ModelCharge& part : parts) {
      const int64_t weight = WeightFor(meter.spec(), part.model, workload_class);
      if (weight == 0) continue;
      const BudgetVerdict verdict = meter.Admit(part.charge, weight, runtime, now);
      if (verdict.fits) continue;
      if (on_exhaustion == OnExhaustion::kDemote && !IsNever(membership)) {
        admission.demoted = true;
        if (!admission.budget) admission.budget = position;
        continue;
      }
      // All of them must agree, so the latest moment counts; none at all is later than any.
      const bool first = admission.code != AdmissionCode::kBudgetExhausted;
      const bool later = !first && admission.eligible_at &&
                         (!verdict.eligible_at || *verdict.eligible_at > *admission.eligible_at);
      if (!first && !later) continue;
      admission.code = AdmissionCode::kBudgetExhausted;
      admission.eligible_at = verdict.eligible_at;
      admission.budget = position;
    }
  }
}

// Work that is never preempted must fit nominal together with all other such work of the leaf.
QuotaVerdict QuotaBook::AskNominal(QuotaId leaf, LineId line, const Charge& charge) const {
  QuotaVerdict verdict;
  for (const LineId charged : {line, kAnyLine}) {
    if (charged == kNoLine) continue;
    const ChargeLimit nominal = tree_.Nominal(leaf, charged);
    const Charge with = AddSaturating(NeverHeld(tree_.name(leaf), charged), charge);
    if (Exceeds(charge, nominal, verdict)) {
      verdict.refusal = QuotaRefusal::kExceedsMax;
    } else if (Exceeds(with, nominal, verdict)) {
      verdict.refusal = QuotaRefusal::kWaiting;
    } else {
      continue;
    }
    verdict.line = charged;
    return verdict;
  }
  return verdict;
}

bool QuotaBook::FitsNever(const QuotaMembership& membership,
                          std::span<const ModelCharge> parts) const {
  if (!IsNever(membership)) return true;
  return std::ranges::all_of(parts, [&](const ModelCharge& part) {
    const LineId line = tree_.LineOf(membership.leaf, part.model);
    return AskNominal(membership.leaf, line, part.charge).refusal == QuotaRefusal::kNone;
  });
}

Admission QuotaBook::Admit(const QuotaMembership& membership, std::span<const ModelCharge> parts,
                           std::optional<Millis> runtime, Instant now) {
  Admission admission;
  AskBudgets(membership, parts, runtime, now, admission);
  if (admission.code != AdmissionCode::kAdmitted || membership.leaf == kNoQuota) return admission;
  std::size_t added = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LineId line = tree_.LineOf(membership.leaf, parts[i].model);
    QuotaVerdict verdict;
    if (IsNever(membership)) verdict = AskNominal(membership.leaf, line, parts[i].charge);
    if (verdict.refusal == QuotaRefusal::kNone) {
      verdict = tree_.Check(membership.leaf, line, parts[i].charge);
    }
    admission.borrows |= verdict.borrows;
    if (verdict.refusal != QuotaRefusal::kNone) {
      admission.quota = verdict;
      admission.code = CodeOf(verdict.refusal);
      admission.part = i;
      break;
    }
    // The next model's part shares the `any` line with this one.
    if (i + 1 == parts.size()) break;
    tree_.Add(membership.leaf, line, parts[i].charge);
    ++added;
  }
  while (added-- > 0) {
    const ModelCharge& part = parts[added];
    tree_.Remove(membership.leaf, tree_.LineOf(membership.leaf, part.model), part.charge);
  }
  return admission;
}

void QuotaBook::TrimRoutes() {
  if (routes_.size() > kMostRoutes) routes_.clear();
  if (classes_.size() > kMostRoutes) classes_.clear();
}

// ---- holdings ---------------------------------------------------------------------------------

void QuotaBook::StartMeter(Meter& meter, const PodUid& uid, const HeldWork& work, Instant at) {
  for (const ModelCharge& part : work.parts) {
    const GpuBudget& budget = meter.meter.spec();
    const int64_t weight = WeightFor(budget, part.model, work.workload_class);
    const bool from_running = budget.meter_from == MeterFrom::kRunning;
    std::optional<Instant> ends;
    if (work.runtime) ends = (from_running ? *work.running : work.since) + *work.runtime;
    meter.meter.Start(MeterKey(uid, part.model), part.charge, weight, at, ends);
  }
}

void QuotaBook::StopMeter(Meter& meter, const PodUid& uid, const HeldWork& work, Instant at) {
  for (const ModelCharge& part : work.parts) meter.meter.Stop(MeterKey(uid, part.model), at);
}

void QuotaBook::Hold(const PodUid& uid, HeldWork work) {
  const auto [at, fresh] = holdings_.try_emplace(uid, std::move(work));
  if (!fresh) {
    faults_.push_back({BookFaultKind::kHeldTwice, uid.str()});
    return;
  }
  HeldWork& held = at->second;
  held.quota = held.leaf.empty() ? kNoQuota : tree_.Find(held.leaf);
  ++work_by_class_[held.workload_class];
  held_ = AddSaturating(held_, TotalOf(held.parts));
  sums_.Hold(HolderOf(held), held.since);
  if (!held.released) AddToTree(held, 1);
  for (Meter& meter : meters_) {
    if (!MetersOf(held, meter.meter.spec())) continue;
    if (meter.meter.spec().meter_from == MeterFrom::kBind) {
      StartMeter(meter, uid, held, held.since);
    } else if (held.running) {
      StartMeter(meter, uid, held, *held.running);
    }
  }
  if (held.leaf.empty()) return;
  LeafUse& use = leaves_.try_emplace(held.leaf, LeafUse{{}, DecayedUsage(kDecayHalfLife), true, {}})
                     .first->second;
  use.held = AddSaturating(use.held, TotalOf(held.parts));
  use.decayed.Hold(GpuEquivalents(use.held), held.since);
  use.marks_stale = true;
  use.work.emplace(uid, &at->second);
}

void QuotaBook::Running(const PodUid& uid, Instant at) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end() || found->second.running) return;
  HeldWork& work = found->second;
  work.running = at;
  for (Meter& meter : meters_) {
    const bool counts =
        meter.meter.spec().meter_from == MeterFrom::kRunning && MetersOf(work, meter.meter.spec());
    if (counts) StartMeter(meter, uid, work, at);
  }
}

void QuotaBook::DeclareRuntime(const PodUid& uid, Millis runtime, Instant now) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end()) return;
  HeldWork& work = found->second;
  work.runtime = runtime;
  now = std::max({now, work.since, work.running.value_or(work.since)});
  for (Meter& meter : meters_) {
    const GpuBudget& budget = meter.meter.spec();
    if (!MetersOf(work, budget)) continue;
    if (budget.meter_from == MeterFrom::kRunning && !work.running) continue;
    StopMeter(meter, uid, work, now);
    StartMeter(meter, uid, work, now);
  }
}

void QuotaBook::DeclareGang(const PodUid& uid, const std::string& gang) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end() || found->second.gang == gang) return;
  found->second.gang = gang;
  if (const auto leaf = leaves_.find(found->second.leaf); leaf != leaves_.end()) {
    leaf->second.marks_stale = true;
  }
}

std::vector<std::size_t> QuotaBook::BudgetsToDrain() const {
  std::vector<std::size_t> drained;
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    const bool drains = meters_[i].meter.spec().on_exhaustion == OnExhaustion::kDrain;
    if (drains && meters_[i].exhausted) drained.push_back(i);
  }
  return drained;
}

void QuotaBook::ReleaseQuota(const PodUid& uid) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end() || found->second.released) return;
  AddToTree(found->second, -1);
  found->second.released = true;
  if (const auto leaf = leaves_.find(found->second.leaf); leaf != leaves_.end()) {
    leaf->second.marks_stale = true;
  }
}

void QuotaBook::Release(const PodUid& uid, Instant at) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end()) return;
  HeldWork work = std::move(found->second);
  holdings_.erase(found);
  const auto of_class = work_by_class_.find(work.workload_class);
  if (--of_class->second == 0) work_by_class_.erase(of_class);
  held_ = Minus(held_, TotalOf(work.parts));
  at = std::max(at, work.since);
  sums_.Release(HolderOf(work), at);
  if (!work.released) AddToTree(work, -1);
  // Every meter: the tree may have changed since the one that counts it was chosen.
  for (Meter& meter : meters_) StopMeter(meter, uid, work, at);
  if (const auto leaf = leaves_.find(work.leaf); leaf != leaves_.end()) {
    LeafUse& use = leaf->second;
    use.held = Minus(use.held, TotalOf(work.parts));
    use.decayed.Hold(GpuEquivalents(use.held), at);
    use.marks_stale = true;
    use.work.erase(uid);
  }
  if (at > work.since) {
    AddPast({work.leaf, work.pod.ns, work.workload_class, std::move(work.parts), work.since,
             work.running, at, 1});
  }
}

void QuotaBook::Refund(const PodUid& uid, const TimeSpan& span) {
  const auto found = holdings_.find(uid);
  if (found == holdings_.end() || span.end <= span.start) return;
  const HeldWork& work = found->second;
  for (Meter& meter : meters_) {
    const GpuBudget& budget = meter.meter.spec();
    if (!MetersOf(work, budget)) continue;
    const bool from_running = budget.meter_from == MeterFrom::kRunning;
    if (from_running && !work.running) continue;
    TimeSpan counted = span;
    if (from_running) counted.start = std::max(counted.start, *work.running);
    if (counted.end <= counted.start) continue;
    for (const ModelCharge& part : work.parts) {
      meter.meter.Adjust(part.charge, WeightFor(budget, part.model, work.workload_class), counted,
                         -1);
    }
  }
  AddPast({work.leaf, work.pod.ns, work.workload_class, work.parts, span.start, work.running,
           span.end, -1});
}

void QuotaBook::Step(Instant from, Instant to) {
  sums_.Step(from, to);
  for (auto& [uid, work] : holdings_) {
    AddPast({work.leaf, work.pod.ns, work.workload_class, work.parts, work.since, work.running,
             from, 1});
    for (Meter& meter : meters_) StopMeter(meter, uid, work, from);
    if (work.runtime) work.runtime = std::max(*work.runtime - (from - work.since), Millis{0});
    work.since = to;
    if (work.running) work.running = to;
    for (Meter& meter : meters_) {
      const GpuBudget& budget = meter.meter.spec();
      if (!MetersOf(work, budget)) continue;
      if (budget.meter_from == MeterFrom::kRunning && !work.running) continue;
      StartMeter(meter, uid, work, to);
    }
  }
  for (auto& [leaf, use] : leaves_) {
    use.decayed.Hold(0, from);
    use.decayed.Hold(GpuEquivalents(use.held), to);
  }
}

const HeldWork* QuotaBook::Find(const PodUid& uid) const {
  const auto found = holdings_.find(uid);
  return found == holdings_.end() ? nullptr : &found->second;
}

// ---- time -------------------------------------------------------------------------------------

bool QuotaBook::RefreshExhausted(Instant now) {
  bool changed = false;
  for (Meter& meter : meters_) {
    const bool exhausted = meter.meter.Exhausted(now);
    changed |= exhausted != meter.exhausted;
    if (meter.exhausted && !exhausted) LiftDemotions(meter.meter.spec().uid);
    meter.exhausted = exhausted;
  }
  return changed;
}

void QuotaBook::LiftDemotions(const std::string& budget_uid) {
  for (auto& [uid, work] : holdings_) {
    if (work.demoted_by.empty() || work.demoted_by != budget_uid) continue;
    work.demoted_by.clear();
    const auto use = leaves_.find(work.leaf);
    if (use != leaves_.end()) use->second.marks_stale = true;
  }
}

void QuotaBook::AdvanceMeters(Instant now) {
  for (Meter& meter : meters_) {
    for (WindowClosing& closing : meter.meter.Advance(now)) {
      LiftDemotions(closing.budget_uid);
      closings_.push_back(closing);
      untold_.push_back(std::move(closing));
    }
  }
}

bool QuotaBook::Advance(Instant now, std::vector<WindowClosing>& closings) {
  AdvanceMeters(now);
  const bool ended = !untold_.empty();
  std::ranges::move(std::exchange(untold_, {}), std::back_inserter(closings));
  const bool changed = RefreshExhausted(now);
  if (changed) RebuildTree();
  past_.Forget(now - kPastKept);
  return ended || changed;
}

std::optional<Instant> QuotaBook::NextChange(Instant now) const {
  std::optional<Instant> next;
  for (const Meter& meter : meters_) {
    const std::optional<Instant> at = meter.meter.NextChange(now);
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

}  // namespace tranche
