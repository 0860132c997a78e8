#include "scheduler/cli/output/rank.h"

#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/terminal.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {
namespace {

std::string NameOfTurn(const Json& turn) {
  if (turn.is_null()) return "-";
  const std::string ns = Text(turn, "namespace");
  return ns == "-" ? Text(turn, "name") : fmt::format("{}/{}", ns, Text(turn, "name"));
}

std::string ClassOf(const Json& turn) {
  const std::string name = Text(turn, "class");
  return fmt::format("{} (rank {})", name == "-" ? "none" : name, Whole(turn, "classRank"));
}

std::string OfShare(const Json& turn, std::string (*text)(const Json& share)) {
  const Json& share = turn.at("share");
  return share.is_null() ? "-" : text(share);
}

std::string BorrowedOf(const Json& share) { return Text(share, "borrowedGpus") + " GPUs"; }
std::string WeightOf(const Json& share) {
  return fmt::format("{} of {}", Whole(share, "weight"), Whole(share, "weightOfAll"));
}
std::string UsedOf(const Json& share) {
  return fmt::format("{} of {} GPU-h", Text(share, "usedGpuHours"),
                     Text(share, "usedGpuHoursOfAll"));
}
std::string EntitledOf(const Json& share) {
  const int64_t tenths = Whole(share, "entitledMillionths") / 1000;
  return fmt::format("{}.{}%", tenths / 10, tenths % 10);
}

// A term of the order, as the server names it, and how it is shown.
struct Term {
  std::string_view key;
  const char* label;
  std::string (*text)(const Json& turn);
};

std::string WaitsOf(const Json& turn) {
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  return fmt::format("{} ({})", Text(turn, "waitsSince"),
                     Age(Text(turn, "waitsSince"), wire::FormatTime(now)));
}

const std::vector<Term>& Terms() {
  static const std::vector<Term> terms = {
      {"class", "class", ClassOf},
      {"share", "team", [](const Json& turn) { return Text(turn, "leaf"); }},
      {"share", "borrows", [](const Json& turn) { return OfShare(turn, BorrowedOf); }},
      {"share", "weight", [](const Json& turn) { return OfShare(turn, WeightOf); }},
      {"share", "used lately", [](const Json& turn) { return OfShare(turn, UsedOf); }},
      {"share", "entitled to", [](const Json& turn) { return OfShare(turn, EntitledOf); }},
      {"evictedBefore", "evicted before",
       [](const Json& turn) {
         return std::string(turn.at("evictedBefore").get<bool>() ? "yes" : "no");
       }},
      {"waitsSince", "waits since", WaitsOf},
      {"uid", "uid", [](const Json& turn) { return Text(turn, "uid"); }},
  };
  return terms;
}

// A neighbour's value, with a mark at the term that tells the two apart.
std::string CellOf(const Term& term, const Json& turn, const Json& decides) {
  if (turn.is_null()) return "-";
  const bool marked = decides.is_string() && decides.get<std::string>() == term.key;
  return term.text(turn) + (marked ? " *" : "");
}

void PrintLine(const Json& pod, const Json& line, std::ostream& out) {
  const bool quota = Text(line, "for") == "quota";
  out << '\n'
      << Wrapped(fmt::format("Position {} of {} that wait for {}; * marks the term that decides.",
                             Whole(line, "position"), Whole(line, "waiting"),
                             quota ? "quota of this tree" : "room to be made"),
                 0, TerminalOf(out).columns)
      << '\n';
  const Json& before = line.at("before");
  const Json& after = line.at("after");
  Table table(
      {"TERM", "BEFORE: " + NameOfTurn(before), NameOfTurn(pod), "AFTER: " + NameOfTurn(after)});
  for (const Term& term : Terms()) {
    // Room is made whatever teams borrow.
    if (!quota && term.key == "share") continue;
    table.Add({term.label, CellOf(term, before, line.at("beforeBy")), term.text(pod),
               CellOf(term, after, line.at("afterBy"))});
  }
  out << table.Text(TerminalOf(out));
}

}  // namespace

void PrintRank(const Json& answer, std::ostream& out) {
  const Json& pod = answer.at("pod");
  PrintLabelled("pod", NameOfTurn(pod), out);
  if (const Json& team = answer.at("team"); !team.is_null()) {
    PrintLabelled("team", Text(team, "name"), out);
    PrintLabelled("fair share", Text(team, "fairShareGpus") + " GPUs", out);
    PrintLabelled("running",
                  fmt::format("{} workloads, {} of them borrowed", Whole(team, "workloads"),
                              Whole(team, "workloadsBorrowed")),
                  out);
    PrintLabelled("waiting",
                  fmt::format("{} workloads for {} GPUs", Whole(team.at("pending"), "workloads"),
                              Text(team.at("pending"), "gpus")),
                  out);
  }
  const Json& lines = answer.at("lines");
  for (const Json& line : lines) PrintLine(pod, line, out);
  if (!lines.empty()) return;
  PrintLabelled("order",
                answer.at("waits").get<bool>()
                    ? "of kube-scheduler's queue alone: neither quota nor room to be made keeps it"
                    : "none: the pod does not wait",
                out);
  Table table({"TERM", "VALUE"});
  for (const Term& term : Terms()) table.Add({term.label, term.text(pod)});
  out << '\n' << table.Text(TerminalOf(out));
}

}  // namespace tranche
