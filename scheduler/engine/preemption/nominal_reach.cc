#include "scheduler/engine/preemption/nominal_reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "quota/tree/limits.h"
#include "scheduler/engine/state/kept_room.h"

namespace tranche {
namespace {

// More than any machine has.
constexpr int64_t kMostGpus = 32;
constexpr std::size_t kMostNamed = 3;

// A bound that stays true when it is told a while later, and seldom changes its text.
Millis RoundedUp(Millis bound) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  const Millis step = bound <= minutes(2)    ? Millis(seconds(10))
                      : bound <= minutes(10) ? Millis(minutes(1))
                                             : Millis(minutes(5));
  return (bound + step - Millis{1}) / step * step;
}

PodRequest WholeGpus(const std::string& ns, const std::string& model, int64_t gpus) {
  static const auto kTolerant =
      std::make_shared<const NodeConstraints>(NodeConstraints{{}, {}, false, {{"", true, "", ""}}});
  PodRequest request;
  // No UID of the cluster looks like this.
  request.uid = PodUid("own-work/");
  request.name = {ns, "own-work"};
  request.style = RequestStyle::kNative;
  request.containers.push_back({"own-work", ContainerRole::kApp, gpus, {}});
  Ask ask;
  ask.resource = Resource::kGpu;
  ask.count = gpus;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu", gpus});
  if (model != kAnyModel) request.models_any.push_back(model);
  request.constraints = kTolerant;
  return request;
}

std::string Named(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

const std::vector<LineReach>* NominalReach::Of(const std::string& quota) const {
  const auto found = stated_.find(quota);
  return found == stated_.end() ? nullptr : &found->second;
}

bool NominalReach::GoOn(Instant now) {
  // Quotas, budgets and owners that lines and pod speak of may be gone with the set they are of.
  if (set_ != cluster_.set) at_ = lines_.size();
  if (at_ == lines_.size()) {
    const bool anew = set_ != cluster_.set || !again_at_ || now >= *again_at_;
    if (!anew) return false;
    if (set_ == cluster_.set && !timed_ && version_ == cluster_.version()) return false;
    Begin(now);
    if (lines_.empty()) return false;
  }
  Ask(now);
  return true;
}

void NominalReach::Begin(Instant now) {
  set_ = cluster_.set;
  version_ = cluster_.version();
  timed_ = false;
  again_at_ = now + kAnew;
  at_ = 0;
  lines_.clear();
  pod_.reset();
  std::set<std::string> there;
  for (const GpuQuota& quota : set_->quotas) {
    const auto owned = set_->owned.find(quota.name);
    const bool team = quota.namespaces && quota.mode == QuotaMode::kEnforce;
    if (!team || owned == set_->owned.end() || owned->second.empty()) continue;
    for (const QuotaLine& line : quota.lines) {
      const absl::StatusOr<LineLimits> limits = ToLimits(line);
      if (!limits.ok() || limits->nominal.Smaller() < Limit(kQuantaPerGpu)) continue;
      if (!line.pool.empty()) continue;  // no request of whole GPUs asks for a pool
      Line& added = lines_.emplace_back();
      added.quota = quota.name;
      added.ns = *owned->second.begin();
      added.model = line.model;
      added.reach.model = line.model;
      there.insert(quota.name);
    }
  }
  std::erase_if(stated_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

// Would the pod be the team's own, on some model?
bool NominalReach::IsOwn(const Line& line, int64_t gpus, Instant now) {
  const QuotaMembership& membership = pod_->context.membership;
  const auto own = [&](const std::string& model) {
    const ModelCharge charge{model, {gpus * kQuantaPerGpu, gpus * kQuantaPerGpu}};
    const LineMarks marks = cluster_.book.MarksIfAdded(membership, std::span(&charge, 1), now);
    return marks.state == QuotaState::kInQuota;
  };
  if (line.model != kAnyModel) return own(line.model);
  return std::ranges::any_of(cluster_.capacity, [&](const auto& model) {
    return model.second >= gpus * kQuantaPerGpu && own(model.first);
  });
}

std::vector<NodeId> NominalReach::Holders() {
  Selection& selection = parts_.selection;
  Shape* const shape = selection.ShapeOf(pod_->context);
  selection.BeginFits(*pod_->members.front());
  std::vector<NodeId> nodes;
  for (const NodeId id : cluster_.names.ascending()) {
    if (cluster_.hot[id].closed == Reason::kUnknownNode) continue;
    const Reason reason = selection.Lookup(shape, pod_->context, id, Taken::kFirmly).reason;
    if (reason == Reason::kNone || MoreRoomWouldHelp(reason)) nodes.push_back(id);
  }
  return nodes;
}

bool NominalReach::NextSize(Instant now) {
  Line& line = lines_[at_];
  const int64_t gpus = line.reach.gpus + 1;
  questions_ = {};
  block_.reset();
  pod_.emplace();
  pod_->members.push_back(std::make_shared<const PodRequest>(WholeGpus(line.ns, line.model, gpus)));
  pod_->context = rules_.ContextOf(*pod_->members.front());
  const bool of_it = cluster_.book.tree().Find(line.quota) == pod_->context.membership.leaf;
  const bool own = of_it && gpus <= kMostGpus && IsOwn(line, gpus, now);
  if (own && !Holders().empty()) return true;
  if (line.reach.gpus == 0) {
    line.unsaid = own;
    line.reach.why = "its nominal is in use";
  }
  return false;
}

void NominalReach::Ask(Instant now) {
  if (!pod_) {
    if (!NextSize(now)) return EndLine();
    if (pod_->context.whole != Reason::kNone) {
      return End("Refused", std::string(Describe(pod_->context.whole).text));
    }
    if (planner_.FitsNow(*pod_, now)) return Note({}, {});
    if (!MayPlan(pod_->context)) return End("PreemptionOff", "nobody is evicted for its pods");
    return;
  }
  // What it says of quotas and budgets does not outlive every edit.
  pod_->context = rules_.ContextOf(*pod_->members.front());
  const AskedPlan asked = AskNext(questions_, parts_, *pod_, now, {});
  if (asked.answer.plan) {
    const auto block = planner_.BlockOf(asked, now);
    if (!block || IgnoresGuards(asked.question)) return NotePlan(asked, now);
    block_ = block;
  }
  if (!questions_.done()) return;
  switch (questions_.result()) {
    case ReclaimAnswer::Result::kFits:
      return Note({}, Leaving(now));
    case ReclaimAnswer::Result::kUnresolved:
      return End("SearchUnresolved", "the search for victims ended before it knew");
    case ReclaimAnswer::Result::kPlan:
    case ReclaimAnswer::Result::kImpossible:
      break;
  }
  if (block_) return End("PDBBlocked", block_->detail);
  EndWithoutPlan();
}

void NominalReach::NotePlan(const AskedPlan& asked, Instant now) {
  const ReclaimCase& reclaim_case = *asked.reclaim_case;
  Millis grace = Leaving(now);
  Millis guards{0};
  std::vector<const PodRecord*> victims;
  for (const int unit : asked.answer.plan->victims) {
    const GuardVerdict& verdict = reclaim_case.guard_of(unit);
    if (verdict.guard != Guard::kNone) {
      // A budget says not when it will allow it.
      const PodRecord& first = *parts_.claims.Find(reclaim_case.pods_of(unit).front());
      if (!verdict.until || verdict.guard == Guard::kDisruptionBudget) {
        return End("PDBBlocked", fmt::format("{} would have to go and is protected {}",
                                             first.request->name.str(), GuardName(verdict.guard)));
      }
      guards = std::max<Millis>(guards, *verdict.until - now);
    }
    for (const PodUid& uid : reclaim_case.pods_of(unit)) {
      grace = std::max(grace, GraceOf(uid));
      victims.push_back(parts_.claims.Find(uid));
    }
  }
  if (!parts_.guards.BudgetsAllow(victims, now)) {
    return End("PDBBlocked",
               "PodDisruptionBudgets do not allow all who would have to go to go together");
  }
  // Before that it may wait for a node, and then for one of them to write a checkpoint.
  Millis gap{0};
  for (const WorkInTime& risk : reclaim_case.RisksOf(asked.answer.plan->victims)) {
    if (NextCheckpoint(risk, now)) gap = std::max(gap, risk.gap);
  }
  guards += awaited_.LongestFor(*pod_, now) + std::min(gap, PatienceOf(*pod_));
  const std::optional<Millis> hour = HourOf(asked, now);
  if (!hour) {
    return End("EvictionBudget", "more of its own pods would have to go than may within an hour");
  }
  Note(std::max(guards, *hour), grace);
}

// By R1 and R2a only a team's own pods come under its hourly limit, and only where guards are left
// out is it left out as well.
std::optional<Millis> NominalReach::HourOf(const AskedPlan& asked, Instant now) const {
  if (!IgnoresGuards(asked.question)) return Millis{0};
  const ReclaimProblem& problem = asked.reclaim_case->problem();
  int64_t own = 0;
  for (const int unit : asked.answer.plan->victims) {
    const VictimUnit& victim = problem.units[static_cast<std::size_t>(unit)];
    if (victim.leaf == problem.leaf) own += static_cast<int64_t>(victim.pods.size());
  }
  const GpuQuota* spec = cluster_.set->QuotaNamed(lines_[at_].quota);
  if (own == 0 || spec == nullptr) return Millis{0};
  const auto promised = asked.reclaim_case->Promised();
  const int64_t most = spec->max_evictions_per_hour;
  if (own > most || promised.contains(spec->name)) return std::nullopt;
  const bool now_within = parts_.reclaims.history.PodsInHour(spec->name, now) + own <= most;
  return now_within ? Millis{0} : Millis(std::chrono::hours(1));
}

Millis NominalReach::GraceOf(const PodUid& uid) const {
  const PodRecord& record = *parts_.claims.Find(uid);
  const std::optional<HeldWork> work = parts_.claims.WorkOf(uid);
  const GpuClass* gpu_class = work ? cluster_.set->ClassNamed(work->workload_class) : nullptr;
  return gpu_class == nullptr ? record.traits.grace
                              : gpu_class->grace_period.value_or(record.traits.grace);
}

Millis NominalReach::Leaving(Instant now) const {
  Millis longest{0};
  const auto note = [&](const PodUid& uid) {
    const PodRecord* record = parts_.claims.Find(uid);
    if (record == nullptr) return;
    const std::optional<Instant>& end = record->traits.leaves_at;
    // One that is overdue is waited for a while, then counted on no longer.
    const Millis left = !end ? GraceOf(uid) : *end > now ? *end - now : kLeaveSlack;
    longest = std::max(longest, left);
  };
  for (const PodUid& uid : cluster_.terminating) {
    if (IsLeaving(*cluster_.Find(uid), now)) note(uid);
  }
  for (const auto& [uid, reclaim] : parts_.reclaims.of_victim) note(uid);
  return longest;
}

void NominalReach::Note(Millis guards, Millis grace) {
  LineReach& reach = lines_[at_].reach;
  ++reach.gpus;
  pod_.reset();
  timed_ |= guards > Millis{0} || grace > Millis{0};
  const bool at_once = guards == Millis{0} && grace == Millis{0};
  if (!at_once) {
    reach.within = std::max(reach.within, RoundedUp(guards + grace + 2 * planner_.Round()));
  }
}

// Where the pod would have room: whose work keeps it out?
void NominalReach::EndWithoutPlan() {
  const QuotaId own = pod_->context.membership.leaf;
  const int64_t asked = pod_->members.front()->asks.front().count * kQuantaPerGpu;
  std::vector<std::string> closed, full;
  std::size_t open = 0;
  for (const NodeId id : Holders()) {
    const NodeState& state = cluster_.nodes[id]->state;
    const std::string& name = state.facts().name.str();
    if (cluster_.hot[id].closed != Reason::kNone) {
      closed.push_back(name);
      continue;
    }
    ++open;
    int64_t stays = 0;
    for (const Holding& holding : state.holdings()) {
      const HeldWork* work = cluster_.book.Find(holding.uid);
      if (work == nullptr) continue;
      const GpuClass* gpu_class = cluster_.set->ClassNamed(work->workload_class);
      const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
      const bool keeps = never || work->quota == own || work->marks.state == QuotaState::kInQuota;
      if (keeps) stays += GpuEquivalents(TotalOf(work->parts));
    }
    const auto cards = static_cast<int64_t>(state.inventory().cards.size());
    if (stays + asked > cards * kQuantaPerGpu) full.push_back(name);
  }
  if (open == 0) return End("NodesClosed", "closed are " + Named(closed));
  if (full.size() < open) return End("NoRoom", "no rule makes room for it on any node");
  End("Interleaved", "work that is within nominal or never evicted stands on " + Named(full));
}

void NominalReach::End(std::string code, std::string why) {
  LineReach& reach = lines_[at_].reach;
  reach.code = std::move(code);
  reach.why = std::move(why);
  EndLine();
}

void NominalReach::EndLine() {
  pod_.reset();
  const std::string& quota = lines_[at_].quota;
  if (++at_ < lines_.size() && lines_[at_].quota == quota) return;
  std::vector<LineReach> stated;
  for (const Line& line : lines_) {
    if (line.quota == quota && !line.unsaid) stated.push_back(line.reach);
  }
  stated_[quota] = std::move(stated);
}

}  // namespace tranche
