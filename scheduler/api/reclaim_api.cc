#include "scheduler/api/reclaim_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/records/reclaim_json.h"

namespace tranche {
namespace {

using wire::CeilSeconds;
using wire::Json;
using wire::ListOf;
using wire::TextOrNull;
using wire::TimeOrNull;

// Of one that is not to be named the name alone says what it is.
std::string Shown(const PodName& pod) { return pod.ns.empty() ? pod.name : pod.str(); }

Json ForJson(const Reclaim& reclaim) {
  if (reclaim.members.empty()) return wire::SourceJson(reclaim);
  const PodName& pod = reclaim.members.front().pod;
  return {{"namespace", TextOrNull(pod.ns)}, {"name", pod.name}};
}

Json MemberJson(const ReclaimMember& member) {
  return {{"pod", Shown(member.pod)},
          {"node", TextOrNull(member.node.str())},
          {"placed", member.placed}};
}

Json VictimJson(const ReclaimVictim& victim) {
  return {{"pod", Shown(victim.pod)},
          {"leaf", TextOrNull(victim.leaf)},
          {"gang", TextOrNull(victim.gang)},
          {"state", QuotaStateName(victim.state)},
          {"node", TextOrNull(victim.node.str())},
          {"lostGpuSeconds", CeilSeconds(victim.lost_gpu_ms)},
          {"lastCheckpoint", TimeOrNull(victim.checkpoint)},
          {"evictedAt", TimeOrNull(victim.evicted_at)},
          {"goneAt", TimeOrNull(victim.gone_at)},
          {"gone", victim.gone_at.has_value()}};
}

bool TakesAway(const Reclaim& reclaim, const PodUid& uid) {
  return std::ranges::any_of(reclaim.victims,
                             [&uid](const ReclaimVictim& victim) { return victim.uid == uid; });
}

}  // namespace

Json ReclaimJson(const Reclaim& reclaim) {
  return {
      {"name", reclaim.name},
      {"for", ForJson(reclaim)},
      {"leaf", TextOrNull(reclaim.leaf)},
      {"rule", ReclaimRuleName(reclaim.rule)},
      {"phase", ReclaimPhaseName(reclaim.phase)},
      {"reason", TextOrNull(reclaim.reason)},
      {"node", reclaim.members.empty() ? Json() : TextOrNull(reclaim.members.front().node.str())},
      {"members", ListOf(reclaim.members, MemberJson)},
      {"victims", ListOf(reclaim.victims, VictimJson)},
      {"progress", wire::ProgressText(reclaim)},
      {"cost", wire::CostJson(reclaim.cost)},
      {"search",
       {{"result", wire::SearchResult(reclaim.optimal)}, {"evaluations", reclaim.evaluations}}},
      {"plannedAt", wire::FormatTime(reclaim.planned_at)},
      {"reservedAt", TimeOrNull(reclaim.reserved_at)},
      {"finishedAt", TimeOrNull(reclaim.finished_at)}};
}

std::string EncodeReclaim(const Reclaim& reclaim) { return wire::Dump(ReclaimJson(reclaim)); }

std::string EncodeReclaims(std::span<const Reclaim> reclaims, Instant now) {
  return wire::Dump({{"reclaims", ListOf(reclaims, ReclaimJson)}, {"now", wire::FormatTime(now)}});
}

Json PlanJson(const Explanation& explanation) {
  if (explanation.reclaim) {
    const bool victim = TakesAway(*explanation.reclaim, explanation.pod.uid);
    Json plan = {{"role", victim ? "victim" : "preemptor"}};
    plan.update(ReclaimJson(*explanation.reclaim));
    return plan;
  }
  if (!explanation.blocked) return {};
  const PlanBlock& block = *explanation.blocked;
  const ReasonText& text = Describe(block.reason);
  return {{"blocked",
           {{"code", text.code},
            {"text", text.text},
            {"detail", block.detail},
            {"until", TimeOrNull(block.until)}}}};
}

Json EvictionsJson(const WhatIfResult& result) {
  const auto name = [](const ReclaimVictim& victim) { return victim.pod.str(); };
  Json evictions = {{"victims", ListOf(result.victims, name)},
                    {"rule", nullptr},
                    {"cost", nullptr},
                    {"search", nullptr}};
  if (!result.victims.empty()) {
    evictions["rule"] = ReclaimRuleName(result.rule);
    evictions["cost"] = wire::CostJson(result.cost);
    evictions["search"] = {{"result", wire::SearchResult(result.optimal)}};
  }
  evictions["evictions"] = ListOf(result.victims, VictimJson);
  return evictions;
}

}  // namespace tranche
