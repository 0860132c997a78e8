#include "scheduler/wire/reclaim_json.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/object_json.h"

namespace tranche::wire {
namespace {

constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();
constexpr std::size_t kMostPods = 10'000;
// So that the work of all victims can be added up.
constexpr int64_t kMostWork = kMostInteger / static_cast<int64_t>(kMostPods);
constexpr int64_t kMostGraceMillis = int64_t{1000} << 31;

constexpr std::string_view kPod = "Pod";
constexpr std::string_view kBudget = "GPUBudget";
constexpr std::string_view kQuota = "GPUQuota";

// ---- writing ------------------------------------------------------------------------------------

int64_t CeilSeconds(int64_t millis) { return millis / 1000 + (millis % 1000 > 0 ? 1 : 0); }

void AppendKey(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  AppendQuoted(out, key);
  out += ':';
}

void AppendInteger(std::string& out, std::string_view key, int64_t value) {
  AppendKey(out, key);
  out += fmt::format_int(value).c_str();
}

void AppendTrue(std::string& out, std::string_view key, bool value) {
  if (!value) return;
  AppendKey(out, key);
  out += "true";
}

void AppendText(std::string& out, std::string_view key, std::string_view text) {
  if (!text.empty()) AppendMember(out, key, text);
}

void AppendTime(std::string& out, std::string_view key, std::optional<Instant> time) {
  if (time) AppendMember(out, key, FormatTime(*time));
}

template <typename Items, typename AppendItem>
void AppendList(std::string& out, std::string_view key, const Items& items, AppendItem append) {
  AppendKey(out, key);
  out += '[';
  for (const auto& item : items) {
    if (out.back() != '[') out += ',';
    append(item);
  }
  out += ']';
}

void AppendFor(std::string& out, const Reclaim& reclaim) {
  AppendKey(out, "for");
  out += '{';
  if (reclaim.members.empty()) {
    AppendMember(out, "kind", SourceKind(reclaim.rule));
    AppendMember(out, "name", reclaim.source);
  } else {
    const ReclaimMember& first = reclaim.members.front();
    AppendMember(out, "kind", kPod);
    AppendMember(out, "namespace", first.pod.ns);
    AppendMember(out, "name", first.pod.name);
    AppendText(out, "uid", first.uid.str());
  }
  out += '}';
}

void AppendVictim(std::string& out, const ReclaimVictim& victim) {
  out += '{';
  AppendMember(out, "pod", victim.pod.str());
  AppendText(out, "uid", victim.uid.str());
  AppendText(out, "node", victim.node.str());
  AppendText(out, "gang", victim.gang);
  AppendText(out, "owner", victim.owner);
  AppendText(out, "leaf", victim.leaf);
  AppendMember(out, "state", QuotaStateName(victim.state));
  AppendInteger(out, "lostGpuSeconds", CeilSeconds(victim.lost_gpu_ms));
  AppendInteger(out, "lostGpuMillis", victim.lost_gpu_ms);
  AppendTime(out, "lastCheckpoint", victim.checkpoint);
  if (victim.grace) {
    AppendInteger(out, "graceSeconds", CeilSeconds(victim.grace->count()));
    AppendInteger(out, "graceMillis", victim.grace->count());
  }
  AppendTime(out, "evictedAt", victim.evicted_at);
  AppendTime(out, "goneAt", victim.gone_at);
  AppendTrue(out, "again", victim.again);
  out += '}';
}

std::array<int64_t, 8> CostColumns(const PlanCost& cost) {
  return {cost.pdb_violations,           cost.rank, cost.in_quota, cost.gangs, cost.collateral,
          CeilSeconds(cost.lost_gpu_ms), cost.pods, cost.surplus};
}

// What the columns of kubectl get print.
void AppendSummary(std::string& out, const Reclaim& reclaim) {
  AppendKey(out, "summary");
  out += '{';
  if (reclaim.members.empty()) {
    AppendMember(out, "for", reclaim.source);
  } else {
    std::string whom = reclaim.members.front().pod.str();
    const std::size_t others = reclaim.members.size() - 1;
    if (others > 0) whom += fmt::format(" and {} more", others);
    AppendMember(out, "for", whom);
  }
  AppendMember(out, "victims",
               fmt::format("{} of {} gone", reclaim.gone(), reclaim.victims.size()));
  const int64_t lost = std::accumulate(
      reclaim.victims.begin(), reclaim.victims.end(), int64_t{0},
      [](int64_t sum, const ReclaimVictim& victim) { return sum + victim.lost_gpu_ms; });
  AppendMember(out, "lost", fmt::format("{}", CeilSeconds(lost)));
  out += '}';
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
    reclaim_.rule = Named<ReclaimRule>(spec, "rule", kWhere,
                                       static_cast<int>(ReclaimRule::kGang) + 1, ReclaimRuleName);
    if (reclaim_.rule == ReclaimRule::kNone)
      reader_.Fail("expected a rule, found none, in spec.rule");
    const bool for_work =
        reclaim_.rule != ReclaimRule::kDrain && reclaim_.rule != ReclaimRule::kShrink &&
        reclaim_.rule != ReclaimRule::kGang;
    if (const auto whom = Required(spec, "for", kWhere); whom && !for_work) {
      reclaim_.source = RequiredText(*whom, "name", "spec.for");
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
    cost.rank = columns[1];
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

std::string EncodeReclaimSpec(const Reclaim& reclaim) {
  std::string out = R"("spec":{)";
  AppendFor(out, reclaim);
  AppendMember(out, "rule", ReclaimRuleName(reclaim.rule));
  AppendInteger(out, "snapshot", static_cast<int64_t>(reclaim.snapshot));
  AppendText(out, "leaf", reclaim.leaf);
  AppendList(out, "members", reclaim.members, [&out](const ReclaimMember& member) {
    out += '{';
    AppendMember(out, "namespace", member.pod.ns);
    AppendMember(out, "name", member.pod.name);
    AppendMember(out, "uid", member.uid.str());
    AppendText(out, "node", member.node.str());
    out += '}';
  });
  return out + "}";
}

std::string EncodeReclaimStatus(const Reclaim& reclaim) {
  std::string out = R"("status":{)";
  AppendMember(out, "phase", ReclaimPhaseName(reclaim.phase));
  AppendText(out, "reason", reclaim.reason);
  std::vector<std::string_view> placed;
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) placed.push_back(member.uid.str());
  }
  AppendList(out, "placed", placed, [&out](std::string_view uid) { AppendQuoted(out, uid); });
  AppendList(out, "victims", reclaim.victims,
             [&out](const ReclaimVictim& victim) { AppendVictim(out, victim); });
  AppendList(out, "cost", CostColumns(reclaim.cost),
             [&out](int64_t column) { out += fmt::format_int(column).c_str(); });
  AppendInteger(out, "lostGpuMillis", reclaim.cost.lost_gpu_ms);
  AppendKey(out, "search");
  out += '{';
  AppendMember(out, "result", reclaim.optimal ? "optimal" : "heuristic");
  AppendInteger(out, "evaluations", reclaim.evaluations);
  out += '}';
  AppendInteger(out, "version", static_cast<int64_t>(reclaim.version));
  AppendTime(out, "plannedAt", reclaim.planned_at);
  AppendTime(out, "reservedAt", reclaim.reserved_at);
  AppendTime(out, "finishedAt", reclaim.finished_at);
  AppendSummary(out, reclaim);
  return out + "}";
}

absl::StatusOr<Reclaim> DecodeReclaim(std::string_view json) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(json, false);
  if (!document.ok()) return document.status();
  return ReclaimReader().Read(*document);
}

}  // namespace tranche::wire
