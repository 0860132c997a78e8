#include "scheduler/api/lists/rank_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "quota/tree/gpu_text.h"
#include "quota/tree/limits.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

using wire::Json;
using wire::TextOrNull;

std::string GpuHours(int64_t thousandths) {
  return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
}

std::string_view TermName(TurnTerm term) {
  switch (term) {
    case TurnTerm::kClass:
      return "class";
    case TurnTerm::kShare:
      return "share";
    case TurnTerm::kReturned:
      return "evictedBefore";
    case TurnTerm::kSince:
      return "waitsSince";
    case TurnTerm::kUid:
      return "uid";
  }
  return "";
}

Json ShareJson(const std::optional<ShareTerms>& share) {
  if (!share) return nullptr;
  return {{"borrowedGpus", Json::parse(GpusRoundedUp(Limit(share->borrowed)))},
          {"weight", share->weight},
          {"weightOfAll", share->weights},
          {"usedGpuHours", GpuHours(share->used)},
          {"usedGpuHoursOfAll", GpuHours(share->used_by_all)},
          {"entitledMillionths", share->entitled}};
}

Json TurnJson(const TurnView& turn) {
  return {{"namespace", TextOrNull(turn.pod.ns)},
          {"name", turn.pod.name},
          {"uid", TextOrNull(turn.uid.str())},
          {"leaf", TextOrNull(turn.leaf)},
          {"class", TextOrNull(turn.workload_class)},
          {"classRank", turn.rank},
          {"share", ShareJson(turn.share)},
          {"evictedBefore", turn.returned},
          {"waitsSince", wire::FormatTime(turn.since)}};
}

Json NeighbourJson(const std::optional<TurnView>& turn) { return turn ? TurnJson(*turn) : Json(); }

Json LineJson(const TurnLine& line) {
  return {{"for", line.what == TurnLine::For::kQuota ? "quota" : "room"},
          {"position", line.position},
          {"waiting", line.waiting},
          {"before", NeighbourJson(line.before)},
          {"beforeBy", line.before ? Json(TermName(line.before_by)) : Json()},
          {"after", NeighbourJson(line.after)},
          {"afterBy", line.after ? Json(TermName(line.after_by)) : Json()}};
}

Json TeamJson(const QuotaView* team) {
  if (team == nullptr) return nullptr;
  const QuotaReport& report = team->report;
  return {{"name", report.name},
          {"fairShareGpus", Json::parse(GpusRoundedDown(Limit(report.fair_share)))},
          {"workloads", report.workloads},
          {"workloadsBorrowed", report.workloads_borrowed},
          {"pending",
           {{"workloads", team->pending_workloads},
            {"gpus", Json::parse(GpusRoundedUp(Limit(team->pending_quanta)))}}}};
}

}  // namespace

std::string EncodeRank(const RankView& rank, const QuotaView* team) {
  return wire::Dump({{"pod", TurnJson(rank.own)},
                     {"waits", rank.waits},
                     {"lines", wire::ListOf(rank.lines, LineJson)},
                     {"team", TeamJson(team)}});
}

}  // namespace tranche
