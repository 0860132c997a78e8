// What would happen to pods that do not exist: placed one after another, with room made for them
// where the rules allow it, and everything taken back.
#include "scheduler/engine/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/engine/views/explain_text.h"
#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

// The pods of one question while a call lasts, as far as they are placed.
class Trial {
 public:
  // Puts those that have seats there again.
  Trial(EngineParts& parts, WhatIfCase& question, Instant now);
  ~Trial();  // takes everything back
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Places one more pod and takes its devices for those that come after it.
  void Try(const PodRequest& request, WhatIfResult& result);
  // The last pod was tried. Where it was the last one of its gang, and fewer of them fit than start
  // together: none of them does.
  void JudgeGang();

 private:
  Reason FindSuiting(const PodRequest& request);
  void Withdraw(const std::string& gang);
  std::optional<std::pair<NodeId, Picks>> SeatByEvicting(const PodRequest& request,
                                                         WhatIfResult& result);
  void Take(NodeId id, const WhatIfCase::Seat& seat);

  EngineParts& parts_;
  ClusterState& cluster_;
  WhatIfCase& question_;
  const Instant now_;
  const uint64_t version_;
  std::vector<NodeId> nodes_;
  std::vector<NodeId> suiting_;  // scratch: of these, what the pod at hand may go to
  std::vector<std::pair<NodeId, PodUid>> placed_;
  std::set<NodeId> touched_;
};

Trial::Trial(EngineParts& parts, WhatIfCase& question, Instant now)
    : parts_(parts),
      cluster_(parts.cluster),
      question_(question),
      now_(now),
      version_(parts.cluster.version()) {
  for (const NodeId id : cluster_.names.ascending()) {
    if (cluster_.nodes[id] != nullptr && cluster_.nodes[id]->state.present()) nodes_.push_back(id);
  }
  for (const WhatIfCase::Seat& seat : question_.seats) {
    const NodeId id = cluster_.names.Find(seat.node.str());
    if (id == kNoNode || cluster_.nodes[id] == nullptr) continue;
    if (cluster_.nodes[id]->state.present()) Take(id, seat);
  }
  for (const NodeId id : touched_) cluster_.Refresh(id, now_);
}

Trial::~Trial() {
  for (const auto& [id, uid] : placed_) {
    cluster_.book.Release(uid, now_);
    cluster_.nodes[id]->state.Release(uid);
  }
  for (const NodeId id : touched_) cluster_.Refresh(id, now_);
  cluster_.RestoreVersion(version_);
}

void Trial::Take(NodeId id, const WhatIfCase::Seat& seat) {
  placed_.emplace_back(id, seat.holding.uid);
  touched_.insert(id);
  cluster_.book.Hold(seat.holding.uid, seat.work);
  cluster_.nodes[id]->state.Hold(seat.holding);
}

// What stands in the way of the nodes that do not suit; kNone: all suit.
Reason Trial::FindSuiting(const PodRequest& request) {
  suiting_.clear();
  Reason nearest = Reason::kNone;
  for (const NodeId id : nodes_) {
    const Reason reason = JudgeDemands(cluster_.nodes[id]->state.facts(), request);
    if (reason == Reason::kNone) suiting_.push_back(id);
    nearest = std::max(nearest, reason);
  }
  return nearest;
}

void Trial::Try(const PodRequest& request, WhatIfResult& result) {
  result.name = request.name;
  if (!request.asks_gpu()) {
    result.fits = true;
    return;
  }
  const RequestContext context = parts_.rules.ContextOf(request);
  result.reason = context.whole;
  if (result.reason != Reason::kNone) {
    result.detail = request.refusal ? request.refusal->detail : "";
    return;
  }
  NodeId id = kNoNode;
  Picks chosen;
  const Reason demands = FindSuiting(request);
  parts_.selection.Select(context, suiting_, 1, now_, nullptr);
  if (!parts_.selection.best().empty()) {
    id = parts_.selection.best().front().node;
    result.reason = parts_.selection.PickDevices(context, *cluster_.nodes[id], chosen);
    result.fits = result.reason == Reason::kNone;
  } else {
    result.reason = suiting_.empty() ? demands : parts_.selection.NearestReason();
    result.detail = parts_.rules.DescribeQuotaAnswers(context, now_);
    if (result.detail.empty()) result.detail = "asks " + DescribeRequest(request);
    const auto seat = SeatByEvicting(request, result);
    if (!seat) return;
    id = seat->first;
    chosen = seat->second;
    result.fits = true;
    result.reason = Reason::kNone;
    result.detail.clear();
  }
  const Inventory& inventory = cluster_.nodes[id]->state.inventory();
  result.node = cluster_.names.name(id);
  result.allocation = ToAllocation(inventory, request, chosen);
  HeldWork work = cluster_.WorkOf(request, context.membership, now_);
  work.parts = ChargeOfPicks(inventory, request, chosen);
  result.allocation->leaf = work.leaf;
  Holding holding;
  // No UID of the cluster looks like this, so nothing real is touched.
  holding.uid = PodUid(fmt::format("what-if/{}", question_.results.size()));
  holding.kind = HoldingKind::kReservation;
  holding.request = std::make_shared<const PodRequest>(request);
  holding.allocation = result.allocation;
  question_.seats.push_back({result.node, std::move(holding), std::move(work)});
  Take(id, question_.seats.back());
  cluster_.Refresh(id, now_);
}

