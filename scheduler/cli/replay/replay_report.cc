#include "scheduler/cli/replay/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "quota/tree/charge.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/ledger/bill/bill.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::replay {
namespace {

// A start within so long of the other counts as the same: kube-scheduler's own time is in what
// happened and not in what is lived again.
constexpr std::chrono::seconds kSameStart{60};
constexpr const char* kNoTeam = "";

int64_t MillisOf(Instant at) { return at.time_since_epoch().count(); }

std::string Hours(int64_t milli_gpu_millis) {
  const int64_t thousandths = milli_gpu_millis / 3'600'000;
  return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
}

// The teams of namespaces, by the policies that were in force last.
class Teams {
 public:
  explicit Teams(const LivedPast& lived) {
    for (const PastFleet& fleet : lived.fleet) {
      if (fleet.set != nullptr) set_ = fleet.set.get();
    }
  }
  const std::string& Of(const std::string& ns) {
    const auto [known, is_new] = teams_.try_emplace(ns, kNoTeam);
    if (is_new && set_ != nullptr) {
      const std::vector<const GpuQuota*> leaves = set_->LeavesOf(ns);
      if (leaves.size() == 1) known->second = leaves.front()->name;
    }
    return known->second;
  }

 private:
  const PolicySet* set_ = nullptr;
  std::map<std::string, std::string> teams_;
};

struct Costs {
  std::string currency;
  std::map<std::string, int64_t> cents;  // by team
  int64_t all = 0;
};

std::vector<ledger::FleetEntry> FleetOf(const LivedPast& offered) {
  std::vector<ledger::FleetEntry> entries;
  std::set<std::string> prices;
  const auto add = [&entries](FleetKind kind, Instant at, std::string text) {
    entries.push_back(
        {static_cast<int64_t>(entries.size()) + 1, kind, MillisOf(at), std::move(text)});
  };
  for (const PastFleet& fleet : offered.fleet) {
    for (const FleetNode& node : fleet.nodes) {
      const std::string& name = node.name.str();
      if (!ledger::IsFleetName(name) || !ledger::IsFleetName(node.model)) continue;
      add(FleetKind::kNode, fleet.at,
          node.gpus == 0 ? ledger::GoneNodeText(name)
                         : ledger::NodeText({name, {{node.model, node.gpus}}, node.traits}));
    }
    if (fleet.set == nullptr) continue;
    std::set<std::string> gone = std::exchange(prices, {});
    for (const GpuPrice& price : fleet.set->prices) {
      if (!ledger::IsFleetName(price.name)) continue;
      gone.erase(price.name);
      prices.insert(price.name);
      add(FleetKind::kPrice, fleet.at, ledger::PriceText(price));
    }
    for (const std::string& name : gone) {
      add(FleetKind::kPrice, fleet.at, ledger::GonePriceText(name));
    }
  }
  return entries;
}

absl::StatusOr<Costs> CostsOf(const Course& course, Instant from, Instant until) {
  std::map<std::string, std::string> models;
  for (const PastFleet& fleet : course.offered->fleet) {
    for (const FleetNode& node : fleet.nodes) models[node.name.str()] = node.model;
  }
  Teams teams(*course.offered);
  std::vector<ledger::BillUse> uses;
  for (const WorkLife& life : course.lived->lives) {
    for (const WorkRun& run : life.runs) {
      ledger::BillUse use;
      use.node = run.node.str();
      use.model = models[use.node];
      use.ns = life.pod.ns;
      use.team = teams.Of(use.ns);
      use.from = MillisOf(std::max(run.from, from));
      use.until = MillisOf(std::min(run.until.value_or(until), until));
      if (use.from >= use.until) continue;
      use.charge.compute = use.charge.memory = life.gpus.count() * kQuantaPerMilli;
      uses.push_back(std::move(use));
    }
  }
  TRANCHE_ASSIGN_OR_RETURN(
      const ledger::Bill bill,
      ledger::SumBill({from, until, ledger::BillBy::kTeam}, FleetOf(*course.offered), uses));
  Costs costs{bill.currency, {}, bill.used.cents};
  for (const ledger::BillRow& row : bill.rows) costs.cents[row.key] = row.part.cents;
  return costs;
}

Json SumsJson(const PastSums& sums, std::optional<int64_t> cents) {
  const auto seconds = [](Millis time) { return time.count() / 1000; };
  Json json;
  json["pods"] = sums.pods;
  json["started"] = sums.started;
  json["waitMeanSeconds"] = seconds(sums.wait_mean);
  json["waitMedianSeconds"] = seconds(sums.wait_median);
  json["waitP90Seconds"] = seconds(sums.wait_p90);
  json["evictions"] = sums.evictions;
  json["lostGpuHours"] = Hours(sums.lost);
  json["gpuHours"] = Hours(sums.held);
  json["cost"] = cents ? Json(ledger::FormatCents(*cents)) : Json();
  return json;
}

Json AgreementOf(const LivedPast& happened, const LivedPast& replayed) {
  int64_t pods = 0;
  int64_t same_start = 0;
  int64_t same_node = 0;
  for (std::size_t i = 0; i < happened.lives.size(); ++i) {
    const std::vector<WorkRun>& then = happened.lives[i].runs;
    const std::vector<WorkRun>& now = replayed.lives[i].runs;
    if (then.empty()) continue;
    ++pods;
    if (now.empty()) continue;
    const auto apart = now.front().from - then.front().from;
    if (apart <= kSameStart && apart >= -kSameStart) ++same_start;
    if (now.front().node == then.front().node) ++same_node;
  }
  Json json;
  json["pods"] = pods;
  json["sameStart"] = same_start;
  json["sameNode"] = same_node;
  return json;
}

std::string Span(int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7'200) return fmt::format("{} min", (seconds + 30) / 60);
  return fmt::format("{}.{} h", seconds / 3'600, seconds % 3'600 / 360);
}

// "12.345" as "12.3".
std::string Tenth(const std::string& decimal) {
  const std::size_t point = decimal.find('.');
  return point == std::string::npos ? decimal : decimal.substr(0, point + 2);
}

constexpr const char* kCourses[] = {"happened", "replayed", "edited"};

}  // namespace

