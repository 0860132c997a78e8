#include "scheduler/wire/records/reclaim_json.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();
constexpr std::size_t kMostPods = 10'000;
// So that the work of all victims can be added up.
constexpr int64_t kMostWork = kMostInteger / static_cast<int64_t>(kMostPods);
constexpr int64_t kMostGraceMillis = int64_t{1000} << 31;

// ---- writing ------------------------------------------------------------------------------------

// Members that are left out where they say nothing.
void SetText(Json& object, const char* key, std::string_view text) {
  if (!text.empty()) object[key] = text;
}

void SetTime(Json& object, const char* key, std::optional<Instant> time) {
  if (time) object[key] = FormatTime(*time);
}

Json ForJson(const Reclaim& reclaim) {
  if (reclaim.members.empty()) return SourceJson(reclaim);
  const ReclaimMember& first = reclaim.members.front();
  Json pod = {{"kind", "Pod"}, {"namespace", first.pod.ns}, {"name", first.pod.name}};
  SetText(pod, "uid", first.uid.str());
  return pod;
}

Json MemberJson(const ReclaimMember& member) {
  Json json = {{"namespace", member.pod.ns}, {"name", member.pod.name}, {"uid", member.uid.str()}};
  SetText(json, "node", member.node.str());
  return json;
}

Json VictimJson(const ReclaimVictim& victim) {
  Json json = {{"pod", victim.pod.str()}};
  SetText(json, "uid", victim.uid.str());
  SetText(json, "node", victim.node.str());
  SetText(json, "gang", victim.gang);
  SetText(json, "owner", victim.owner);
  SetText(json, "leaf", victim.leaf);
  json["state"] = QuotaStateName(victim.state);
  json["lostGpuSeconds"] = CeilSeconds(victim.lost_gpu_ms);
  json["lostGpuMillis"] = victim.lost_gpu_ms;
  SetTime(json, "lastCheckpoint", victim.checkpoint);
  if (victim.grace) {
    json["graceSeconds"] = CeilSeconds(victim.grace->count());
    json["graceMillis"] = victim.grace->count();
  }
  SetTime(json, "evictedAt", victim.evicted_at);
  SetTime(json, "goneAt", victim.gone_at);
  if (victim.again) json["again"] = true;
  return json;
}

// The column of the highest rank where there are no victims.
constexpr int64_t kNoRank = -1;

std::array<int64_t, 8> CostColumns(const PlanCost& cost) {
  return {cost.pdb_violations, cost.rank.value_or(kNoRank),   cost.in_quota, cost.gangs,
          cost.collateral,     CeilSeconds(cost.lost_gpu_ms), cost.pods,     cost.surplus};
}

// What the columns of kubectl get print.
Json SummaryJson(const Reclaim& reclaim) {
  std::string preemptor = reclaim.source;
  if (!reclaim.members.empty()) {
    preemptor = reclaim.members.front().pod.str();
    const std::size_t others = reclaim.members.size() - 1;
    if (others > 0) preemptor += fmt::format(" and {} more", others);
  }
  const int64_t lost = std::accumulate(
      reclaim.victims.begin(), reclaim.victims.end(), int64_t{0},
      [](int64_t sum, const ReclaimVictim& victim) { return sum + victim.lost_gpu_ms; });
  return {{"for", preemptor},
          {"victims", ProgressText(reclaim)},
          {"lost", std::to_string(CeilSeconds(lost))}};
}

// ---- reading ------------------------------------------------------------------------------------

class ReclaimReader {
 public:
  absl::StatusOr<Reclaim> Read(Element document) {
    const std::optional<Object> object = reader_.AsObject(document, "GPUReclaim");
    if (!object) return reader_.status();
    if (const auto metadata = Required(*object, "metadata", "GPUReclaim")) {
      reclaim_.name = RequiredText(*metadata, "name", "metadata");
    }
    if (const auto spec = Required(*object, "spec", "GPUReclaim")) ReadSpec(*spec);
    if (const auto status = reader_.ReadObject(*object, "status", "GPUReclaim")) {
      ReadStatus(*status);
    }
    if (!reader_.ok()) return reader_.status();
    return std::move(reclaim_);
  }

 private:
  std::optional<Object> Required(Object parent, std::string_view key, std::string_view where) {
    const std::optional<Object> found = reader_.ReadObject(parent, key, where);
    if (!found) reader_.Fail(fmt::format("expected object, found nothing, in {}.{}", where, key));
    return found;
  }

  std::string RequiredText(Object parent, std::string_view key, std::string_view where) {
    const std::string_view text = reader_.ReadText(parent, key, where);
    if (text.empty()) {
      reader_.Fail(fmt::format("expected text, found nothing, in {}.{}", where, key));
    }
    return std::string(text);
  }

  int64_t Integer(Object parent, std::string_view key, std::string_view where,
                  IntegerRange range = {0, kMostInteger}) {
    return reader_.ReadInteger(parent, key, where, range).value_or(range.low);
  }

