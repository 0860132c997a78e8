#include "scheduler/cli/cli_reclaim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"

namespace tranche {
namespace {

std::string StandingOf(const Json& victim) {
  if (Text(victim, "goneAt") != "-") return "gone";
  return Text(victim, "evictedAt") == "-" ? "running" : "leaving";
}

// Victims of a plan that runs have a state of their own; those of a what-if answer have none.
enum class Victims { kLeaving, kProposed };

void PrintVictims(const Json& victims, Victims kind, std::ostream& out) {
  std::vector<std::string> titles = {"VICTIM", "QUOTA", "STATE", "NODE", "LOSES", "CHECKPOINT"};
  if (kind == Victims::kLeaving) titles.emplace_back("NOW");
  Table table(std::move(titles));
  for (const Json& victim : victims) {
    std::vector<std::string> cells = {Text(victim, "pod"),
                                      Text(victim, "leaf"),
                                      Text(victim, "state"),
                                      Text(victim, "node"),
                                      GpuSeconds(Whole(victim, "lostGpuSeconds")),
                                      Text(victim, "lastCheckpoint")};
    if (kind == Victims::kLeaving) cells.push_back(StandingOf(victim));
    table.Add(std::move(cells));
  }
  out << table.Text(TerminalOf(out));
}

}  // namespace

std::string WhomFor(const Json& reclaim) {
  const Json& whom = reclaim.at("for");
  if (whom.contains("kind")) return fmt::format("{} {}", Text(whom, "kind"), Text(whom, "name"));
  std::string text = fmt::format("{}/{}", Text(whom, "namespace"), Text(whom, "name"));
  const std::size_t members = reclaim.at("members").size();
  if (members > 1) text += fmt::format(" and {} more", members - 1);
  return text;
}

std::string GpuSeconds(int64_t seconds) { return fmt::format("{} GPU-s", seconds); }

int64_t LostBy(const Json& victims) {
  int64_t sum = 0;
  for (const Json& victim : victims) sum += Whole(victim, "lostGpuSeconds");
  return sum;
}

namespace {

Rows ReclaimRows(const Json& reclaim, const Json& answer) {
  std::vector<std::string> victims;
  for (const Json& victim : reclaim.at("victims")) victims.push_back(Text(victim, "pod"));
  return {{WhomFor(reclaim), Text(reclaim, "rule"), Text(reclaim, "progress"),
           GpuSeconds(LostBy(reclaim.at("victims"))), Text(reclaim, "phase"),
           Text(reclaim, "reason"), Age(Text(reclaim, "plannedAt"), Text(answer, "now")),
           Text(reclaim, "name"), Text(reclaim, "node"),
           victims.empty() ? "-" : fmt::format("{}", fmt::join(victims, ", "))}};
}

const ListShape kReclaims = {"reclaims",
                             "reclaim",
                             "no reclaim runs or ended within the last day",
                             {{"FOR"},
                              {"RULE"},
                              {"VICTIMS"},
                              {"LOST"},
                              {"STATE"},
                              {"REASON"},
                              {"AGE"},
                              {"NAME", true},
                              {"NODE", true},
                              {"VICTIM PODS", true}},
                             ReclaimRows,
                             [](const Json& reclaim) { return Text(reclaim, "name"); }};

}  // namespace

const ListShape& ReclaimList() { return kReclaims; }

void PrintPlan(const Json& plan, std::ostream& out) {
  if (plan.is_null()) return;
  if (plan.contains("blocked")) {
    const Json& blocked = plan.at("blocked");
    PrintLabelled("plan", "none: " + Text(blocked, "text"), out);
    if (Text(blocked, "detail") != "-") PrintLabelled("guard", Text(blocked, "detail"), out);
    if (Text(blocked, "until") != "-") PrintLabelled("until", Text(blocked, "until"), out);
    return;
  }
  PrintLabelled(
      "plan",
      fmt::format("{} {} by rule {}: {}, {}",
                  Text(plan, "role") == "victim" ? "evicted for" : "victims leave for",
                  WhomFor(plan), Text(plan, "rule"), Text(plan, "phase"), Text(plan, "progress")),
      out);
  PrintLabelled("planned", Text(plan, "plannedAt"), out);
  out << '\n';
  PrintVictims(plan.at("victims"), Victims::kLeaving, out);
}

void PrintEvictions(const Json& pod, std::ostream& out) {
  const Json& victims = pod.at("evictions");
  if (victims.empty()) return;
  out << fmt::format("\nroom for {}/{} would be made by evicting\n", Text(pod, "namespace"),
                     Text(pod, "name"));
  PrintVictims(victims, Victims::kProposed, out);
  out << fmt::format("rule {}, {} search, {} of work lost; nothing was done\n", Text(pod, "rule"),
                     Text(pod.at("search"), "result"), GpuSeconds(LostBy(victims)));
}

}  // namespace tranche
