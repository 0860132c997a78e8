// Statuses are rendered when the values they are made of have changed: whatever a text shows is
// among its values, and what it does not show is not.
#include "scheduler/wire/records/object_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/builders/budget.h"

namespace tranche::wire {
namespace THIS_FILE {

using test::GpuHours;
using test::Gpus;
using test::Utc;

// Where a change is to be seen.
enum class Shown { kNever, kDrifting, kPrompt };

// All that the statuses of one quota, its budget and its team are made of.
struct Portrait {
  QuotaView view;
  BudgetReport budget;
  std::string checkpoint = R"({"mark":1})";
  StatusHead head;
  std::vector<RightSize> right_sizes;
  std::vector<ExpectedStart> starts;
  Instant now = Utc(2026, 3, 10, 12);
};

Portrait Usual() {
  Portrait world;
  QuotaLineReport line;
  line.line = {"h200", ChargeLimit(Gpus(8)), Gpus(6), Gpus(1), Gpus(2), ChargeLimit(Gpus(3)), {}};
  line.marked_borrowed = Gpus(4);
  world.view.report.name = "team";
  world.view.report.leaf = true;
  world.view.report.lines = {line, line};
  world.view.report.lines[1].line.name = "any";
  world.budget.spec = test::PlainBudget(BudgetWindow::Type::kMonth, 100);
  BudgetView& budget = world.budget.view;
  budget.used = GpuHours(10);
  budget.committed = GpuHours(5);
  budget.effective = GpuHours(100);
  budget.window = {Utc(2026, 3, 1), Utc(2026, 4, 1)};
  budget.percent = 10;
  RightSize small;
  small.pod = {"team", "web"};
  small.hours = 216;
  small.busiest_hour = 38;
  small.most_memory = Mebibytes::Of(6'349);
  small.holds = "1 GPU";
  small.would_do = {SmallerAsk::Form::kInstance, 0, "1g.10gb", {}};
  small.saved = MilliGpu::Of(857);
  world.right_sizes = {small};
  world.starts = {{"next", Utc(2026, 3, 10, 13), Utc(2026, 3, 10, 14), Utc(2026, 3, 10, 18)}};
  world.head.generation = 3;
  world.head.conditions = {{"Ready", true, "Accepted", "", Utc(2026, 3, 2), 3},
                           {"OverLimit", false, "WithinLimit", "", Utc(2026, 3, 2), 3}};
  return world;
}

struct Change {
  std::string name;
  std::function<void(Portrait&)> make;
  Shown in_quota = Shown::kNever;
  Shown in_budget = Shown::kNever;
  Shown in_team = Shown::kNever;
};

const Shown kNever = Shown::kNever;
const Shown kDrifting = Shown::kDrifting;
const Shown kPrompt = Shown::kPrompt;

std::vector<Change> ChangesOfQuota() {
  const auto line = [](Portrait& world) -> QuotaLineReport& { return world.view.report.lines[0]; };
  const auto view = [](Portrait& world) -> QuotaLineView& {
    return world.view.report.lines[0].line;
  };
  return {
      {"name", [](Portrait& w) { w.view.report.name = "other"; }, kNever, kNever, kPrompt},
      {"leaf", [](Portrait& w) { w.view.report.leaf = false; }, kPrompt},
      {"a line", [](Portrait& w) { w.view.report.lines.pop_back(); }, kPrompt, kNever, kPrompt},
      {"name", [=](Portrait& w) { view(w).name = "b200"; }, kPrompt, kNever, kPrompt},
      {"nominal", [=](Portrait& w) { view(w).nominal = Gpus(9); }, kPrompt, kNever, kPrompt},
      {"no limit", [=](Portrait& w) { view(w).nominal = ChargeLimit(); }, kPrompt, kNever, kPrompt},
      {"used", [=](Portrait& w) { view(w).used = Gpus(7); }, kPrompt, kNever, kPrompt},
      {"lent", [=](Portrait& w) { view(w).lent = Gpus(0); }, kPrompt, kNever, kNever},
      {"marked", [=](Portrait& w) { line(w).marked_borrowed = Gpus(5); }, kPrompt},
      {"available", [=](Portrait& w) { view(w).available = Gpus(5); }, kPrompt, kNever, kPrompt},
      {"reach", [=](Portrait& w) { view(w).reach = Gpus(5); }},
      {"never", [](Portrait& w) { w.view.report.non_preemptible = Gpus(1); }, kPrompt},
      {"workloads", [](Portrait& w) { w.view.pending_workloads = 1; }, kPrompt},
      {"pending", [](Portrait& w) { w.view.pending_quanta = Gpus(2).compute; }, kPrompt, kNever,
       kPrompt},
      {"at risk", [](Portrait& w) { w.view.report.workloads_borrowed = 2; }, kNever, kNever,
       kPrompt},
      {"share", [](Portrait& w) { w.view.report.fair_share = Gpus(1).compute; }, kDrifting},
      {"decayed", [](Portrait& w) { w.view.report.decayed_milli_gpu_hours = 1700; }, kDrifting},
      {"a smaller pod", [](Portrait& w) { w.right_sizes.clear(); }, kNever, kNever, kDrifting},
      {"its name", [](Portrait& w) { w.right_sizes[0].pod.name = "api"; }, kNever, kNever,
       kDrifting},
      {"what it did", [](Portrait& w) { w.right_sizes[0].busiest_hour = 99; }, kNever, kNever,
       kDrifting},
      {"what would do", [](Portrait& w) { w.right_sizes[0].would_do.profile = "1g.20gb"; }, kNever,
       kNever, kDrifting},
      {"an hour more", [](Portrait& w) { ++w.right_sizes[0].hours; }},
      {"who starts", [](Portrait& w) { w.starts[0].pod = "x"; }, kNever, kNever, kDrifting},
      {"when", [](Portrait& w) { w.starts[0].at += Millis(60'000); }, kNever, kNever, kDrifting},
      {"when first", [](Portrait& w) { w.starts[0].from -= Millis(60'000); }, kNever, kNever,
       kDrifting},
      {"when last", [](Portrait& w) { w.starts[0].to += Millis(60'000); }, kNever, kNever,
       kDrifting},
      {"mode", [](Portrait& w) { w.view.report.mode = QuotaMode::kObserve; }},
  };
}

std::vector<Change> ChangesOfBudget() {
  const auto view = [](Portrait& world) -> BudgetView& { return world.budget.view; };
  return {
      {"carried", [=](Portrait& w) { view(w).carried_in = GpuHours(1); }, kNever, kPrompt},
      {"debt", [=](Portrait& w) { view(w).debt_in = GpuHours(1); }, kNever, kPrompt},
      {"effective", [=](Portrait& w) { view(w).effective = GpuHours(90); }, kDrifting, kPrompt,
       kDrifting},
      {"state", [=](Portrait& w) { view(w).state = BudgetState::kWarning; }, kNever, kPrompt},
      {"level", [=](Portrait& w) { view(w).notified_percent = 80; }, kNever, kPrompt},
      {"start", [=](Portrait& w) { view(w).window.start = Utc(2026, 3, 2); }, kNever, kPrompt},
      {"end", [=](Portrait& w) { view(w).window.end = Utc(2026, 5, 1); }, kDrifting, kPrompt,
       kDrifting},
      {"used", [=](Portrait& w) { view(w).used = GpuHours(20); }, kDrifting, kDrifting, kDrifting},
      {"committed", [=](Portrait& w) { view(w).committed = GpuHours(6); }, kNever, kDrifting},
      {"percent", [=](Portrait& w) { view(w).percent = 20; }, kNever, kDrifting},
      {"exhausts", [=](Portrait& w) { view(w).exhausts_at = Utc(2026, 3, 20); }, kNever, kDrifting},
      {"time", [](Portrait& w) { w.now = Utc(2026, 3, 12); }, kDrifting, kDrifting, kDrifting},
      {"a moment", [](Portrait& w) { w.now += Millis(1); }},
      {"checkpoint", [](Portrait& w) { w.checkpoint = R"({"mark":2})"; }, kDrifting, kDrifting},
  };
}

std::vector<Change> ChangesOfHead() {
  const auto last = [](Portrait& world) -> Condition& { return world.head.conditions.back(); };
  return {
      {"generation", [](Portrait& w) { w.head.generation = 4; }, kPrompt, kPrompt},
      {"ready", [](Portrait& w) { w.head.conditions[0].status = false; }, kPrompt, kPrompt},
      {"a condition", [](Portrait& w) { w.head.conditions.pop_back(); }, kPrompt, kPrompt},
      {"type", [=](Portrait& w) { last(w).type = "Oversubscribed"; }, kPrompt, kPrompt},
      {"reason", [=](Portrait& w) { last(w).reason = "InUse"; }, kPrompt, kPrompt},
      {"message", [=](Portrait& w) { last(w).message = "more"; }, kPrompt, kPrompt},
      {"since", [=](Portrait& w) { last(w).since = Utc(2026, 3, 3); }, kPrompt, kPrompt},
      {"observed", [=](Portrait& w) { last(w).generation = 4; }, kPrompt, kPrompt},
  };
}

struct Rendering {
  std::string text;
  std::string values;
};

// Of quota, budget and team, in this order.
std::vector<Rendering> Say(const Portrait& world, StatusMembers members) {
  const BudgetReport* const budgets[] = {&world.budget};
  const auto checkpoint = [&world] { return world.checkpoint; };
  const QuotaStatus quota(world.view, budgets, world.now, world.head, checkpoint);
  const BudgetStatus budget(world.budget, world.now, world.head, checkpoint);
  std::vector<const RightSize*> right_sizes;
  for (const RightSize& entry : world.right_sizes) right_sizes.push_back(&entry);
  const TeamViewStatus team(world.view, budgets, world.now, right_sizes,
                            [&world] { return world.starts; });
  return {{quota.Text(members), quota.Values(members)},
          {budget.Text(members), budget.Values(members)},
          {team.Text(members), team.Values(members)}};
}

void Expect(const Change& change, StatusMembers members) {
  Portrait changed = Usual();
  change.make(changed);
  const std::vector<Rendering> before = Say(Usual(), members);
  const std::vector<Rendering> after = Say(changed, members);
  const Shown shown[] = {change.in_quota, change.in_budget, change.in_team};
  const char* const names[] = {"quota", "budget", "team"};
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool seen = members == StatusMembers::kAll ? shown[i] != kNever : shown[i] == kPrompt;
    EXPECT_EQ(before[i].text != after[i].text, seen) << names[i] << " shows, " << change.name;
    EXPECT_EQ(before[i].values != after[i].values, seen) << names[i] << ", " << change.name;
  }
}

TEST(ObjectStatusTest, AStatusIsMadeOfWhatItShowsAndOfNothingElse) {
  for (const auto& changes : {ChangesOfQuota(), ChangesOfBudget(), ChangesOfHead()}) {
    for (const Change& change : changes) {
      Expect(change, StatusMembers::kPrompt);
      Expect(change, StatusMembers::kAll);
    }
  }
}

// What an inner quota borrows is counted in another way than what a leaf does.
TEST(ObjectStatusTest, AnInnerQuotaShowsWhatItTakesFromOutside) {
  Portrait world = Usual();
  world.view.report.leaf = false;
  const std::vector<Rendering> before = Say(world, StatusMembers::kPrompt);
  world.view.report.lines[0].line.borrowed = Gpus(3);
  const std::vector<Rendering> after = Say(world, StatusMembers::kPrompt);
  EXPECT_NE(before[0].text, after[0].text);
  EXPECT_NE(before[0].values, after[0].values);
}

TEST(ObjectStatusTest, ALineOfAPoolSaysWhich) {
  Portrait world = Usual();
  world.view.report.lines[0].line.name = "h200@spot";
  const std::string text = Say(world, StatusMembers::kPrompt)[0].text;
  EXPECT_THAT(text, testing::HasSubstr(R"("model":"h200")"));
  EXPECT_THAT(text, testing::HasSubstr(R"("pool":"spot")"));
  EXPECT_THAT(text, testing::HasSubstr(R"("nominal":"8 h200@spot, 8 any")"));
}

// The API server refuses a status with a longer text.
TEST(ObjectStatusTest, ASummaryOfManyLongNamesIsCut) {
  Portrait world = Usual();
  world.view.report.lines[0].line.name = "h200@" + std::string(250, 'p');
  world.view.report.lines.resize(64, world.view.report.lines[0]);
  const std::string text = Say(world, StatusMembers::kPrompt)[0].text;
  const std::string key = R"("summary":{"nominal":")";
  const std::size_t begin = text.find(key) + key.size();
  const std::string nominal = text.substr(begin, text.find('"', begin) - begin);
  EXPECT_LE(nominal.size(), 8192U);
  EXPECT_GT(nominal.size(), 7900U);
  EXPECT_THAT(nominal, testing::EndsWith(", ..."));
}

TEST(ObjectStatusTest, ARollingWindowMovesUnseen) {
  Portrait world = Usual();
  world.budget.spec = test::RollingBudget(test::Hours(24), 100);
  for (const StatusMembers members : {StatusMembers::kPrompt, StatusMembers::kAll}) {
    const std::vector<Rendering> before = Say(world, members);
    Portrait later = world;
    later.now += Millis(60'000);
    later.budget.view.window.start += Millis(60'000);
    later.budget.view.window.end += Millis(60'000);
    const std::vector<Rendering> after = Say(later, members);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].text, after[i].text);
      EXPECT_EQ(before[i].values, after[i].values);
    }
  }
}

TEST(ObjectStatusTest, ClassesAndPoliciesShowTheirConditions) {
  const StatusHead usual = Usual().head;
  StatusHead changed = usual;
  changed.conditions[0].reason = "Invalid";
  const StatusMembers all = StatusMembers::kAll;
  EXPECT_EQ(ClassStatus(1, usual).Values(all), ClassStatus(1, usual).Values(all));
  EXPECT_NE(ClassStatus(1, usual).Values(all), ClassStatus(2, usual).Values(all));
  EXPECT_NE(ClassStatus(1, usual).Values(all), ClassStatus(1, changed).Values(all));
  EXPECT_NE(PolicyStatus(usual).Values(all), PolicyStatus(changed).Values(all));
}

// Texts beside each other do not pass for one another.
TEST(ObjectStatusTest, WhereOneTextEndsIsAmongTheValues) {
  StatusHead one;
  one.conditions = {{"Ready", true, "ab", "c", Instant(), 1}};
  StatusHead other = one;
  other.conditions[0].reason = "a";
  other.conditions[0].message = "bc";
  EXPECT_NE(PolicyStatus(one).Values(StatusMembers::kAll),
            PolicyStatus(other).Values(StatusMembers::kAll));
}

TEST(TeamViewStatusTest, TenPodsThatCouldAskForLessAreNamed) {
  Portrait world = Usual();
  world.right_sizes.resize(11, world.right_sizes[0]);
  const Rendering team = Say(world, StatusMembers::kAll)[2];
  const auto status = nlohmann::json::parse("{" + team.text + "}").at("status");
  ASSERT_EQ(status.at("rightSizes").size(), 10);
  EXPECT_EQ(status.at("rightSizes")[0],
            nlohmann::json({{"pod", "web"},
                            {"text",
                             "holds 1 GPU; in 9 days its busiest hour was 4 % and the most memory "
                             "6.2 GiB: 1g.10gb would do, and leave 0.86 GPUs to others"},
                            {"ask", "nvidia.com/mig-1g.10gb: 1"}}));
}

TEST(ExpectedStartTest, TimesAreRoundedTheMoreTheFurtherAway) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  struct Case {
    Millis away;
    Millis from, at, to;  // from now on, which is a full hour
  };
  const auto minute = [](int count) { return Millis(minutes(count)); };
  const Case kCases[] = {
      {seconds(29), minute(0), minute(0), minute(1)},
      {seconds(61), minute(1), minute(1), minute(2)},
      {minutes(14), minute(10), minute(10), minute(20)},
      {minutes(16), minute(10), minute(20), minute(20)},
      {minutes(60), minute(60), minute(60), minute(60)},
      {minutes(100), minute(90), minute(90), minute(120)},
      {minutes(5 * 60 + 20), minute(5 * 60), minute(5 * 60), minute(6 * 60)},
      {minutes(14 * 60), minute(12 * 60), minute(15 * 60), minute(15 * 60)},
      {minutes(59 * 60), minute(48 * 60), minute(60 * 60), minute(60 * 60)},
  };
  const Instant now = Utc(2026, 3, 10, 12);
  for (const Case& c : kCases) {
    const Instant at = now + c.away;
    const ExpectedStart rounded = Rounded({"p", at, at, at}, now);
    EXPECT_EQ(rounded.from - now, c.from) << c.away.count();
    EXPECT_EQ(rounded.at - now, c.at) << c.away.count();
    EXPECT_EQ(rounded.to - now, c.to) << c.away.count();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