  std::optional<Instant> Time(Object parent, std::string_view key, std::string_view where) {
    const std::string_view text = reader_.ReadText(parent, key, where);
    if (text.empty()) return std::nullopt;
    const std::optional<Instant> time = ParseTime(text);
    if (!time) {
      reader_.Fail(
          fmt::format("expected an RFC 3339 time, found {}, in {}.{}", Quoted(text), where, key));
    }
    return time;
  }

  // The value with this name, among the first `count` of the enumeration.
  template <typename Value, typename NameOf>
  Value Named(Object parent, std::string_view key, std::string_view where, int count,
              NameOf name_of) {
    const std::string_view name = reader_.ReadText(parent, key, where);
    for (int i = 0; i < count; ++i) {
      if (name_of(static_cast<Value>(i)) == name) return static_cast<Value>(i);
    }
    reader_.Fail(
        fmt::format("expected a known name, found {}, in {}.{}", Quoted(name), where, key));
    return Value{};
  }

  template <typename ReadItem>
  void ReadList(Object parent, std::string_view key, std::string_view where, ReadItem read) {
    const std::optional<Array> items = reader_.ReadArray(parent, key, where);
    if (!items) return;
    std::size_t count = 0;
    for (const Element item : *items) {
      if (++count > kMostPods) {
        reader_.Fail(
            fmt::format("expected at most {} items, found more, in {}.{}", kMostPods, where, key));
      }
      if (!reader_.ok()) return;
      read(item);
    }
  }

  void ReadSpec(Object spec) {
    constexpr std::string_view kWhere = "spec";
    reclaim_.rule = Named<ReclaimRule>(spec, "rule", kWhere, kReclaimRules, ReclaimRuleName);
    if (reclaim_.rule == ReclaimRule::kNone)
      reader_.Fail("expected a rule, found none, in spec.rule");
    const bool for_work = reclaim_.rule != ReclaimRule::kDrain &&
                          reclaim_.rule != ReclaimRule::kShrink &&
                          reclaim_.rule != ReclaimRule::kGang && !EndsByItself(reclaim_.rule);
    if (const auto whom = Required(spec, "for", kWhere); whom && !for_work) {
      reclaim_.source = RequiredText(*whom, "name", "spec.for");
      const std::string ns(reader_.ReadText(*whom, "namespace", "spec.for"));
      if (!ns.empty()) reclaim_.source = ns + "/" + reclaim_.source;
    }
    reclaim_.leaf = reader_.ReadText(spec, "leaf", kWhere);
    reclaim_.snapshot = static_cast<uint64_t>(Integer(spec, "snapshot", kWhere));
    ReadList(spec, "members", kWhere, [this](Element item) { ReadMember(item); });
    if (for_work == reclaim_.members.empty()) {
      reader_.Fail(for_work ? "expected pods, found none, in spec.members"
                            : "expected no pods with this rule, found some, in spec.members");
    }
  }

  void ReadMember(Element element) {
    constexpr std::string_view kWhere = "spec.members";
    const std::optional<Object> object = reader_.AsObject(element, kWhere);
    if (!object) return;
    ReclaimMember& member = reclaim_.members.emplace_back();
    member.pod.ns = RequiredText(*object, "namespace", kWhere);
    member.pod.name = RequiredText(*object, "name", kWhere);
    member.uid = PodUid(RequiredText(*object, "uid", kWhere));
    member.node = NodeName(reader_.ReadText(*object, "node", kWhere));
  }

  void ReadStatus(Object status) {
    constexpr std::string_view kWhere = "status";
    reclaim_.phase = Named<ReclaimPhase>(
        status, "phase", kWhere, static_cast<int>(ReclaimPhase::kAborted) + 1, ReclaimPhaseName);
    reclaim_.reason = reader_.ReadText(status, "reason", kWhere);
    ReadList(status, "placed", kWhere, [this](Element item) { ReadPlaced(item); });
    ReadList(status, "victims", kWhere, [this](Element item) { ReadVictim(item); });
    ReadCost(status);
    if (const auto search = reader_.ReadObject(status, "search", kWhere)) {
      reclaim_.optimal = reader_.ReadText(*search, "result", "status.search") == "optimal";
      reclaim_.evaluations = Integer(*search, "evaluations", "status.search");
    }
    reclaim_.version = static_cast<uint64_t>(Integer(status, "version", kWhere));
    reclaim_.planned_at = Time(status, "plannedAt", kWhere).value_or(Instant{});
    reclaim_.reserved_at = Time(status, "reservedAt", kWhere);
    reclaim_.finished_at = Time(status, "finishedAt", kWhere);
  }

  void ReadPlaced(Element element) {
    const std::string_view uid = reader_.AsText(element, "status.placed").value_or("");
    for (ReclaimMember& member : reclaim_.members) {
      if (member.uid.str() == uid) member.placed = true;
    }
  }

