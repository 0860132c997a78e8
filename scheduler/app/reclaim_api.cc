#include "scheduler/app/reclaim_api.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "scheduler/app/json_members.h"

namespace tranche::app {
namespace {

int64_t Seconds(int64_t millis) { return millis / 1000 + (millis % 1000 > 0 ? 1 : 0); }

void AppendFor(std::string& out, const Reclaim& reclaim) {
  AppendKey(out, "for");
  out += '{';
  if (reclaim.members.empty()) {
    AppendMember(out, "kind", SourceKind(reclaim.rule));
    AppendMember(out, "name", reclaim.source);
  } else {
    AppendMember(out, "namespace", reclaim.members.front().pod.ns);
    AppendMember(out, "name", reclaim.members.front().pod.name);
  }
  out += '}';
}

void AppendReclaimMember(std::string& out, const ReclaimMember& member) {
  out += '{';
  AppendMember(out, "pod", member.pod.str());
  AppendTextOrNull(out, "node", member.node.str());
  AppendFlag(out, "placed", member.placed);
  out += '}';
}

void AppendVictim(std::string& out, const ReclaimVictim& victim) {
  out += '{';
  AppendMember(out, "pod", victim.pod.str());
  AppendTextOrNull(out, "leaf", victim.leaf);
  AppendTextOrNull(out, "gang", victim.gang);
  AppendMember(out, "state", QuotaStateName(victim.state));
  AppendTextOrNull(out, "node", victim.node.str());
  AppendMember(out, "lostGpuSeconds", Seconds(victim.lost_gpu_ms));
  AppendTimeOrNull(out, "lastCheckpoint", victim.checkpoint);
  AppendTimeOrNull(out, "evictedAt", victim.evicted_at);
  AppendTimeOrNull(out, "goneAt", victim.gone_at);
  AppendFlag(out, "gone", victim.gone_at.has_value());
  out += '}';
}

// In the order of comparison: see the CRD.
void AppendCost(std::string& out, const PlanCost& cost) {
  const std::array<int64_t, 8> columns = {
      cost.pdb_violations,       cost.rank, cost.in_quota, cost.gangs, cost.collateral,
      Seconds(cost.lost_gpu_ms), cost.pods, cost.surplus};
  AppendKey(out, "cost");
  out += fmt::format("[{}]", fmt::join(columns, ","));
}

std::string_view SearchResult(bool optimal) { return optimal ? "optimal" : "heuristic"; }

// The members of a reclaim, without the braces.
void AppendReclaim(std::string& out, const Reclaim& reclaim) {
  AppendMember(out, "name", reclaim.name);
  AppendFor(out, reclaim);
  AppendTextOrNull(out, "leaf", reclaim.leaf);
  AppendMember(out, "rule", ReclaimRuleName(reclaim.rule));
  AppendMember(out, "phase", ReclaimPhaseName(reclaim.phase));
  AppendTextOrNull(out, "reason", reclaim.reason);
  AppendTextOrNull(
      out, "node",
      reclaim.members.empty() ? std::string_view() : reclaim.members.front().node.str());
  AppendList(out, "members", reclaim.members, AppendReclaimMember);
  AppendList(out, "victims", reclaim.victims, AppendVictim);
  AppendMember(out, "progress",
               fmt::format("{} of {} gone", reclaim.gone(), reclaim.victims.size()));
  AppendCost(out, reclaim.cost);
  AppendKey(out, "search");
  out += '{';
  AppendMember(out, "result", SearchResult(reclaim.optimal));
  AppendMember(out, "evaluations", reclaim.evaluations);
  out += '}';
  AppendTimeOrNull(out, "plannedAt", reclaim.planned_at);
  AppendTimeOrNull(out, "reservedAt", reclaim.reserved_at);
  AppendTimeOrNull(out, "finishedAt", reclaim.finished_at);
}

bool TakesAway(const Reclaim& reclaim, const PodUid& uid) {
  return std::ranges::any_of(reclaim.victims,
                             [&uid](const ReclaimVictim& victim) { return victim.uid == uid; });
}

}  // namespace

std::string EncodeReclaims(std::span<const Reclaim> reclaims, Instant now) {
  std::string out = "{";
  AppendList(out, "reclaims", reclaims, [](std::string& text, const Reclaim& reclaim) {
    text += '{';
    AppendReclaim(text, reclaim);
    text += '}';
  });
  AppendTimeOrNull(out, "now", now);
  out += '}';
  return out;
}

void AppendPlan(std::string& out, const Explanation& explanation) {
  AppendKey(out, "plan");
  if (explanation.reclaim) {
    out += '{';
    AppendMember(out, "role",
                 TakesAway(*explanation.reclaim, explanation.pod.uid) ? "victim" : "preemptor");
    AppendReclaim(out, *explanation.reclaim);
    out += '}';
  } else if (explanation.blocked) {
    const PlanBlock& block = *explanation.blocked;
    const ReasonText& text = Describe(block.reason);
    out += "{\"blocked\":{";
    AppendMember(out, "code", text.code);
    AppendMember(out, "text", text.text);
    AppendMember(out, "detail", block.detail);
    AppendTimeOrNull(out, "until", block.until);
    out += "}}";
  } else {
    out += "null";
  }
}

void AppendEvictions(std::string& out, const WhatIfResult& result) {
  AppendList(out, "victims", result.victims, [](std::string& text, const ReclaimVictim& victim) {
    AppendQuoted(text, victim.pod.str());
  });
  if (result.victims.empty()) {
    for (const std::string_view key : {"rule", "cost", "search"}) AppendNull(out, key);
  } else {
    AppendMember(out, "rule", ReclaimRuleName(result.rule));
    AppendCost(out, result.cost);
    AppendKey(out, "search");
    out += '{';
    AppendMember(out, "result", SearchResult(result.optimal));
    out += '}';
  }
  AppendList(out, "evictions", result.victims, AppendVictim);
}

}  // namespace tranche::app