void Trial::JudgeGang() {
  const std::size_t tried = question_.results.size();
  const std::string gang = GangKeyOf(question_.pods[tried - 1]);
  const auto same = [&gang](const PodRequest& pod) { return GangKeyOf(pod) == gang; };
  if (gang.empty() || std::any_of(question_.pods.begin() + static_cast<std::ptrdiff_t>(tried),
                                  question_.pods.end(), same)) {
    return;
  }
  int members = 0, size = 0, fit = 0;
  for (std::size_t i = 0; i < tried; ++i) {
    if (!same(question_.pods[i])) continue;
    ++members;
    size = std::max(size, question_.pods[i].gang_size);
    fit += question_.results[i].fits ? 1 : 0;
  }
  // Of a gang that is not all there, only what is asked about counts.
  const int needed = std::min(size, members);
  if (fit >= needed) return;
  Withdraw(gang);
  for (std::size_t i = 0; i < tried; ++i) {
    WhatIfResult& result = question_.results[i];
    if (!same(question_.pods[i]) || !result.fits) continue;
    for (const ReclaimVictim& victim : result.victims) question_.gone.erase(victim.uid);
    result = WhatIfResult();
    result.name = question_.pods[i].name;
    result.reason = Reason::kGangNoRoom;
    result.detail = fmt::format("expected room for {} pods of gang {}, found room for {}", needed,
                                question_.pods[i].gang, fit);
  }
}

// Its seats are free again.
void Trial::Withdraw(const std::string& gang) {
  std::erase_if(question_.seats, [&](const WhatIfCase::Seat& seat) {
    if (GangKeyOf(*seat.holding.request) != gang) return false;
    const auto at =
        std::ranges::find(placed_, seat.holding.uid, &std::pair<NodeId, PodUid>::second);
    if (at == placed_.end()) return true;
    cluster_.book.Release(at->second, now_);
    cluster_.nodes[at->first]->state.Release(at->second);
    cluster_.Refresh(at->first, now_);
    placed_.erase(at);
    return true;
  });
}

std::optional<std::pair<NodeId, Picks>> Trial::SeatByEvicting(const PodRequest& request,
                                                              WhatIfResult& result) {
  Preemptor preemptor;
  preemptor.members.push_back(std::make_shared<const PodRequest>(request));
  preemptor.context = parts_.rules.ContextOf(*preemptor.members.front());
  if (!MayPlan(preemptor.context)) return std::nullopt;
  preemptor.gang = GangKeyOf(request);
  PlanQuestions questions;
  AskedPlan asked;
  std::optional<PlanBlock> block;
  do {
    asked = AskNext(questions, parts_.plan_parts, preemptor, now_, {.gone = &question_.gone});
    if (auto found = parts_.planner.BlockOf(asked, now_)) block = std::move(found);
  } while (!questions.done());
  if (!asked.MayBegin()) {
    if (block) result.detail += "; " + block->detail;
    return std::nullopt;
  }
  ReclaimCase& reclaim_case = *asked.reclaim_case;
  const ReclaimAnswer& answer = asked.answer;
  result.victims = parts_.planner.VictimsOf(reclaim_case, *answer.plan, now_);
  result.rule = answer.plan->rule;
  result.cost = answer.plan->cost;
  result.optimal = answer.plan->optimal;
  for (const ReclaimVictim& victim : result.victims) question_.gone.insert(victim.uid);
  const auto seats = reclaim_case.Seats(answer.plan->region, answer.plan->victims);
  return std::pair(seats.front().node, seats.front().picks);
}

}  // namespace

void Engine::WhatIf(WhatIfCase& question, const std::function<bool()>& may_go_on, Instant now) {
  parts_->Advance(now);
  Trial trial(*parts_, question, now);
  while (!question.done()) {
    const PodRequest& request = question.pods[question.results.size()];
    trial.Try(request, question.results.emplace_back());
    trial.JudgeGang();
    if (!may_go_on()) return;
  }
}

std::vector<WhatIfResult> Engine::WhatIf(std::span<const PodRequest> pods, Instant now) {
  WhatIfCase question{{pods.begin(), pods.end()}};
  WhatIf(
      question, [] { return true; }, now);
  return std::move(question.results);
}

}  // namespace tranche
