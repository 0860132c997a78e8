#include "test/sim/check/evictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "test/sim/check/fit.h"
#include "test/sim/check/quota_model.h"

namespace tranche::sim::check {
namespace {

// Until a record whose write failed is written again; the answers of three in a row are lost at
// times.
constexpr SimTime kTries = 3 * std::chrono::seconds(12);
constexpr SimTime kRounding = std::chrono::seconds(2);  // times in objects are whole seconds
constexpr SimTime kUnderWay = std::chrono::seconds(1);  // a bind that was

// "30m", "90s", "1h"; nullopt: none, or another form.
std::optional<int64_t> SecondsOf(const std::string& text) {
  if (text.size() < 2) return std::nullopt;
  const int64_t number = std::atoll(text.c_str());
  switch (text.back()) {
    case 's':
      return number;
    case 'm':
      return number * 60;
    case 'h':
      return number * 3600;
    default:
      return std::nullopt;
  }
}

// The class object that names the PriorityClass; null: none.
const Json& ClassOf(const Objects& classes, const std::string& priority) {
  static const Json kNone;
  for (const auto& [name, gpu_class] : classes) {
    const Json& named = At(gpu_class, {"spec", "priorityClassNames"});
    if (!named.is_array()) continue;
    if (std::ranges::find(named, Json(priority)) != named.end()) return gpu_class;
  }
  return kNone;
}

}  // namespace

void EvictionChecker::Hear(const Happening& happening) {
  owners_.Hear(happening);
  if (happening.kind == Happening::Kind::kEnded) ends_.emplace(happening.who, happening.at);
  if (happening.kind == Happening::Kind::kPromised) {
    const std::string uid = TextAt(happening.after, {"uid"});
    const std::string kind = TextAt(happening.after, {"kind"});
    if (kind == "open") {
      metered_.insert(uid);
      // Those of one batch in its order.
      last_charge_ = std::max(last_charge_ + SimTime(1), happening.at);
      charged_[uid] = last_charge_;
      intervals_[uid].emplace_back(happening.at, SimTime::max());
    }
    const bool ends = (kind == "close" || kind == "void") && metered_.erase(uid) > 0;
    if (ends) intervals_[uid].back().second = happening.at;
  }
  if (happening.kind != Happening::Kind::kWritten) return;
  if (happening.resource == "gpureclaims") return Told(happening);
  if (happening.resource != "pods" || !IsTranche(happening.who)) return;
  const Json& object = happening.after.is_null() ? happening.before : happening.after;
  const PodLife* const pod = truth_.pod(TextAt(object, {"metadata", "uid"}));
  if (pod == nullptr || (pod->ended && *pod->ended < happening.at)) return;
  // Of those that wait too: one that took a victim's name is none.
  if (pod->leaving == happening.at && pod->evicted_by == happening.who) {
    Evicted(*pod, happening.at);
  } else if (pod->bound == happening.at) {
    Bound(*pod, happening.at);
  }
}

void EvictionChecker::Told(const Happening& happening) {
  reserved_.erase(happening.key);
  if (happening.after.is_null()) return;
  Plan plan{happening.key,
            TextAt(happening.after, {"spec", "rule"}),
            TextAt(happening.after, {"spec", "leaf"}),
            {},
            happening.at};
  const Json& members = At(happening.after, {"spec", "members"});
  if (members.is_array()) {
    for (const Json& member : members) plan.members.insert(TextAt(member, {"uid"}));
  }
  if (TextAt(happening.after, {"status", "phase"}) == "Reserved") {
    reserved_[happening.key] = plan.members;
  }
  const Json& victims = At(happening.after, {"status", "victims"});
  if (!victims.is_array()) return;
  for (const Json& victim : victims) {
    const std::string uid = TextAt(victim, {"uid"});
    const auto [known, fresh] = plans_.try_emplace(uid, plan);
    if (!fresh && known->second.name != plan.name) known->second = plan;
    const PodLife* const pod = truth_.pod(uid);
    if (pod == nullptr || pod->leaving || pod->ended || !victim.contains("evictedAt")) continue;
    Found(happening.at, pod->key,
          fmt::format("expected {} to call nobody evicted who stays, found it doing so",
                      happening.key));
  }
}

void EvictionChecker::Evicted(const PodLife& pod, SimTime now) {
  Eviction eviction{pod.uid, now, pod.started, {}, true};
  const std::string priority = TextAt(pod.object, {"spec", "priorityClassName"});
  for (const auto& classes : truth_.Versions("gpuclasses", now, now - options_.lag)) {
    const Json& gpu_class = ClassOf(classes, priority);
    const bool never = TextAt(gpu_class, {"spec", "preemptible"}) == "Never";
    eviction.never = eviction.never && never;
    const auto least = SecondsOf(TextAt(gpu_class, {"spec", "minRuntime"})).value_or(0);
    eviction.min_runtime = std::min(eviction.min_runtime.value_or(least), least);
  }
  std::optional<int64_t> of_team;
  for (const auto& quotas : truth_.Versions("gpuquotas", now, now - options_.lag)) {
    const auto leaf = pod.record ? quotas.find(pod.record->leaf) : quotas.end();
    const auto least = leaf == quotas.end()
                           ? std::nullopt
                           : SecondsOf(TextAt(leaf->second, {"spec", "reclaim", "minRuntime"}));
    of_team = std::min(of_team.value_or(least.value_or(0)), least.value_or(0));
  }
  eviction.of_team = of_team.value_or(0);
  evictions_.push_back(eviction);
}

// What waits for the preemptor is not another's.
void EvictionChecker::Bound(const PodLife& pod, SimTime now) {
  // What others placed there a moment ago, and nobody had heard of, may be what makes it full.
  const auto is_news = [&](const PodLife* other) {
    return !IsTranche(other->binder) && *other->bound > now - options_.lag;
  };
  if (std::ranges::any_of(truth_.on(pod.node), is_news)) return;
  // Nor had anybody of a card that fell off: both had room until then.
  const auto machine = truth_.Lately("nodes", pod.node, now, options_.lag);
  const auto is_other = [&](const Document& node) {
    return At(node, {"status", "allocatable"}) != At(machine.front(), {"status", "allocatable"});
  };
  if (std::ranges::any_of(machine, is_other)) return;
  for (const auto& [reclaim, members] : reserved_) {
    if (members.contains(pod.uid)) continue;
    for (const std::string& uid : members) {
      const PodLife* const waiting = truth_.pod(uid);
      const Json* const object = truth_.object("gpureclaims", reclaim);
      if (waiting == nullptr || !waiting->waits() || waiting->leaving || object == nullptr)
        continue;
      // It has a place, maybe another one: its bind is under way.
      if (metered_.contains(uid)) continue;
      for (const Json& member : At(*object, {"spec", "members"})) {
        if (TextAt(member, {"uid"}) != uid || TextAt(member, {"node"}) != pod.node) continue;
        if (FitOn(truth_, *waiting, pod.node, Leaving::kGone) != Fit::kFull) continue;
        // Its room had gone before, as where an agent tells of smaller cards than it did.
        if (FitOn(truth_, *waiting, pod.node, Leaving::kGone, &pod) == Fit::kFull) continue;
        given_.push_back({uid, pod.key, now,
                          fmt::format("expected the room that {} made on {} to be kept for {}, "
                                      "found it given to {}",
                                      reclaim, pod.node, waiting->key, pod.key)});
      }
    }
  }
}

void EvictionChecker::AtEnd(const Ending& /*ending*/) {
  for (const Given& given : given_) {
    // Its own bind, elsewhere, was under way; the ledger told of it late.
    const std::optional<SimTime> bound = truth_.pod(given.waiting)->bound;
    if (!bound || *bound > given.at + kUnderWay) Found(given.at, given.key, given.text);
  }
  for (const Eviction& eviction : evictions_) {
    const PodLife* const victim = truth_.pod(eviction.uid);
    const auto plan = plans_.find(eviction.uid);
    if (plan == plans_.end() && MayLackARecord(eviction)) continue;
    if (plan == plans_.end()) {
      // Placeholders and such are not evicted but deleted; this was somebody's work.
      Found(eviction.at, victim->key,
            "expected a GPUReclaim that names the evicted pod, found none");
      continue;
    }
    if (victim->bound) Judge(eviction, plan->second);
  }
}

bool EvictionChecker::MayLackARecord(const Eviction& eviction) const {
  const auto end = ends_.find(truth_.pod(eviction.uid)->evicted_by);
  const FaultPlan& faults = options_.faults;
  return (faults.has(Fault::kApiServer) || faults.has(Fault::kNetwork)) && end != ends_.end() &&
         end->second < eviction.at + kTries;
}

// Its node, or that of another pod of its gang, had a taint when it was evicted or as long before
// as news may take.
bool EvictionChecker::WasNoticed(const PodLife& victim, SimTime now) const {
  const std::string gang = GangOf(victim);
  for (const auto& nodes : truth_.Versions("nodes", now, now - options_.lag)) {
    const bool found = std::ranges::any_of(truth_.pods(), [&](const auto& entry) {
      const PodLife& pod = entry.second;
      const bool is_its = pod.uid == victim.uid || (!gang.empty() && GangOf(pod) == gang);
      const auto node = is_its ? nodes.find(pod.node) : nodes.end();
      return node != nodes.end() && !At(node->second, {"spec", "taints"}).is_null();
    });
    if (found) return true;
  }
  return false;
}

void EvictionChecker::Judge(const Eviction& eviction, const Plan& plan) {
  const PodLife& victim = *truth_.pod(eviction.uid);
  const std::string what = fmt::format("{} ({})", plan.name, plan.rule);
  if (eviction.never) {
    Found(eviction.at, victim.key, "expected a class that may be evicted, found Never, by " + what);
  }
  const std::string gang = GangOf(victim);
  for (const std::string& uid : plan.members) {
    const PodLife* const member = truth_.pod(uid);
    if (member != nullptr && !gang.empty() && GangOf(*member) == gang) {
      Found(eviction.at, victim.key,
            "expected a victim of another gang, found its own, by " + what);
    }
  }
  if (plan.rule == "Interruption" && !WasNoticed(victim, eviction.at)) {
    Found(eviction.at, victim.key,
          fmt::format("expected a notice on a node of its gang, found none, by {}", what));
  }
  const bool for_work = !plan.members.empty();
  if (for_work && eviction.ran_since && eviction.min_runtime &&
      !options_.faults.has(Fault::kClock)) {
    const SimTime ran = eviction.at - *eviction.ran_since;
    if (ran + options_.lag < std::chrono::seconds(*eviction.min_runtime)) {
      Found(eviction.at, victim.key,
            fmt::format("expected it to run {} s before it is evicted, found {} s, by {}",
                        *eviction.min_runtime, ran.count() / 1'000'000, what));
    }
  }
  // However late the news that it runs, it was not judged before.
  const SimTime judged = std::min(*victim.bound, victim.filtered.value_or(victim.made));
  const SimTime there = eviction.at - judged;
  const std::set<std::string> teams = owners_.Of(victim, eviction.at);
  const bool one_team = victim.record && teams == std::set{victim.record->leaf};
  const int64_t least = std::max(eviction.min_runtime.value_or(0), one_team ? eviction.of_team : 0);
  if (for_work && !options_.faults.has(Fault::kClock) &&
      there + kRounding < std::chrono::seconds(least)) {
    Found(eviction.at, victim.key,
          fmt::format("expected it to be left alone for {} s, found it evicted after {} s, by {}",
                      least, there.count() / 1'000'000, what));
  }
  JudgeQuota(eviction, plan, teams);
}

// Whatever its rule, what is in quota stays; but a team's own work gives way to its more important
// work, and what a notice, a drain or a shrunk quota takes is another matter.
void EvictionChecker::JudgeQuota(const Eviction& eviction, const Plan& plan,
                                 const std::set<std::string>& teams) {
  const PodLife& victim = *truth_.pod(eviction.uid);
  const bool by_others = plan.rule == "R1" || plan.rule == "R3" || plan.rule == "R5";
  const bool by_anybody = plan.rule == "R0" || plan.rule == "R2b";
  // Nobody needs what it has.
  const bool moved = plan.rule == "MigLayout" ||
                     (plan.rule == "Consolidate" &&
                      Annotation(victim.object, "tranche.dev/checkpointed-at").empty());
  if ((!by_others && !by_anybody && !moved) || !victim.record || teams.size() != 1) return;
  const std::string& leaf = *teams.begin();
  if (leaf.empty() || (by_others && leaf == plan.leaf)) return;
  const Chosen chosen = plan.rule == "R1" ? Chosen::kMayBe : Chosen::kNever;
  const SimTime since = std::min(plan.since, eviction.at) - options_.lag;
  if (MayBeBorrowed(victim, leaf, chosen, since, eviction.at)) return;
  Found(eviction.at, victim.key,
        fmt::format("expected a victim beyond the nominal of {}, found it in quota, by {} ({})",
                    leaf, plan.name, plan.rule));
}

namespace {

// Is there a budget that takes the leaf's nominal away where it is used up?
bool MayDemote(const Objects& budgets, const QuotaModel& model, const std::string& leaf) {
  return std::ranges::any_of(budgets, [&](const auto& entry) {
    const std::string exhausted = TextAt(entry.second, {"spec", "onExhaustion"});
    return model.IsBudgetOf(entry.second, leaf) && (exhausted.empty() || exhausted == "Demote");
  });
}

int64_t RankOf(const Json& gpu_class) {
  const Json& rank = At(gpu_class, {"spec", "rank"});
  return rank.is_number_integer() ? rank.get<int64_t>() : 2;
}

void SetClass(WorkUnit& unit, const PodLife& pod, const Objects& classes) {
  const Json& gpu_class = ClassOf(classes, TextAt(pod.object, {"spec", "priorityClassName"}));
  unit.never = TextAt(gpu_class, {"spec", "preemptible"}) == "Never";
  unit.rank = RankOf(gpu_class);
}

// In which order work of one class fills the nominal: by its age, or nobody can tell.
enum class Order : uint8_t { kByAge, kUnknown };

using Lines = std::map<std::string, Charge>;  // as of QuotaModel

bool IsLimited(const QuotaModel& model, const std::string& leaf, const std::string& line) {
  return std::ranges::any_of(kDimensions, [&](Dimension dimension) {
    return model.Nominal(leaf, line, dimension).has_value();
  });
}

// All of the charge fits into the nominal of the line, or needs none of it.
bool FitsInto(const QuotaModel& model, const std::string& leaf, const std::string& line,
              const Charge& charge, const Charge& with_others) {
  return std::ranges::all_of(kDimensions, [&](Dimension dimension) {
    const auto most = model.Nominal(leaf, line, dimension);
    return !most || PartOf(charge, dimension) == 0 || PartOf(with_others, dimension) <= *most;
  });
}

// What is in quota on lines that are limited, and whether the victim's unit is not on all of its
// lines; up to it where ages are not known.
struct Filled {
  Lines in_quota;
  bool victim_is_borrowed = false;
};
Filled Fill(const QuotaModel& model, const std::string& leaf, std::vector<WorkUnit> units,
            Order order) {
  const bool by_age = order == Order::kByAge;
  std::ranges::sort(units, {}, [by_age](const WorkUnit& unit) {
    const SimTime start = by_age || unit.victims ? unit.start : SimTime(0);
    return std::tuple(!unit.never, -unit.rank, !by_age && unit.victims, start, unit.key);
  });
  Filled filled;
  Lines taken;  // also by what is borrowed on another line
  for (const WorkUnit& unit : units) {
    Lines asked = unit.charges;
    Charge whole;
    for (const auto& [name, charge] : unit.charges) whole = AddSaturating(whole, charge);
    asked["any"] = whole;
    bool in_models = true, in_any = true;
    for (const auto& [line, charge] : asked) {
      const Charge sum = AddSaturating(taken[line], charge);
      const bool fits = unit.rank > 0 && FitsInto(model, leaf, line, charge, sum);
      if (fits || !by_age) taken[line] = sum;
      (line == "any" ? in_any : in_models) &= fits;
    }
    if (unit.victims) filled.victim_is_borrowed = !in_models || !in_any;
    if (unit.victims && !by_age) return filled;
    for (const auto& [line, charge] : asked) {
      const bool in_quota = line == "any" ? in_any : in_models;
      if (!in_quota || !IsLimited(model, leaf, line)) continue;
      Charge& sum = filled.in_quota[line];
      sum = AddSaturating(sum, charge);
    }
  }
  return filled;
}

// Has the team as much in quota without the victim's unit, on lines of models, or on `any` where
// the unit is on no such line? Where ages are not known, all of a rank are taken for equally old.
bool CanSpare(const QuotaModel& model, const std::string& leaf, std::vector<WorkUnit> units,
              Order order) {
  if (order == Order::kUnknown) {
    for (WorkUnit& unit : units) unit.start = SimTime(0);
  }
  const auto victim = std::ranges::find_if(units, &WorkUnit::victims);
  const bool on_models =
      victim != units.end() && std::ranges::any_of(victim->charges, [&](const auto& charge) {
        return IsLimited(model, leaf, charge.first);
      });
  // What no line limits is not borrowed, whoever else is there.
  if (!on_models && !IsLimited(model, leaf, "any")) return false;
  const Lines before = Fill(model, leaf, units, Order::kByAge).in_quota;
  std::erase_if(units, [](const WorkUnit& unit) { return unit.victims; });
  Lines after = Fill(model, leaf, std::move(units), Order::kByAge).in_quota;
  return std::ranges::all_of(before, [&](const auto& line) {
    if (on_models && line.first == "any") return true;
    return std::ranges::all_of(kDimensions, [&](Dimension dimension) {
      return PartOf(after[line.first], dimension) >= PartOf(line.second, dimension);
    });
  });
}

}  // namespace

// The last room that was kept for it then, if it is not known to have been given back.
const PodLife::Kept* EvictionChecker::KeptAt(const PodLife& pod, const Moment& moment) {
  const PodLife::Kept* last = nullptr;
  for (const PodLife::Kept& kept : pod.kept) {
    if (kept.from <= moment.at && kept.to.value_or(moment.at) >= moment.heard) last = &kept;
  }
  return last;
}

bool EvictionChecker::AddClaims(const std::string& leaf, const QuotaModel& model,
                                const Moment& moment,
                                std::map<std::string, WorkUnit>& units) const {
  for (const auto& [uid, claim] : truth_.claims()) {
    if (model.LeafOf(claim.ns()) != leaf) continue;
    for (const Allocation& one : claim.allocations) {
      if (one.from > moment.at || (one.to && *one.to < moment.heard)) continue;
      const auto holdings = HoldingsOf(one);
      if (!holdings) return false;
      WorkUnit& unit = units["claim/" + uid];
      const PodLife* const user = truth_.pod(one.user);
      if (user != nullptr) SetClass(unit, *user, moment.classes);
      unit.start = one.from;
      unit.key = claim.key;
      for (const Holding& holding : *holdings) {
        Charge& charge = unit.charges[model.LineOf(leaf, holding.model)];
        charge = AddSaturating(charge, holding.charge);
      }
    }
  }
  return true;
}

std::optional<std::vector<WorkUnit>> EvictionChecker::UnitsOf(const PodLife& victim,
                                                              const std::string& leaf,
                                                              const QuotaModel& model,
                                                              const Moment& moment) const {
  std::map<std::string, WorkUnit> units;
  for (const auto& [uid, pod] : truth_.pods()) {
    // What is reserved is not seen here before it is bound; it was asked for before. A bind that
    // waits for its turn at the node's agent takes its time, and may be given up meanwhile.
    const bool reserved = pod.bound && pod.filtered.value_or(*pod.bound) <= moment.at &&
                          (moment.counts_kept || *pod.bound <= moment.at + std::chrono::seconds(5));
    const bool bound = reserved || (pod.bound && *pod.bound <= moment.at);
    const PodLife::Kept* const kept = moment.counts_kept ? KeptAt(pod, moment) : nullptr;
    // Nobody tells where that was to be.
    const bool elsewhere = !bound && kept == nullptr && WasPromised(pod, moment);
    if (elsewhere && model.LeafOf(pod.ns()) == leaf) return std::nullopt;
    if ((!bound && kept == nullptr) || (pod.ended && *pod.ended < moment.heard)) continue;
    // A plan counts what leaves already as gone.
    const bool going = &pod != &victim && pod.leaving && *pod.leaving <= moment.at;
    if (going && !moment.counts_leaving) continue;
    if (!pod.record && !AsksGpu(pod.object)) continue;
    const std::set<std::string> leaves =
        pod.bound ? owners_.Of(pod, moment.at) : std::set{model.LeafOf(pod.ns())};
    if (!leaves.contains(leaf)) continue;
    if (leaves.size() > 1) return std::nullopt;
    const auto node = moment.nodes.find(bound ? pod.node : kept->node);
    const auto holding = node == moment.nodes.end() ? std::nullopt
                         : bound                    ? HoldingOf(pod, node->second)
                                                    : KeptHolding(pod, node->second);
    if (!holding) return std::nullopt;
    const std::string gang = GangOf(pod);
    WorkUnit& unit = units[gang.empty() ? uid : gang];
    SetClass(unit, pod, moment.classes);
    // Of pods of two kube-schedulers the one that was asked about later may be bound first.
    const auto charged = moment.by_charge ? charged_.find(uid) : charged_.end();
    const SimTime asked = pod.filtered.value_or(pod.bound.value_or(moment.at));
    const SimTime begun = charged == charged_.end() ? asked : charged->second;
    const SimTime start = kept != nullptr ? kept->from : begun;
    unit.start = unit.key.empty() ? start : std::min(unit.start, start);
    unit.key = gang.empty() ? pod.key : gang;
    Charge& charge = unit.charges[model.LineOf(leaf, holding->model)];
    charge = AddSaturating(charge, holding->charge);
    unit.victims = unit.victims || &pod == &victim;
  }
  if (moment.counts_claims && !AddClaims(leaf, model, moment, units)) return std::nullopt;
  std::vector<WorkUnit> list;
  for (auto& [key, unit] : units) list.push_back(std::move(unit));
  return list;
}

bool EvictionChecker::MayBeBorrowed(const PodLife& victim, const std::string& leaf, Chosen chosen,
                                    SimTime since, SimTime at) const {
  const auto budgets = truth_.Versions("gpubudgets", at, since);
  const Objects nodes = truth_.Versions("nodes", at, at).front();
  const Order order = options_.faults.has(Fault::kClock) ? Order::kUnknown : Order::kByAge;
  // Ends are heard of one after another: up to each of them, in turn. What is told late for a while
  // may be told at once as well.
  std::set<SimTime> moments{since, at};
  for (const auto& [uid, pod] : truth_.pods()) {
    if (pod.ended && *pod.ended >= since && *pod.ended <= at) {
      moments.insert(*pod.ended + SimTime(1));
    }
  }
  const auto all_classes = truth_.Versions("gpuclasses", at, since);
  for (const Objects& declared : truth_.Versions("gpuquotas", at, since)) {
    const QuotaModel model(declared, truth_.objects("namespaces"));
    if (!model.known() || !model.Has(leaf)) return true;
    const auto demotes = [&](const Objects& all) { return MayDemote(all, model, leaf); };
    if (std::ranges::any_of(budgets, demotes)) return true;
    for (const Objects& classes : all_classes) {
      for (const SimTime moment : moments) {
        // What is kept, claims, and what leaves: counted or not; and by either age.
        for (unsigned counted = 0; counted < 16; ++counted) {
          const auto counts = [counted](unsigned what) { return (counted & what) != 0; };
          const auto units =
              UnitsOf(victim, leaf, model,
                      {moment, at, counts(1), counts(2), counts(4), counts(8), nodes, classes});
          if (!units || Fill(model, leaf, *units, order).victim_is_borrowed) return true;
          if (chosen == Chosen::kMayBe && CanSpare(model, leaf, *units, order)) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace tranche::sim::check
