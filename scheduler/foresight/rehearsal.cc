#include "scheduler/foresight/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/engine/selection/shape.h"

namespace tranche {
namespace {

// Moments in a row at which time alone passed and nobody came to start.
constexpr int64_t kMostIdleMoments = 2'000;
constexpr std::chrono::seconds kAgain{60};
// Before the number in the uid of one that came back; no uid has a slash.
constexpr std::string_view kAgainMark = "/again-";

// Others that started may have to be waited for no more.
bool WaitsForOthers(Reason reason) {
  return reason == Reason::kYieldingTo ||
         (reason >= Reason::kGangIncomplete && reason <= Reason::kHeldForGang);
}

}  // namespace

PodUid OriginOf(const PodUid& uid) {
  const std::size_t mark = uid.str().find(kAgainMark);
  return mark == std::string::npos ? uid : PodUid(uid.str().substr(0, mark));
}

Rehearsal::Rehearsal(Engine& engine, const ClusterCopy& copy, RehearsalRules rules)
    : engine_(engine),
      rules_(std::move(rules)),
      now_(copy.at),
      disruption_budgets_(copy.disruption_budgets) {
  // Budgets and gangs may come later where pods of a past do.
  by_runtime_ = rules_.to_the_end || (copy.set != nullptr && !copy.set->budgets.empty());
  for (const NodeCopy& node : copy.nodes) {
    if (node.present) allowed_.Put(node.facts);
  }
  for (const auto& [uid, pod] : copy.pods) {
    if (!pod.facts.request.gang.empty()) by_runtime_ = true;
  }
  for (const auto& [uid, pod] : copy.pods) {
    if (pod.facts.placeholder) continue;
    Entry& entry = pods_[uid];
    entry.pod = pod;
    if (pod.facts.node.empty()) {
      Queue(entry);
    } else if (pod.facts.terminating) {
      coming_.insert({std::max(pod.facts.deletion_at.value_or(now_), now_), uid, What::kGone});
    } else {
      FollowEnd(entry);
    }
  }
}

Rehearsal::~Rehearsal() = default;

Rehearsal::Order Rehearsal::OrderOf(const PodCopy& pod) {
  return {-int64_t{pod.facts.request.priority}, pod.facts.created.value_or(Instant()),
          pod.facts.request.uid};
}

std::string Rehearsal::KeyOf(const PodCopy& pod, std::size_t allowed) const {
  const PodRequest& request = pod.facts.request;
  std::string key =
      fmt::format("{}/{}/{}/{}/", request.name.ns, request.priority_class, request.gang, allowed);
  if (allowed == AllowedNodes::kMost) key += request.uid.str() + "/";
  if (by_runtime_ && request.expected_runtime) {
    key += fmt::format("{}/", request.expected_runtime->count());
  }
  AppendShape(request, key);
  return key;
}

bool Rehearsal::MayStart(const PodCopy& pod) {
  const PodFacts& facts = pod.facts;
  return facts.node.empty() && facts.request.asks_gpu() && !facts.request.refusal &&
         !facts.terminating && !facts.gated && !facts.unreadable && facts.claims == nullptr;
}

void Rehearsal::Queue(Entry& entry) {
  if (!MayStart(entry.pod) || entry.kind != nullptr) return;
  const std::size_t allowed = allowed_.PlaceOf(entry.pod.facts.request);
  std::unique_ptr<Kind>& kind = kinds_[KeyOf(entry.pod, allowed)];
  if (kind == nullptr) {
    kind = std::make_unique<Kind>();
    kind->constraints = entry.pod.facts.request.constraints;
    kind->allowed = allowed;
  }
  const bool first = kind->waiting.empty();
  if (!first) ready_.erase({kind->waiting.begin()->first, kind.get()});
  kind->waiting.emplace(OrderOf(entry.pod), &entry);
  entry.kind = kind.get();
  if (!entry.beside) ++told_waiting_;
  ready_.insert({kind->waiting.begin()->first, kind.get()});
}

void Rehearsal::Unqueue(Entry& entry) {
  if (entry.kind == nullptr) return;
  Kind& kind = *std::exchange(entry.kind, nullptr);
  if (!entry.beside) --told_waiting_;
  const bool was_ready = ready_.erase({kind.waiting.begin()->first, &kind}) > 0;
  kind.waiting.erase(OrderOf(entry.pod));
  if (was_ready && !kind.waiting.empty()) ready_.insert({kind.waiting.begin()->first, &kind});
}

void Rehearsal::FollowEnd(const Entry& entry) {
  if (!rules_.end_of) return;
  const std::optional<Instant> end = rules_.end_of(entry.pod);
  if (end) coming_.insert({std::max(*end, now_), entry.pod.facts.request.uid, What::kEnd});
}

void Rehearsal::Free(const NodeName& node) {
  if (const auto number = allowed_.NumberOf(node)) freed_.push_back(*number);
}

void Rehearsal::NodeCame(const NodeFacts& node) {
  allowed_.Put(node);
  Free(node.name);  // one that was there may offer more
}

void Rehearsal::NodeWent(const NodeName& node) {
  allowed_.Remove(node);
  std::vector<PodUid> lost;
  for (const auto& [uid, entry] : pods_) {
    if (entry.pod.facts.node == node) lost.push_back(uid);
  }
  for (const PodUid& uid : lost) {
    const Entry& entry = pods_.at(uid);
    evicted_.emplace(uid, entry.pod.facts.request.name);
    Tell(Rehearsed::What::kEvicted, entry);
    Happen({now_, uid, What::kGone});
  }
}

void Rehearsal::Lose(Entry& entry) {
  const PodUid uid = entry.pod.facts.request.uid;
  Unqueue(entry);
  if (!entry.pod.facts.node.empty()) Tell(Rehearsed::What::kEnd, entry);
  engine_.DeletePod(uid, now_);
  Free(entry.pod.facts.node);
  pods_.erase(uid);
}

void Rehearsal::ComeBack(const PodCopy& pod) {
  const PodFacts& facts = pod.facts;
  // Nobody makes a pod anew that is its own owner.
  if (!rules_.evicted_return || facts.owner == facts.request.name.str()) return;
  const PodUid uid(fmt::format("{}{}{}", OriginOf(facts.request.uid).str(), kAgainMark, ++serial_));
  Entry& entry = pods_[uid];
  entry.beside = true;
  entry.pod.workload_class = pod.workload_class;
  PodFacts& again = entry.pod.facts;
  again.request = facts.request;
  again.request.uid = uid;
  again.request.name.name += fmt::format("-again-{}", serial_);
  again.created = now_;
  again.owner = facts.owner;
  again.evictable = facts.evictable;
  again.grace = facts.grace;
  again.labels = facts.labels;
  engine_.UpsertPod(again, now_);
  Queue(entry);
}

void Rehearsal::Arrive(PodCopy pod, Instant at, Arrival arrival) {
  const PodUid uid = pod.facts.request.uid;
  coming_.insert({std::max(at, now_), uid, What::kComes});
  arriving_.insert_or_assign(uid, std::pair(std::move(pod), arrival));
  if (arrival == Arrival::kTold) ++told_waiting_;
}

void Rehearsal::Leave(const PodUid& uid, Instant at) {
  coming_.insert({std::max(at, now_), uid, What::kEnd});
}

void Rehearsal::Tell(Rehearsed::What what, const Entry& entry) const {
  if (rules_.heard) rules_.heard({what, now_, entry.pod});
}

bool Rehearsal::Happen(const Happening& happening) {
  if (happening.what == What::kComes) {
    Entry& entry = pods_[happening.uid];
    const auto arriving = arriving_.extract(happening.uid);
    entry.pod = std::move(arriving.mapped().first);
    entry.beside = arriving.mapped().second == Arrival::kForeseen;
    if (!entry.beside) --told_waiting_;
    entry.pod.facts.created = now_;
    engine_.UpsertPod(entry.pod.facts, now_);
    Queue(entry);
    return true;
  }
  const auto found = pods_.find(happening.uid);
  if (found == pods_.end()) return false;
  // Its end was told before it was evicted.
  const PodCopy pod = found->second.pod;
  Lose(found->second);
  if (happening.what == What::kGone && evicted_.contains(happening.uid)) ComeBack(pod);
  return true;
}

std::map<PodUid, Reason> Rehearsal::Waiting() const {
  std::map<PodUid, Reason> waiting;
  for (const auto& [uid, entry] : pods_) {
    if (entry.beside || !entry.pod.facts.node.empty()) continue;
    if (!entry.pod.facts.request.asks_gpu() || entry.pod.facts.terminating) continue;
    waiting.emplace(uid, entry.kind != nullptr ? entry.kind->reason : entry.pod.last_reason);
  }
  return waiting;
}

bool Rehearsal::Spent() {
  gave_up_ = gave_up_ || tries_ >= rules_.most_tries ||
             (rules_.may_go_on != nullptr && !rules_.may_go_on());
  return gave_up_;
}

Reason Rehearsal::Filter(const Entry& entry, const std::vector<std::string_view>& nodes) {
  ++tries_;
  engine_.Filter(entry.pod.facts.request, nodes, now_, answer_);
  if (!answer_.chosen.empty()) return Reason::kNone;
  // Of no nodes at all nothing is refused.
  return answer_.reason == Reason::kNone ? Reason::kUnknownNode : answer_.reason;
}

// After a filter that chose: takes the best node.
bool Rehearsal::Start(Entry& entry, const std::vector<std::string_view>& nodes) {
  PodFacts& facts = entry.pod.facts;
  const PodUid uid = facts.request.uid;
  const NodeName node{std::string(nodes[answer_.chosen.front()])};
  const BindPlan plan = engine_.Bind(facts.request.name, uid, node, now_);
  if (plan.kind != BindPlan::Kind::kWrite) return false;
  Allocation allocation = plan.allocation;
  if (!plan.turn) {
    // Its node's agent would serve others first, for seconds; a placeholder tells its card.
    TakeEffects();
    if (const auto turn = turns_.find(uid); turn != turns_.end()) allocation = turn->second;
  }
  Unqueue(entry);
  engine_.SettleBind(uid, node, BindOutcome::kBound, now_);
  facts.node = node;
  facts.phase = PodPhase::kRunning;
  facts.bound_at = facts.running_at = now_;
  facts.unschedulable = false;
  facts.nominated = NodeName();
  facts.allocation = std::move(allocation);
  engine_.UpsertPod(facts, now_);
  if (!entry.beside) starts_.emplace(uid, now_);
  Tell(Rehearsed::What::kStart, entry);
  ++begun_;
  FollowEnd(entry);
  TakeEffects();
  return true;
}

// The first pod of the kind, on no more nodes than can have changed their answer.
Reason Rehearsal::Ask(Kind& kind, const Entry& entry) {
  const AllowedNodes::List& allowed = allowed_.ListOf(kind.allowed, kind.constraints.get());
  const std::vector<std::string_view>& nodes = allowed.nodes;
  changed_.clear();
  if (kind.refused) {
    fresh_.assign(freed_.begin() + static_cast<std::ptrdiff_t>(kind.seen), freed_.end());
    std::ranges::sort(fresh_);
    const auto repeated = std::ranges::unique(fresh_);
    fresh_.erase(repeated.begin(), repeated.end());
    for (const std::size_t number : fresh_) {
      if (allowed.allows[number]) changed_.push_back(allowed_.NameOf(number));
    }
  }
  const bool few = kind.refused && changed_.size() * 2 < nodes.size();
  if (!few) {
    asked_ = &nodes;
    return Filter(entry, nodes);
  }
  asked_ = &changed_;
  if (kind.wants_room()) {
    return changed_.empty() ? kind.reason : Filter(entry, changed_);
  }
  // Quota and order refuse everywhere alike: a node will do to see whether they do still.
  if (!changed_.empty()) {
    const Reason reason = Filter(entry, changed_);
    if (reason != Reason::kNone && !WantsRoom(reason)) return reason;
  }
  asked_ = &nodes;
  return Filter(entry, nodes);
}

void Rehearsal::TryKind(Kind& kind) {
  Entry& entry = *kind.waiting.begin()->second;
  Reason reason = Ask(kind, entry);
  if (reason == Reason::kNone) {
    if (Start(entry, *asked_)) return;
    reason = Reason::kHeldForGang;  // taken between filter and bind: asked again after others
  }
  kind.refused = true;
  kind.reason = reason;
  kind.seen = freed_.size();
  if (!kind.waiting.empty()) ready_.erase({kind.waiting.begin()->first, &kind});
}

// It alone has something to hope for: a place that is kept for it, or its turn.
void Rehearsal::TryAlone(Entry& entry, const NodeName& node) {
  if (node.empty()) {
    if (Ask(*entry.kind, entry) == Reason::kNone) Start(entry, *asked_);
    return;
  }
  const std::vector<std::string_view> one = {node.str()};
  if (Filter(entry, one) == Reason::kNone) Start(entry, one);
}

bool Rehearsal::StartThose() {
  const int64_t before = begun_;
  while (!Spent() && (!urgent_.empty() || !ready_.empty())) {
    if (!urgent_.empty()) {
      const auto [uid, node] = std::move(urgent_.front());
      urgent_.pop_front();
      const auto found = pods_.find(uid);
      if (found != pods_.end() && found->second.kind != nullptr) TryAlone(found->second, node);
      continue;
    }
    TryKind(*ready_.begin()->second);
  }
  if (begun_ == before) return false;
  for (const auto& [key, kind] : kinds_) {
    if (kind->waiting.empty() || !kind->refused || !WaitsForOthers(kind->reason)) continue;
    ready_.insert({kind->waiting.begin()->first, kind.get()});
  }
  return true;
}

void Rehearsal::WakeAll() {
  for (const auto& [key, kind] : kinds_) {
    kind->refused = false;
    if (!kind->waiting.empty()) ready_.insert({kind->waiting.begin()->first, kind.get()});
  }
}

void Rehearsal::WakeRefused() {
  for (const auto& [key, kind] : kinds_) {
    if (kind->waiting.empty()) continue;
    if (kind->refused && kind->wants_room() && kind->seen == freed_.size()) continue;
    ready_.insert({kind->waiting.begin()->first, kind.get()});
  }
}

void Rehearsal::Settle() {
  for (int round = 0; round < kMostRounds && !Spent(); ++round) {
    const bool started = StartThose();
    const bool planned = Plan();
    if (!started && !planned && urgent_.empty()) return;
  }
}

void Rehearsal::Run(Instant until) {
  int64_t idle = 0;
  std::optional<Instant> due = engine_.Tick(now_);
  TakeEffects();
  WakeRefused();
  Settle();
  for (int64_t moment = 0; !Spent(); ++moment) {
    if (moment >= rules_.most_moments) {
      gave_up_ = true;
      return;
    }
    if (told_waiting_ <= 0 && !rules_.to_the_end) return;
    due = engine_.Tick(now_);
    TakeEffects();
    // What is due and was not done just now waits for others, or for plans that are not made.
    if (due && *due <= now_) {
      due = plans_ < rules_.most_plans ? std::optional(now_ + kAgain) : std::nullopt;
    }
    std::optional<Instant> next;
    if (!coming_.empty()) next = coming_.begin()->at;
    if (due && (!next || *due < *next) && idle < kMostIdleMoments) next = due;
    if (!next || *next > until) return;
    const int64_t before = begun_;
    const uint64_t version = engine_.Version();
    now_ = std::max(*next, now_);
    bool happened = false;
    while (!coming_.empty() && coming_.begin()->at <= now_) {
      const Happening happening = *coming_.begin();
      coming_.erase(coming_.begin());
      happened = Happen(happening) || happened;
    }
    engine_.Tick(now_);
    TakeEffects();
    if (happened || engine_.Version() != version) WakeRefused();
    Settle();
    idle = happened || begun_ != before ? 0 : idle + 1;
  }
}

}  // namespace tranche
