#include "scheduler/api/embedded_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// A step of the manual clock: ten years.
constexpr int64_t kMaxAdvanceSeconds = int64_t{10} * 366 * 24 * 3600;
// Deeds that make other deeds due at the same moment, one after another; more is a fault of ours,
// not a reason to hang.
constexpr int kMaxRounds = 100;
// Due moments within one step of the clock; beyond, the rest happens at its end.
constexpr int kMaxSteps = 10'000;

http::Response Apply(embedded::Cluster& cluster, std::string_view body) {
  const absl::StatusOr<embedded::ApplyReport> report = cluster.Apply(body);
  if (!report.ok()) return ErrorResponse(report.status());
  for (const auto& [kind, count] : report->ignored) {
    spdlog::info("ignored {} objects of kind {}", count, kind);
  }
  return JsonResponse(wire::Dump({{"applied", report->applied}, {"ignored", report->ignored}}));
}

http::Response Delete(embedded::Cluster& cluster, std::string_view body) {
  const absl::Status deleted = cluster.Delete(body);
  return deleted.ok() ? JsonResponse("{}") : ErrorResponse(deleted);
}

// The number of {"advanceSeconds":N}.
absl::StatusOr<int64_t> ReadAdvance(std::string_view body) {
  thread_local wire::Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const wire::Element document, parser.Parse(body, wire::Padding::kThere));
  wire::Object object;
  if (document.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected {\"advanceSeconds\":N}, found no object");
  }
  const std::optional<int64_t> seconds = wire::FindInteger(object, "advanceSeconds");
  if (!seconds || *seconds < 0 || *seconds > kMaxAdvanceSeconds) {
    return absl::InvalidArgumentError(
        fmt::format("advanceSeconds: expected a whole number in 0..{}, found {}",
                    kMaxAdvanceSeconds, seconds ? std::to_string(*seconds) : "none"));
  }
  return *seconds;
}

http::Response MoveClock(EngineHost& host, ManualClock* clock, const DueWork& run_due,
                         std::string_view body) {
  if (clock == nullptr) {
    return ErrorResponse(409,
                         "expected a server started with --clock manual, found a system clock");
  }
  const absl::StatusOr<int64_t> seconds = ReadAdvance(body);
  if (!seconds.ok()) return ErrorResponse(seconds.status());
  // From one due moment to the next, so that what happens on the way has its own time.
  const Instant target = std::min(clock->Now() + std::chrono::seconds(*seconds), kLastInstant);
  Instant now = clock->Now();
  std::optional<Instant> next = run_due();
  for (int step = 0; step < kMaxSteps && next && *next < target; ++step) {
    now = clock->AdvanceBy(std::max(*next - now, Millis(1)));
    next = run_due();
  }
  now = clock->AdvanceBy(target - clock->Now());
  run_due();
  // A later life starts where this one was moved to.
  host.Heartbeat();
  return JsonResponse(wire::Dump({{"now", wire::FormatTime(now)}}));
}

http::Response Objects(const embedded::Cluster& cluster, const http::Request& request) {
  const std::string kind = Parameter(request, "kind");
  const std::string ns = Parameter(request, "namespace");
  const std::string name = Parameter(request, "name");
  if (kind.empty()) return ErrorResponse(400, "kind: expected a kind such as Pod, found none");
  if (name.empty()) return JsonResponse(cluster.List(kind, ns));
  std::optional<std::string> object = cluster.Get(kind, ns, name);
  if (object) return JsonResponse(std::move(*object));
  return ErrorResponse(404, fmt::format("no {} {} is stored", wire::Quoted(kind),
                                        wire::Quoted(ns.empty() ? name : ns + "/" + name)));
}

std::optional<Instant> Earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

}  // namespace

std::optional<Instant> RunDue(embedded::Cluster& cluster, EngineHost& host, const Clock& clock) {
  using Due = std::pair<std::optional<Instant>, std::optional<Instant>>;
  Due due;
  for (int round = 0; round < kMaxRounds; ++round) {
    const Instant now = clock.Now();
    const Due former = std::exchange(due, Due(host.Tick(), cluster.Tick(now)));
    // What one of them did may make work for the other.
    const bool quiet = round > 0 && due == former;
    const std::optional<Instant> next = Earlier(due.first, due.second);
    if (quiet && (!next || *next > now)) break;
  }
  return Earlier(due.first, due.second);
}

void AddEmbeddedApi(embedded::Cluster& cluster, EngineHost& host, ManualClock* clock,
                    DueWork run_due, Router& router) {
  router.AddAnswer("POST", "/embedded/v1/apply", [&cluster](const http::Request& request) {
    return Apply(cluster, request.body);
  });
  router.AddAnswer("POST", "/embedded/v1/delete", [&cluster](const http::Request& request) {
    return Delete(cluster, request.body);
  });
  router.AddAnswer("POST", "/embedded/v1/clock",
                   [&host, clock, run_due = std::move(run_due)](const http::Request& request) {
                     return MoveClock(host, clock, run_due, request.body);
                   });
  router.AddAnswer("GET", "/embedded/v1/objects",
                   [&cluster](const http::Request& request) { return Objects(cluster, request); });
}

}  // namespace tranche