absl::StatusOr<Json> ReportJson(const ReplayReport& report) {
  Json json;
  json["from"] = wire::FormatTime(report.from);
  json["until"] = wire::FormatTime(report.until);
  bool complete = true;
  for (const Course& course : report.courses) complete = complete && course.lived->complete;
  json["complete"] = complete;
  json["guesses"] = report.guesses;
  json["budgets"] = report.budgets;
  json["agreement"] = AgreementOf(*report.courses[0].lived, *report.courses[1].lived);
  for (const char* const name : kCourses) json[name] = nullptr;
  json["currency"] = nullptr;
  std::map<std::string, Json> teams;
  for (const Course& course : report.courses) {
    TRANCHE_ASSIGN_OR_RETURN(const Costs costs, CostsOf(course, report.from, report.until));
    const bool priced = !costs.currency.empty();
    if (priced) json["currency"] = costs.currency;
    PastSums all = SumOf(*course.lived, report.from, report.until);
    Json sums = SumsJson(all, priced ? std::optional(costs.all) : std::nullopt);
    sums["offeredGpuHours"] = Hours(SumOf(*course.offered, report.from, report.until).offered);
    json[course.name] = std::move(sums);
    Teams team_of(*course.offered);
    std::map<std::string, std::vector<bool>> members;
    for (std::size_t i = 0; i < course.lived->lives.size(); ++i) {
      std::vector<bool>& one = members[team_of.Of(course.lived->lives[i].pod.ns)];
      one.resize(course.lived->lives.size());
      one[i] = true;
    }
    for (const auto& [team, lives] : members) {
      const PastSums part = SumOf(*course.lived, report.from, report.until,
                                  [&lives](std::size_t life) { return bool{lives[life]}; });
      const auto cents = costs.cents.find(team);
      Json& row = teams[team];
      row["team"] = team.empty() ? Json() : Json(team);
      row[course.name] =
          SumsJson(part, !priced ? std::nullopt
                                 : std::optional(cents == costs.cents.end() ? 0 : cents->second));
    }
  }
  json["teams"] = Json::array();
  for (auto& [team, row] : teams) {
    for (const char* const name : kCourses) row.emplace(name, nullptr);
    json["teams"].push_back(std::move(row));
  }
  return json;
}

