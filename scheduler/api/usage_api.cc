#include "scheduler/api/usage_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <charconv>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scheduler/api/conditional.h"
#include "scheduler/api/ledger_api.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using wire::Json;

constexpr std::string_view kBurnDown = "/api/v1/burndown/";
constexpr Millis kDay = std::chrono::hours(24);

struct SeriesQuery {
  Instant from;
  Instant to;
  Millis step{};
  std::optional<std::string> leaf;
};

absl::StatusOr<SeriesQuery> ReadQuery(const http::Request& request, Instant now) {
  SeriesQuery query;
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> to, TimeParameter(request, "to"));
  query.to = to.value_or(now);
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> from, TimeParameter(request, "from"));
  query.from = from.value_or(query.to - kDay);
  int64_t seconds = 3600;
  if (const auto step = request.query.find("step"); step != request.query.end()) {
    const std::string& text = step->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || seconds < 60 ||
        seconds > 366 * 86'400) {
      return absl::InvalidArgumentError(fmt::format("step: expected 60 to {} seconds, found {}",
                                                    366 * 86'400, wire::Quoted(text)));
    }
  }
  query.step = std::chrono::seconds(seconds);
  if (query.to <= query.from) {
    return absl::InvalidArgumentError("to: expected a time after from, found none");
  }
  const int64_t steps = (query.to - query.from + query.step - Millis(1)) / query.step;
  if (steps > UsageApi::kMostSteps) {
    return absl::InvalidArgumentError(
        fmt::format("step: expected at most {} of them between from and to, found {}",
                    UsageApi::kMostSteps, steps));
  }
  if (const auto leaf = request.query.find("leaf"); leaf != request.query.end()) {
    query.leaf = leaf->second;
  }
  return query;
}

using SeriesRows = std::map<std::pair<std::string, std::string>, std::vector<Int128>>;

std::string EncodeSeries(const SeriesQuery& query, const SeriesRows& rows) {
  const auto row_json = [](const SeriesRows::value_type& row) -> Json {
    return {{"leaf", row.first.first},
            {"model", row.first.second},
            {"gpuHours", wire::ListOf(row.second, FormatGpuHours)}};
  };
  return wire::Dump({{"from", wire::FormatTime(query.from)},
                     {"to", wire::FormatTime(query.to)},
                     {"stepSeconds", query.step.count() / 1000},
                     {"rows", wire::ListOf(rows, row_json)}});
}

}  // namespace

UsageApi::UsageApi(std::string path, EngineHost& host, const Clock& clock, Behind behind)
    : path_(std::move(path)), host_(host), clock_(clock), behind_(std::move(behind)) {
  if (!behind_) pool_.emplace(1);
}

http::Response UsageApi::Series(const http::Request& request) const {
  if (path_.empty()) return NoLedger();
  const Instant now = clock_.Now();
  const absl::StatusOr<SeriesQuery> query = ReadQuery(request, now);
  if (!query.ok()) return ErrorResponse(query.status());
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path_);
  if (!reader.ok()) return ErrorResponse(reader.status());
  SeriesRows rows;
  std::size_t step = 0;
  for (Instant at = query->from; at < query->to; at += query->step, ++step) {
    ledger::ReportQuery part;
    part.from = at;
    part.to = std::min(at + query->step, query->to);
    part.leaf = query->leaf;
    part.now = now;
    const auto found = reader->Report(part);
    if (!found.ok()) return ErrorResponse(found.status());
    for (const ledger::ReportRow& row : *found) {
      std::vector<Int128>& hours = rows[{row.leaf, row.model}];
      hours.resize(step);
      hours.push_back(Larger(row.time));
    }
  }
  for (auto& [key, hours] : rows) hours.resize(step);
  return Conditional(request, JsonResponse(EncodeSeries(*query, rows)));
}

absl::StatusOr<std::string> UsageApi::Compute(const BudgetCase& budget) const {
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(path_));
  ledger::ReportQuery query;
  query.from = budget.report.view.window.start;
  query.now = budget.now;
  BurnDown sums(budget);
  TRANCHE_RETURN_IF_ERROR(
      reader.Export(query, [&sums](const ledger::ExportRow& row) { sums.Add(row); }));
  return EncodeBurnDown(budget, sums);
}

http::Response UsageApi::BurnDownOf(const std::string& name) {
  if (path_.empty()) return NoLedger();
  const auto known = answers_.find(name);
  if (known != answers_.end() && Steady::now() - known->second.first < kAnswerAge) {
    return JsonResponse(known->second.second);
  }
  const std::optional<BudgetCase> budget = host_.With(
      EngineCaller::kAdvice, [&name](Engine& engine, Instant now) -> std::optional<BudgetCase> {
        for (BudgetReport& report : engine.Budgets(now)) {
          if (report.spec.name != name) continue;
          BudgetCase found{std::move(report), {}, engine.ChargeFactors(), now};
          const std::string& root = found.report.spec.quota_ref;
          if (!root.empty()) found.leaves = QuotasBelow(root, engine.Quotas(now));
          return found;
        }
        return std::nullopt;
      });
  if (!budget) {
    return ErrorResponse(404, fmt::format("no budget {} is known", wire::Quoted(name)));
  }
  const absl::StatusOr<std::string> answer = Compute(*budget);
  if (!answer.ok()) return ErrorResponse(answer.status());
  answers_[name] = {Steady::now(), *answer};
  return JsonResponse(*answer);
}

void UsageApi::Later(std::function<void()> work) {
  auto guarded = [work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& failure) {
      // The answer that is owed becomes a 500.
      spdlog::error("the ledger could not be read: {}", failure.what());
    }
  };
  if (behind_) return behind_(std::move(guarded));
  boost::asio::post(*pool_, std::move(guarded));
}

void UsageApi::AddTo(Router& router) {
  router.Add("GET", "/api/v1/ledger/series",
             [this](const http::Request& request, const http::Responder& respond) {
               Later([this, request, respond] { respond(Series(request)); });
             });
  router.Add("GET", std::string(kBurnDown),
             [this](const http::Request& request, const http::Responder& respond) {
               Later([this, request, respond] {
                 respond(BurnDownOf(request.path.substr(kBurnDown.size())));
               });
             });
}

UsageApi::~UsageApi() {
  if (pool_) pool_->join();
}

}  // namespace tranche
