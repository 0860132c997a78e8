#include "scheduler/api/audit_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

using Steady = std::chrono::steady_clock;
using wire::Json;

Json NoteJson(const AuditNote& note) {
  return {{"kind", AuditKindName(note.kind)}, {"where", note.where}, {"text", note.text}};
}

// What the API server said so far of the pods it was asked for; it may say more when nobody listens
// any more.
struct Lookups {
  absl::Mutex mutex;
  std::size_t open ABSL_GUARDED_BY(mutex) = 0;
  std::vector<AuditNote> missing ABSL_GUARDED_BY(mutex);

  bool AllAnswered() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return open == 0; }
};

}  // namespace

AuditApi::~AuditApi() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  pool_.join();
}

std::vector<AuditNote> AuditApi::Forgotten(AuditRun& run) {
  const auto asked = run.Unshown();
  const auto lookups = std::make_shared<Lookups>();
  {
    const absl::MutexLock lock(&lookups->mutex);
    lookups->open = asked.size();
  }
  AskForPods(pods_, asked, [lookups](const PodUid& uid, const PodName& name, PodPresence found) {
    const absl::MutexLock lock(&lookups->mutex);
    --lookups->open;
    if (found != PodPresence::kMissing) return;
    lookups->missing.push_back(
        {AuditKind::kForgottenPod, name.str(),
         fmt::format("pod {} is in the books, and the API server has none", uid.str())});
  });
  const absl::MutexLock lock(&lookups->mutex);
  lookups->mutex.AwaitWithTimeout(absl::Condition(lookups.get(), &Lookups::AllAnswered),
                                  absl::FromChrono(kLookups));
  return lookups->missing;
}

http::Response AuditApi::Look() {
  AuditRun run(host_);
  const Steady::time_point end = Steady::now() + kWhole;
  while (!run.done()) {
    {
      const absl::MutexLock lock(&mutex_);
      if (stopping_) return AskLater(503, "the server is stopping", 2);
    }
    if (Steady::now() > end) {
      return AskLater(503, "the books could not be looked at within a minute", 2);
    }
    run.Step();
  }
  AuditFindings found = std::move(run.found());
  for (AuditNote& note : Forgotten(run)) found.faults.push_back(std::move(note));
  if (hooks_.set_aside) {
    for (AuditNote& note : hooks_.set_aside()) found.set_aside.push_back(std::move(note));
  }
  Json told = Json::object();
  Instant at;
  host_.engine.With(EngineCaller::kSelfCheck, [&](Engine& engine, Instant now) {
    at = now;
    const EngineTotals totals = engine.Totals();
    for (std::size_t kind = 0; kind < kBookFaultKinds; ++kind) {
      if (totals.book_faults[kind] == 0) continue;
      told[std::string(BookFaultName(static_cast<BookFaultKind>(kind)))] = totals.book_faults[kind];
    }
  });
  return JsonResponse(wire::Dump({{"at", wire::FormatTime(at)},
                                  {"walks", ++looks_ + (hooks_.walks ? hooks_.walks() : 0)},
                                  {"faults", wire::ListOf(found.faults, NoteJson)},
                                  {"setAside", wire::ListOf(found.set_aside, NoteJson)},
                                  {"leftOut", run.left_out()},
                                  {"bookFaults", told}}));
}

void AuditApi::Serve() {
  while (true) {
    std::vector<http::Responder> asked;
    {
      const absl::MutexLock lock(&mutex_);
      asked.swap(waiting_);
      serving_ = !asked.empty();
      if (!serving_) return;
    }
    http::Response response = ErrorResponse(500, "the books could not be looked at");
    try {
      response = Look();
    } catch (const std::exception& failure) {
      spdlog::error("audit: given up, {}", failure.what());
    }
    for (const http::Responder& respond : asked) respond(response);
  }
}

void AuditApi::Ask(http::Responder respond) {
  {
    const absl::MutexLock lock(&mutex_);
    if (stopping_ || waiting_.size() == kMostWaiting) {
      return respond(AskLater(503, "too many ask for an audit, ask again later", 2));
    }
    waiting_.push_back(std::move(respond));
    if (std::exchange(serving_, true)) return;
  }
  boost::asio::post(pool_, [this] { Serve(); });
}

void AuditApi::AddTo(Router& router) {
  router.Add("GET", "/api/v1/audit",
             [this](const http::Request&, http::Responder respond) { Ask(std::move(respond)); });
}

}  // namespace tranche