std::string ReportText(const Json& report, const Terminal& terminal) {
  std::vector<std::string> titles = {"", "HAPPENED", "REPLAYED"};
  std::vector<const char*> courses = {"happened", "replayed"};
  if (!report.at("edited").is_null()) {
    titles.emplace_back("EDITED");
    courses.push_back("edited");
  }
  std::string text = fmt::format("{} to {}\n\n", Text(report, "from"), Text(report, "until"));
  Table all(titles);
  const auto row = [&](const std::string& what, auto cell) {
    std::vector<std::string> cells = {what};
    for (const char* const course : courses) cells.push_back(cell(report.at(course)));
    all.Add(std::move(cells));
  };
  row("pods that came", [](const Json& sums) { return Text(sums, "pods"); });
  row("started", [](const Json& sums) { return Text(sums, "started"); });
  for (const auto& [what, key] :
       {std::pair{"wait, mean", "waitMeanSeconds"}, std::pair{"wait, median", "waitMedianSeconds"},
        std::pair{"wait, 90 %", "waitP90Seconds"}}) {
    row(what, [key = key](const Json& sums) { return Span(Whole(sums, key)); });
  }
  row("evictions", [](const Json& sums) { return Text(sums, "evictions"); });
  row("GPU-hours lost", [](const Json& sums) { return Tenth(Text(sums, "lostGpuHours")); });
  row("GPU-hours held", [](const Json& sums) { return Tenth(Text(sums, "gpuHours")); });
  row("GPU-hours offered", [](const Json& sums) { return Tenth(Text(sums, "offeredGpuHours")); });
  const std::string currency = Text(report, "currency");
  if (currency != "-") {
    row("cost of use, " + currency, [](const Json& sums) { return Text(sums, "cost"); });
  }
  text += all.Text(terminal);
  std::vector<std::string> columns = {"TEAM"};
  for (std::size_t i = 1; i < titles.size(); ++i) {
    columns.push_back(titles[i] + ": GPU-HOURS");
    columns.emplace_back("WAIT");
    columns.emplace_back("EVICTED");
    if (currency != "-") columns.push_back(currency);
  }
  Table teams(columns);
  for (const Json& team : report.at("teams")) {
    std::vector<std::string> cells = {Text(team, "team")};
    for (const char* const course : courses) {
      const Json& sums = team.at(course);
      const bool none = sums.is_null();
      cells.push_back(none ? "-" : Tenth(Text(sums, "gpuHours")));
      cells.push_back(none ? "-" : Span(Whole(sums, "waitMeanSeconds")));
      cells.push_back(none ? "-" : Text(sums, "evictions"));
      if (currency != "-") cells.push_back(none ? "-" : Text(sums, "cost"));
    }
    teams.Add(std::move(cells));
  }
  if (!teams.empty()) text += "\n" + teams.Text(terminal);
  const Json& agreement = report.at("agreement");
  text += fmt::format(
      "\nlived again without edits, {} of {} pods start within a minute of when they did, {} on "
      "the same node\n",
      Whole(agreement, "sameStart"), Whole(agreement, "pods"), Whole(agreement, "sameNode"));
  if (const int64_t guesses = Whole(report, "guesses"); guesses > 0) {
    text +=
        fmt::format("of {} pods it is not known how long they would have run: guessed\n", guesses);
  }
  if (Whole(report, "budgets") > 0) {
    text += "what budgets had spent before is not counted\n";
  }
  if (!report.at("complete").get<bool>()) text += "given up before the end\n";
  return text;
}

}  // namespace tranche::replay