  void ReadVictim(Element element) {
    constexpr std::string_view kWhere = "status.victims";
    const std::optional<Object> object = reader_.AsObject(element, kWhere);
    if (!object) return;
    ReclaimVictim& victim = reclaim_.victims.emplace_back();
    const std::string pod = RequiredText(*object, "pod", kWhere);
    const std::size_t slash = pod.find('/');
    if (slash == std::string::npos) {
      return reader_.Fail(
          fmt::format("expected namespace/name, found {}, in status.victims.pod", Quoted(pod)));
    }
    victim.pod = {pod.substr(0, slash), pod.substr(slash + 1)};
    victim.uid = PodUid(RequiredText(*object, "uid", kWhere));
    victim.node = NodeName(reader_.ReadText(*object, "node", kWhere));
    victim.gang = reader_.ReadText(*object, "gang", kWhere);
    victim.owner = reader_.ReadText(*object, "owner", kWhere);
    victim.leaf = reader_.ReadText(*object, "leaf", kWhere);
    victim.state = Named<QuotaState>(*object, "state", kWhere,
                                     static_cast<int>(QuotaState::kScavenging) + 1, QuotaStateName);
    victim.lost_gpu_ms = Integer(*object, "lostGpuMillis", kWhere, {0, kMostWork});
    victim.checkpoint = Time(*object, "lastCheckpoint", kWhere);
    const auto grace = reader_.ReadInteger(*object, "graceMillis", kWhere, {0, kMostGraceMillis});
    if (grace) victim.grace = Millis(*grace);
    victim.evicted_at = Time(*object, "evictedAt", kWhere);
    victim.gone_at = Time(*object, "goneAt", kWhere);
    victim.again = reader_.ReadBool(*object, "again", kWhere).value_or(false);
  }

  void ReadCost(Object status) {
    std::vector<int64_t> columns;
    ReadList(status, "cost", "status", [&](Element item) {
      int64_t column = 0;
      if (item.get(column) != simdjson::SUCCESS) {
        reader_.Fail(
            fmt::format("expected whole number, found {}, in status.cost", DescribeElement(item)));
      }
      columns.push_back(column);
    });
    PlanCost& cost = reclaim_.cost;
    cost.lost_gpu_ms = Integer(status, "lostGpuMillis", "status");
    if (columns.empty()) return;
    if (columns.size() != CostColumns(cost).size()) {
      return reader_.Fail(fmt::format("expected {} numbers, found {}, in status.cost",
                                      CostColumns(cost).size(), columns.size()));
    }
    cost.pdb_violations = columns[0];
    if (columns[1] != kNoRank) cost.rank = columns[1];
    cost.in_quota = columns[2];
    cost.gangs = columns[3];
    cost.collateral = columns[4];
    cost.pods = columns[6];
    cost.surplus = columns[7];
  }

  FieldReader reader_;
  Reclaim reclaim_;
};

}  // namespace

int64_t CeilSeconds(int64_t millis) {
  return std::chrono::ceil<std::chrono::seconds>(Millis(millis)).count();
}

Json SourceJson(const Reclaim& reclaim) {
  Json json = {{"kind", SourceKind(reclaim.rule)}};
  std::string_view name = reclaim.source;
  const std::size_t slash = name.find('/');
  if (reclaim.rule == ReclaimRule::kGang && slash != std::string_view::npos) {
    json["namespace"] = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  json["name"] = name;
  return json;
}

Json CostJson(const PlanCost& cost) { return CostColumns(cost); }

std::string ProgressText(const Reclaim& reclaim) {
  return fmt::format("{} of {} gone", reclaim.gone(), reclaim.victims.size());
}

std::string_view SearchResult(bool optimal) { return optimal ? "optimal" : "heuristic"; }

std::string EncodeReclaimSpec(const Reclaim& reclaim) {
  Json spec = {{"for", ForJson(reclaim)},
               {"rule", ReclaimRuleName(reclaim.rule)},
               {"snapshot", static_cast<int64_t>(reclaim.snapshot)}};
  SetText(spec, "leaf", reclaim.leaf);
  spec["members"] = ListOf(reclaim.members, MemberJson);
  return "\"spec\":" + Dump(spec);
}

std::string EncodeReclaimStatus(const Reclaim& reclaim) {
  Json status = {{"phase", ReclaimPhaseName(reclaim.phase)}};
  SetText(status, "reason", reclaim.reason);
  Json& placed = status["placed"] = Json::array();
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) placed.push_back(member.uid.str());
  }
  status["victims"] = ListOf(reclaim.victims, VictimJson);
  status["cost"] = CostJson(reclaim.cost);
  status["lostGpuMillis"] = reclaim.cost.lost_gpu_ms;
  status["search"] = {{"result", SearchResult(reclaim.optimal)},
                      {"evaluations", reclaim.evaluations}};
  status["version"] = static_cast<int64_t>(reclaim.version);
  SetTime(status, "plannedAt", reclaim.planned_at);
  SetTime(status, "reservedAt", reclaim.reserved_at);
  SetTime(status, "finishedAt", reclaim.finished_at);
  status["summary"] = SummaryJson(reclaim);
  return "\"status\":" + Dump(status);
}

absl::StatusOr<Reclaim> DecodeReclaim(std::string_view json) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(json));
  return ReclaimReader().Read(document);
}

}  // namespace tranche::wire
