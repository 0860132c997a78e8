// Marks: which of each leaf's work is in quota. Also room that is kept for work to come.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "quota/quota_book.h"

namespace tranche {
std::vector<MarkUnit> QuotaBook::UnitsOf(const std::string& leaf, const LeafUse* use,
                                         std::vector<std::size_t>& unit_of, Kept kept,
                                         const std::unordered_set<PodUid>& gone) const {
  const QuotaId quota = tree_.Find(leaf);
  std::map<std::string, std::size_t> gangs;
  std::vector<MarkUnit> units;
  const auto add = [&](const PodUid& uid, const HeldWork& work) {
    std::size_t at = units.size();
    if (!work.gang.empty()) {
      at = gangs.try_emplace(work.pod.ns + "/" + work.gang, units.size()).first->second;
    }
    const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
    const bool preemptible = gpu_class == nullptr || gpu_class->preemptible != Preemptible::kNever;
    if (at == units.size()) {
      units.push_back(
          {uid.str(), preemptible, RankOf(gpu_class), work.since, {}, /*demoted=*/false});
    }
    MarkUnit& unit = units[at];
    unit.preemptible &= preemptible;
    unit.rank = std::max(unit.rank, RankOf(gpu_class));
    unit.start = std::min(unit.start, work.since);
    unit.demoted |= !work.demoted_by.empty();
    for (const ModelCharge& part : work.parts) {
      const LineId line = tree_.LineOf(quota, part.model);
      const auto same = std::ranges::find(unit.parts, line, &MarkUnit::Part::line);
      if (same == unit.parts.end()) {
        unit.parts.push_back({line, part.charge});
      } else {
        same->charge = AddSaturating(same->charge, part.charge);
      }
    }
    return at;
  };
  if (use != nullptr) {
    units.reserve(use->work.size());
    for (const auto& [uid, work] : use->work) {
      if (!gone.contains(uid)) unit_of.push_back(add(uid, *work));
    }
  }
  for (const auto& [uid, work] : earmarks_) {
    if (kept == Kept::kCounted && work.leaf == leaf && !work.tentative) add(uid, work);
  }
  if (suspended_.contains(quota)) {
    for (MarkUnit& unit : units) unit.demoted = true;
  }
  return units;
}

std::vector<MarkUnit> QuotaBook::RunningUnitsOf(const std::string& leaf,
                                                const std::unordered_set<PodUid>& gone,
                                                std::map<PodUid, std::size_t>& place) const {
  const auto use = leaves_.find(leaf);
  std::vector<std::size_t> unit_of;
  std::vector<MarkUnit> units =
      UnitsOf(leaf, use == leaves_.end() ? nullptr : &use->second, unit_of, Kept::kLeftOut, gone);
  if (use == leaves_.end()) return units;
  auto unit = unit_of.begin();
  for (const auto& [uid, work] : use->second.work) {
    if (!gone.contains(uid)) place[uid] = *unit++;
  }
  return units;
}

std::vector<LineMarks> QuotaBook::MarksOf(QuotaId id, const std::vector<MarkUnit>& units) const {
  // Of a quota that is gone nothing is within nominal.
  return MarkLines(units, [this, id](LineId line) {
    return id == kNoQuota ? ChargeLimit(Charge{}) : tree_.Nominal(id, line);
  });
}

// Room is kept and given back within one planning round. What may be evicted must not change with
// it, or two plans would open and close the way for each other for ever.
void QuotaBook::NoteWithinNominal(const std::string& leaf, LeafUse& use,
                                  const std::vector<LineMarks>& marks,
                                  const std::vector<std::size_t>& unit_of) const {
  const bool keeps_room = std::ranges::any_of(
      earmarks_, [&](const auto& earmark) { return earmark.second.leaf == leaf; });
  std::vector<std::size_t> alone_of;
  std::vector<LineMarks> alone;
  if (keeps_room) {
    alone = MarksOf(tree_.Find(leaf), UnitsOf(leaf, &use, alone_of, Kept::kLeftOut));
  }
  std::size_t at = 0;
  for (const auto& [uid, work] : use.work) {
    const LineMarks& mark = keeps_room ? alone[alone_of[at]] : marks[unit_of[at]];
    work->within_nominal = mark.state == QuotaState::kInQuota;
    ++at;
  }
}

void QuotaBook::Remark(const std::string& leaf, LeafUse& use) {
  std::vector<std::size_t> unit_of;
  const std::vector<MarkUnit> units = UnitsOf(leaf, &use, unit_of);
  const QuotaId quota = tree_.Find(leaf);
  const std::vector<LineMarks> marks = MarksOf(quota, units);
  NoteWithinNominal(leaf, use, marks, unit_of);
  use.marked = {};
  std::size_t at = 0;
  for (const auto& [uid, work] : use.work) {
    const std::size_t unit = unit_of[at++];
    work->marks = marks[unit];
    const bool borrowed = marks[unit].state != QuotaState::kInQuota;
    use.marked.borrowed_workloads += borrowed;
    for (const ModelCharge& part : work->parts) {
      if (!units[unit].preemptible) {
        use.marked.non_preemptible = AddSaturating(use.marked.non_preemptible, part.charge);
      }
      if (!borrowed || work->released) continue;
      for (const LineId line : {tree_.LineOf(quota, part.model), kAnyLine}) {
        if (line == kNoLine) continue;
        Charge& sum = use.marked.borrowed[tree_.line_name(line)];
        sum = AddSaturating(sum, part.charge);
      }
    }
  }
  use.marks_stale = false;
}

void QuotaBook::RefreshMarks() {
  for (auto& [leaf, use] : leaves_) {
    if (use.marks_stale) Remark(leaf, use);
  }
}

std::optional<std::string> QuotaBook::RefreshMarks(const std::string& leaf, std::size_t work) {
  std::size_t marked = 0;
  for (auto at = leaves_.lower_bound(leaf); at != leaves_.end(); ++at) {
    if (!at->second.marks_stale) continue;
    if (marked >= work) return at->first;
    Remark(at->first, at->second);
    marked += at->second.work.size();
  }
  return std::nullopt;
}

std::optional<QuotaState> QuotaBook::StateOf(const PodUid& uid) {
  const auto held = holdings_.find(uid);
  if (held == holdings_.end() || held->second.quota == kNoQuota) return std::nullopt;
  LeafUse& use = leaves_.at(held->second.leaf);
  if (use.marks_stale) Remark(held->second.leaf, use);
  return held->second.marks.state;
}

LineMarks QuotaBook::MarksIfAdded(const QuotaMembership& membership,
                                  std::span<const ModelCharge> parts, Instant now) {
  const std::string& leaf = tree_.name(membership.leaf);
  const auto use = leaves_.find(leaf);
  std::vector<std::size_t> unit_of;
  std::vector<MarkUnit> units =
      UnitsOf(leaf, use == leaves_.end() ? nullptr : &use->second, unit_of);
  MarkUnit unit;
  unit.preemptible =
      membership.gpu_class == nullptr || membership.gpu_class->preemptible != Preemptible::kNever;
  unit.rank = membership.gpu_class == nullptr ? kRankWithoutClass : membership.gpu_class->rank;
  unit.start = now;
  unit.demoted = suspended_.contains(membership.leaf);
  for (const ModelCharge& part : parts) {
    unit.parts.push_back({tree_.LineOf(membership.leaf, part.model), part.charge});
  }
  // After everything of its rank that runs: it is the newest, and no key is above this one.
  unit.key.push_back('\x7f');
  units.push_back(std::move(unit));
  return MarkLines(units, [&](LineId line) { return tree_.Nominal(membership.leaf, line); }).back();
}

void QuotaBook::Earmark(const PodUid& uid, HeldWork work) {
  if (holdings_.contains(uid) || earmarks_.contains(uid)) {
    faults_.push_back({BookFaultKind::kKeptTwice, uid.str()});
    return;
  }
  const auto at = earmarks_.emplace(uid, std::move(work)).first;
  AddToTree(at->second, 1);
  if (const auto leaf = leaves_.find(at->second.leaf); leaf != leaves_.end()) {
    leaf->second.marks_stale = true;
  }
}

void QuotaBook::Unearmark(const PodUid& uid) {
  const auto found = earmarks_.find(uid);
  if (found == earmarks_.end()) return;
  AddToTree(found->second, -1);
  if (const auto leaf = leaves_.find(found->second.leaf); leaf != leaves_.end()) {
    leaf->second.marks_stale = true;
  }
  earmarks_.erase(found);
}

}  // namespace tranche
