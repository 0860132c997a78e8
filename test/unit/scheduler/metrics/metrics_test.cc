#include "scheduler/metrics/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/metrics/process.h"

namespace tranche::metrics {
namespace THIS_FILE {

using namespace std::chrono_literals;

bool ShowsLine(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

Scrape FullScrape() {
  Scrape scrape;
  scrape.now = Instant(1'000s);
  scrape.version = "1.2.3";
  scrape.ready = true;
  scrape.totals.nodes = 3;
  scrape.totals.reservations = 1;
  scrape.totals.oldest_reservation = Instant(940s);
  ModelTotals model;
  model.model = "h100";
  model.gpus = 2;
  model.capacity = MilliGpu::Of(2000);
  model.allocated = MilliGpu::Of(500);
  model.memory_capacity = Mebibytes::Of(2);
  scrape.totals.models = {model};
  scrape.totals.pools = {{"h100", "spot", 1, MilliGpu::Of(250)}};
  scrape.watches = {{"pods", 2.5, 1, 2, 3}, {"nodes", std::nullopt, 0, 0, 0}};
  scrape.holds = {{"filter", 9, 4, 2, 1.5, 0.25}};
  scrape.ahead_of_server = -2500ms;
  scrape.http_refusals = {{413, 7}};
  scrape.mig_changes_pending = 1;
  scrape.defragmentable_gpus = 4;
  return scrape;
}

TEST(MetricsTest, StateOfTheScrapeIsOnThePage) {
  const Metrics metrics;
  const std::string page = metrics.Render(FullScrape());
  for (const char* line : {
           "tranche_ready 1",
           "tranche_nodes 3",
           "tranche_oldest_reservation_age_seconds 60",
           "tranche_gpus{model=\"h100\"} 2",
           "tranche_gpu_allocated{model=\"h100\"} 0.5",
           "tranche_pool_gpus{model=\"h100\",pool=\"spot\"} 1",
           "tranche_pool_gpu_allocated{model=\"h100\",pool=\"spot\"} 0.25",
           "tranche_gpu_memory_capacity_bytes{model=\"h100\"} 2097152",
           "tranche_watch_age_seconds{resource=\"pods\"} 2.5",
           "tranche_watch_relists_total{resource=\"nodes\"} 0",
           "tranche_api_server_clock_skew_seconds -2.5",
           "tranche_lock_hold_seconds_count{caller=\"filter\"} 9",
           "tranche_lock_hold_seconds_bucket{caller=\"filter\",le=\"0.02\"} 7",
           "tranche_lock_hold_seconds_sum{caller=\"filter\"} 1.5",
           "tranche_lock_longest_hold_seconds{caller=\"filter\"} 0.25",
           "tranche_unreadable_objects{resource=\"nodes\"} 0",
           "tranche_http_refusals_total{status=\"413\"} 7",
           "tranche_mig_changes_pending 1",
           "tranche_defragmentable_gpus 4",
           "tranche_build_info{version=\"1.2.3\"} 1",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(page.find("tranche_watch_age_seconds{resource=\"nodes\"}"), std::string::npos);
}

// Half of one GPU at 3 dollars; what no price suits is no cost of 0.
TEST(MetricsTest, CostsAreMoneyAnHourAndGpusWithoutAPriceAreToldApart) {
  Scrape scrape;
  constexpr Int128 kGpu = kQuantaPerGpu;
  scrape.costs.held = {{"a", "h100", "spot", "USD", kGpu / 2, kGpu / 2 * 3'000'000},
                       {"", "l4", "", "", kGpu * 2, 0}};
  scrape.costs.fleet = {{"", "h100", "spot", "USD", kGpu * 8, kGpu * 8 * 3'000'000},
                        {"", "l4", "", "", kGpu * 4, 0}};
  const std::string page = Metrics().Render(scrape);
  for (const char* line : {
           "tranche_cost_per_hour{leaf=\"a\",model=\"h100\",pool=\"spot\",currency=\"USD\"} 1.5",
           "tranche_fleet_cost_per_hour{model=\"h100\",pool=\"spot\",currency=\"USD\"} 24",
           "tranche_held_unpriced_gpus{leaf=\"\",model=\"l4\"} 2",
           "tranche_unpriced_gpus{model=\"l4\"} 4",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(page.find("currency=\"\""), std::string::npos);
}

TEST(MetricsTest, CountsWhatIsCounted) {
  Metrics metrics;
  metrics.CountRequest(Verb::kFilter, Result::kYes, 60us);
  metrics.CountRequest(Verb::kFilter, Result::kMalformed, 2s);
  metrics.CountDecision(Verb::kFilter, Reason::kNoRoom);
  Metrics::NodesByReason nodes{};
  nodes[static_cast<std::size_t>(Reason::kNoRoom)] = 40;
  metrics.CountRefusedNodes(nodes);
  metrics.CountBindAlarm();
  metrics.CountMigChange(MigOutcome::kFailed);
  const std::string page = metrics.Render({});
  for (const char* line : {
           "tranche_requests_total{result=\"yes\",verb=\"filter\"} 1",
           "tranche_requests_total{result=\"malformed\",verb=\"filter\"} 1",
           "tranche_requests_total{result=\"yes\",verb=\"bind\"} 0",
           "tranche_request_duration_seconds_bucket{verb=\"filter\",le=\"0.0001\"} 1",
           "tranche_request_duration_seconds_bucket{verb=\"filter\",le=\"2.5\"} 2",
           "tranche_decisions_total{reason=\"NoRoom\",verb=\"filter\"} 1",
           "tranche_filter_refused_nodes_total{reason=\"NoRoom\"} 40",
           "tranche_bind_alarms_total 1",
           "tranche_mig_changes_total{outcome=\"failed\"} 1",
           "tranche_mig_changes_total{outcome=\"done\"} 0",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
}

TEST(MetricsTest, ReviewsAreCountedByOutcomeAndReason) {
  Metrics metrics;
  const std::string before = metrics.Render({});
  metrics.CountReview(Webhook::kMutate, ReviewOutcome::kChanged, "None", 60us);
  metrics.CountReview(Webhook::kMutate, ReviewOutcome::kError, kMalformedReview, 2s);
  metrics.CountReview(Webhook::kValidate, ReviewOutcome::kRefused, "BadAmount", 60us);
  metrics.CountReview(Webhook::kValidate, ReviewOutcome::kRefused, "DialectOff", 60us);
  const std::string page = metrics.Render({});
  const std::string name = "tranche_admission_reviews_total{";
  for (const auto& [labels, count] : std::vector<std::pair<std::string, const char*>>{
           {R"(outcome="changed",reason="None",webhook="mutate")", "1"},
           {R"(outcome="error",reason="MalformedReview",webhook="mutate")", "1"},
           {R"(outcome="error",reason="MalformedReview",webhook="validate")", "0"},
           {R"(outcome="refused",reason="BadAmount",webhook="validate")", "1"},
           {R"(outcome="refused",reason="BadAmount",webhook="mutate")", "0"},
           {R"(outcome="refused",reason="ForgedResult",webhook="validate")", "0"},
           {R"(outcome="allowed",reason="None",webhook="validate")", "0"},
       }) {
    EXPECT_TRUE(ShowsLine(page, name + labels + "} " + count)) << labels << "\n" << page;
    EXPECT_TRUE(ShowsLine(before, name + labels + "} 0")) << "there from the start: " << labels;
  }
  EXPECT_TRUE(
      ShowsLine(page, name + R"(outcome="refused",reason="DialectOff",webhook="validate"} 1)"));
  EXPECT_TRUE(ShowsLine(
      page, R"(tranche_admission_duration_seconds_bucket{webhook="mutate",le="0.0001"} 1)"));
  EXPECT_TRUE(ShowsLine(page, R"(tranche_admission_duration_seconds_count{webhook="mutate"} 2)"));
}

TEST(MetricsTest, PlansAreCountedByResultAndQuality) {
  Metrics metrics;
  using Result = PlanOutcome::Result;
  metrics.CountPlan({Result::kPlan, ReclaimRule::kR1, true, 7}, 4ms);
  metrics.CountPlan({Result::kPlan, ReclaimRule::kR1, false, 7}, 300ms);
  metrics.CountPlan({Result::kUnresolved, ReclaimRule::kNone, false, 7}, 2s);
  metrics.CountPlan({Result::kImpossible, ReclaimRule::kNone, false, 0}, 100us);
  const std::string page = metrics.Render({});
  for (const char* line : {
           "tranche_plan_search_total{quality=\"optimal\"} 1",
           "tranche_plan_search_total{quality=\"heuristic\"} 1",
           "tranche_plan_search_total{quality=\"unresolved\"} 1",
           "tranche_plan_duration_seconds_bucket{result=\"plan\",le=\"0.005\"} 1",
           "tranche_plan_duration_seconds_bucket{result=\"plan\",le=\"0.5\"} 2",
           "tranche_plan_duration_seconds_bucket{result=\"unresolved\",le=\"1\"} 0",
           "tranche_plan_duration_seconds_bucket{result=\"impossible\",le=\"0.0005\"} 1",
           "tranche_plan_duration_seconds_count{result=\"blocked\"} 0",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
}

TEST(MetricsTest, EvictionsAreCountedByRuleAndQuota) {
  Metrics metrics;
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kR2a;
  reclaim.leaf = "vision";
  ReclaimVictim victim;
  victim.leaf = "vision";
  victim.lost_gpu_ms = 1'500;
  victim.again = true;
  metrics.CountReclaimedFrom(reclaim, "vision");
  metrics.CountEvicted(reclaim, victim);
  metrics.CountEvictionFailure(EvictionOutcome::kBlocked);
  metrics.CountEvictionFailure(EvictionOutcome::kAccepted);
  metrics.CountEvictionFailure(EvictionOutcome::kGone);
  metrics.CountStart({"vision", "training", Millis(3'000), true});
  metrics.CountStart({"vision", "training", Millis(40'000), false});
  metrics.CountStart({"", "", Millis(0), false});
  Scrape scrape;
  scrape.reclaims_running = 2;
  const std::string page = metrics.Render(scrape);
  for (const char* line : {
           "tranche_reclaims_running 2",
           "tranche_reclaim_total{from=\"vision\",rule=\"R2a\",to=\"vision\"} 1",
           "tranche_evicted_pods_total{leaf=\"vision\",rule=\"R2a\"} 1",
           "tranche_lost_work_gpu_seconds_total{leaf=\"vision\"} 1.5",
           "tranche_reevictions_total{leaf=\"vision\"} 1",
           "tranche_eviction_failures_total{reason=\"disruption_budget\"} 1",
           "tranche_eviction_failures_total{reason=\"forbidden\"} 0",
           "tranche_eviction_failures_total{reason=\"failed\"} 0",
           "tranche_time_to_nominal_seconds_bucket{le=\"5\"} 1",
           "tranche_time_to_nominal_seconds_count 1",
           "tranche_wait_seconds_bucket{class=\"training\",leaf=\"vision\",le=\"30\"} 1",
           "tranche_wait_seconds_count{class=\"training\",leaf=\"vision\"} 2",
           "tranche_wait_seconds_count{class=\"\",leaf=\"\"} 1",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
}

// A rate over a series that is born at one misses that one.
TEST(MetricsTest, CountersOfAQuotaBeginAtZero) {
  Scrape scrape;
  QuotaView org;
  org.report.name = "org";
  QuotaView vision;
  vision.report.name = "vision";
  vision.report.leaf = true;
  scrape.quotas = {org, vision};
  const Metrics metrics;
  const std::string page = metrics.Render(scrape);
  for (const char* line : {
           "tranche_lost_work_gpu_seconds_total{leaf=\"vision\"} 0",
           "tranche_reevictions_total{leaf=\"vision\"} 0",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(page.find("total{leaf=\"org\"}"), std::string::npos) << page;
}

TEST(MetricsTest, NamespacesAndBudgetsTellTheirQuota) {
  Scrape scrape;
  QuotaView vision;
  vision.report.name = "vision";
  vision.report.namespaces = {"vision-dev", "vision-prod"};
  scrape.quotas = {vision};
  const auto budget = [&scrape](const char* name, const char* quota, const char* ns,
                                BudgetWindow::Type type) {
    BudgetReport report;
    report.spec.name = name;
    report.spec.quota_ref = quota;
    report.spec.ns = ns;
    report.spec.window.type = type;
    report.view.window.end = Instant(7'000s);
    report.view.used = Int128{kGpuHour} * 3 / 2;
    report.view.effective = Int128{kGpuHour} * 10;
    scrape.budgets.push_back(report);
  };
  budget("of-quota", "org", "", BudgetWindow::Type::kMonth);
  budget("of-namespace", "", "vision-dev", BudgetWindow::Type::kRolling);
  budget("of-nobody", "", "elsewhere", BudgetWindow::Type::kDay);
  const Metrics metrics;
  const std::string page = metrics.Render(scrape);
  for (const char* line : {
           "tranche_namespace_info{leaf=\"vision\",quota_namespace=\"vision-dev\"} 1",
           "tranche_namespace_info{leaf=\"vision\",quota_namespace=\"vision-prod\"} 1",
           "tranche_budget_info{budget=\"of-quota\",leaf=\"org\",quota_namespace=\"\"} 1",
           "tranche_budget_info{budget=\"of-namespace\",leaf=\"vision\","
           "quota_namespace=\"vision-dev\"} 1",
           "tranche_budget_info{budget=\"of-nobody\",leaf=\"\",quota_namespace=\"elsewhere\"} 1",
           "tranche_budget_window_end_seconds{budget=\"of-quota\"} 7000",
           "tranche_budget_used_gpu_seconds{budget=\"of-quota\"} 5400",
           "tranche_budget_limit_gpu_seconds{budget=\"of-quota\"} 36000",
       }) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(page.find("tranche_budget_window_end_seconds{budget=\"of-namespace\"}"),
            std::string::npos);
}

PodView HoldsDevices(const std::string& name, PodState state, std::vector<Device> devices) {
  PodView pod;
  pod.name = {"vision-dev", name};
  pod.state = state;
  pod.leaf = "vision";
  pod.allocation.emplace().containers = {{"main", std::move(devices)}};
  return pod;
}

Device PartOfCard(const std::string& uuid, int64_t milli) {
  Device device;
  device.uuid = GpuUuid(uuid);
  device.milli = MilliGpu::Of(milli);
  return device;
}

TEST(MetricsTest, TeamsSeeTheirHoursTheirNamespacesAndWhoSharesACard) {
  Scrape scrape;
  scrape.held_time = {{"vision", "training", "h100", Int128{kQuantaPerGpu} * 1'500},
                      {"", "", "t4", 0},
                      {"vision", "", "t4@spot", 0}};
  scrape.namespaces = {{"vision-dev", "h100", {kQuantaPerGpu / 2, kQuantaPerGpu / 4}},
                       {"vision-dev", "h100@spot", {kQuantaPerGpu, 0}}};
  QuotaView quota;
  quota.report.name = "vision";
  quota.report.lines.emplace_back().line.name = "any@spot";
  scrape.quotas = {quota};
  scrape.shares = {
      HoldsDevices("half", PodState::kBound, {PartOfCard("GPU-a", 500), PartOfCard("GPU-b", 100)}),
      HoldsDevices("two-slices", PodState::kReserved,
                   {PartOfCard("GPU-b", 142), PartOfCard("GPU-b", 142)}),
      HoldsDevices("only-likely", PodState::kClaimed, {PartOfCard("GPU-c", 500)}),
      HoldsDevices("of-no-known-card", PodState::kBound, {PartOfCard("", 500)})};
  const std::string page = Metrics().Render(scrape);
  const auto share = [](const char* uuid, const char* pod) {
    return std::string("tranche_gpu_share_info{UUID=\"") + uuid +
           "\",quota_namespace=\"vision-dev\",pod=\"" + pod + "\",leaf=\"vision\"} ";
  };
  for (const std::string& line :
       {std::string(
            "tranche_gpu_seconds_total{leaf=\"vision\",model=\"h100\",class=\"training\"} 1.5"),
        std::string("tranche_gpu_seconds_total{leaf=\"\",model=\"t4\",class=\"\"} 0"),
        std::string("tranche_gpu_seconds_total{leaf=\"vision\",model=\"t4\",pool=\"spot\","
                    "class=\"\"} 0"),
        std::string("tranche_namespace_used_gpus{quota_namespace=\"vision-dev\",model=\"h100\","
                    "pool=\"spot\"} 1"),
        std::string("tranche_quota_nominal_gpus{leaf=\"vision\",model=\"any\",pool=\"spot\","
                    "dim=\"memory\"} 0"),
        std::string(
            "tranche_namespace_used_gpus{quota_namespace=\"vision-dev\",model=\"h100\"} 0.5"),
        share("GPU-a", "half") + "500", share("GPU-b", "half") + "100",
        share("GPU-b", "two-slices") + "284"}) {
    EXPECT_TRUE(ShowsLine(page, line)) << line << "\n" << page;
  }
  for (const char* absent : {"only-likely", "of-no-known-card"}) {
    EXPECT_EQ(page.find(absent), std::string::npos) << page;
  }
}

TEST(MetricsTest, EveryNameHasOurPrefixAndCountersEndInTotal) {
  const Metrics metrics;
  std::istringstream page(metrics.Render(FullScrape()));
  std::set<std::string> seen;
  for (std::string line; std::getline(page, line);) {
    std::istringstream words(line);
    std::string hash, what, name, type;
    words >> hash >> what >> name >> type;
    if (hash != "#" || what != "TYPE") continue;
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    EXPECT_TRUE(name.rfind("tranche_", 0) == 0 || name.rfind("process_", 0) == 0) << name;
    const bool total = name.size() > 6 && name.compare(name.size() - 6, 6, "_total") == 0;
    EXPECT_EQ(total, type == "counter") << name;
  }
  EXPECT_GE(seen.size(), 30U);
}

TEST(ProcessTest, StatLineIsReadPastOddNames) {
  const std::string tail =
      " S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 777 1048576 256 18446744073709551615";
  const auto stat = ParseProcessStat("42 (a) b (c)" + tail);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->user_ticks, 150);
  EXPECT_EQ(stat->system_ticks, 50);
  EXPECT_EQ(stat->start_ticks, 777);
  EXPECT_EQ(stat->virtual_bytes, 1048576);
  EXPECT_EQ(stat->resident_pages, 256);
  for (const char* bad : {"", "42 (a", "42 (a) S 1 2", "no parentheses at all"}) {
    EXPECT_FALSE(ParseProcessStat(bad).has_value()) << bad;
  }
}

TEST(ProcessTest, ThisProcessHasMemoryAndFiles) {
  const auto facts = ReadProcessFacts();
  ASSERT_TRUE(facts.has_value());
  EXPECT_GT(facts->resident_bytes, 0);
  EXPECT_GE(facts->open_fds, 3);
  EXPECT_GT(facts->start_seconds, 1.6e9);
}

}  // namespace THIS_FILE
}  // namespace tranche::metrics
