#include "test/sim/product/replica.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/api/pages.h"
#include "scheduler/http/head.h"
#include "scheduler/server/takeover.h"

namespace tranche::sim {
namespace {

using Kind = Happening::Kind;
using std::chrono::steady_clock;

const char* NameOfEntry(MeterKind kind) {
  switch (kind) {
    case MeterKind::kOpen:
      return "open";
    case MeterKind::kRunning:
      return "running";
    case MeterKind::kClose:
      return "close";
    case MeterKind::kVoid:
      return "void";
    case MeterKind::kRefund:
      break;
  }
  return "refund";
}

}  // namespace

std::optional<http::Request> ReadRequest(const Request& request) {
  // A POST without a length is refused, as on a connection.
  const std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: tranche\r\nContent-Length: {}\r\n\r\n", request.method,
                  request.target, request.body.size());
  http::Head head;
  if (http::ReadHead(text, head)) return std::nullopt;
  head.request.body.reserve(request.body.size() + http::kBodyPadding);
  head.request.body = request.body;
  return std::move(head.request);
}

Replica::Replica(Loop& loop, History& history, ApiEndpoint& api, Volume* volume,
                 const ServeConfig& config, const MachineClocks& clocks, std::string name,
                 Draws draws, Ended ended)
    : history_(history),
      volume_(volume),
      config_(config),
      ended_(std::move(ended)),
      process_(loop, std::move(name), clocks, draws),
      platform_(process_, api) {}

Replica::~Replica() {
  const ClockScope scope(process_.clocks());
  process_.Kill();
  // What the objects would still write is not written.
  if (volume_) volume_->Freeze();
  TellDoubts();
  elector_.reset();
  cluster_.reset();
  services_.reset();
  if (volume_) volume_->Thaw();
}

void Replica::Tell(Kind kind, uint64_t number, std::string text) {
  Happening happening;
  happening.kind = kind;
  happening.number = number;
  happening.who = process_.name();
  happening.text = std::move(text);
  history_.Add(std::move(happening));
}

void Replica::TellDoubts() {
  if (!services_) return;
  const ClockScope scope(process_.clocks());
  const EngineTotals totals = services_->host().engine.Totals(EngineCaller::kSelfCheck);
  for (std::size_t kind = 0; kind < kBookFaultKinds; ++kind) {
    const int64_t news = totals.book_faults[kind] - doubts_told_[kind];
    doubts_told_[kind] = totals.book_faults[kind];
    if (news == 0) continue;
    Tell(Kind::kDoubted, static_cast<uint64_t>(news),
         std::string(BookFaultName(static_cast<BookFaultKind>(kind))));
  }
}

void Replica::Die(const std::string& why) {
  if (process_.dead()) return;
  grant_.End();
  process_.Kill();
  ended_(why);
}

void Replica::Start() {
  process_.Soon([this] {
    AddPages([] { return Readiness::kStandby; }, nullptr, metrics_,
             [] { return metrics::Scrape(); }, standby_);
    if (config_.elects) return StartElecting();
    StartAlone();
  });
}

kube::Options Replica::ClientOptions() {
  kube::Options options;
  options.credentials.host = "api";
  options.resource_quotas = config_.hami;
  options.server_clock = server_clock_;
  options.platform = &platform_;
  return options;
}

void Replica::StartElecting() {
  kube::Options options = ClientOptions();
  kube::ElectorOptions election{
      options,
      config_.election.ns,
      config_.election.name,
      fmt::format("{}_{:016x}", platform_.HostName(), platform_.Seed()),
      {config_.election.lease, config_.election.renew, config_.election.retry}};
  kube::Elector::Hooks hooks;
  hooks.least_epoch = [this](int64_t next) { return LeastEpoch(config_, buffer_, next); };
  hooks.gained = [this](int64_t epoch) { process_.Soon([this, epoch] { TakeOver(epoch); }); };
  hooks.lost = [this](const std::string& why) {
    Tell(Kind::kLost, services_ ? static_cast<uint64_t>(services_->epoch()) : 0, why);
    Die(why);
  };
  elector_ = std::make_unique<kube::Elector>(std::move(election), grant_, std::move(hooks));
  options.may_write = [this] { return grant_.holds(); };
  options.follow = true;
  options.bind_timeout = WriteTime(config_.election, options.bind_timeout);
  cluster_ = std::make_unique<kube::Cluster>(std::move(options), buffer_);
  cluster_->Start();
  elector_->Start();
}

void Replica::StartAlone() {
  absl::StatusOr<OpenedLedger> opened = Open(1);
  if (process_.dead()) return;
  if (!opened.ok()) return Die(std::string(opened.status().message()));
  services_ =
      std::make_unique<LeaderServices>(config_, metrics_, *std::move(opened), 1, MakeHooks());
  cluster_ = std::make_unique<kube::Cluster>(ClientOptions(), services_->events());
  services_->Attach(*cluster_);
  cluster_->Start();
  BeginToLead();
}

absl::StatusOr<OpenedLedger> Replica::Open(int64_t epoch) {
  std::function<bool()> may_write;
  if (config_.elects) may_write = [this] { return grant_.holds(); };
  absl::StatusOr<OpenedLedger> opened =
      OpenLedger(config_, epoch, /*exact_epoch=*/config_.elects, std::move(may_write),
                 IfUntrusted::kGoOn, MakeLedgerWorks());
  if (volume_ && volume_->TakeTorn()) Die("the disk stood still");
  return opened;
}

LedgerWorks Replica::MakeLedgerWorks() {
  LedgerWorks works;
  if (!volume_) return works;
  works.workers = volume_->WorkersOf(process_, [this] { Die("the disk stood still"); });
  works.queue_limit = volume_->queue_limit();
  works.on_disk = [this](const MeterEvent& event) {
    Happening happening;
    happening.kind = Kind::kPromised;
    happening.who = process_.name();
    happening.key = event.pod.str();
    happening.after = {{"uid", event.uid.str()},
                       {"interval", event.interval},
                       {"kind", NameOfEntry(event.kind)},
                       {"at", event.at.time_since_epoch().count()}};
    history_.Add(std::move(happening));
    if (dies_when_told_ && event.kind == MeterKind::kOpen) Die("killed as its ledger had told");
  };
  return works;
}

LeaderHooks Replica::MakeHooks() {
  LeaderHooks hooks;
  hooks.later = [this](std::function<void()> work) { chores_.Do(std::move(work)); };
  hooks.edges = [](metrics::Scrape&) {};
  // The runtime would end in order; that it must survive a kill as well is what is tried here.
  hooks.restart = [this](const std::string& why) { process_.Soon([this, why] { Die(why); }); };
  if (config_.elects) hooks.may_write = [this] { return grant_.holds(); };
  hooks.cluster_time = [this] { return server_clock_->Now(); };
  hooks.threads.timers = &timers_;
  hooks.threads.ledger = MakeLedgerWorks();
  hooks.threads.reader = [this](std::function<void()> work) { reader_.Do(std::move(work)); };
  return hooks;
}

void Replica::TakeOver(int64_t epoch) {
  cluster_->Refresh([this] {
    refreshed_ = true;
    process_.Soon([this] { BeginToLead(); });
  });
  TakeLedger(epoch, steady_clock::now() + kLedgerPatience);
}

void Replica::TakeLedger(int64_t epoch, steady_clock::time_point end) {
  if (!config_.ledger.empty() && ledger::SqliteLedger::InUse(config_.ledger)) {
    if (steady_clock::now() >= end) {
      return Lead({nullptr, config_.ledger + " is still held by another process"}, epoch);
    }
    return process_.After(kLedgerRetry, [this, epoch, end] { TakeLedger(epoch, end); });
  }
  absl::StatusOr<OpenedLedger> opened = Open(epoch);
  if (process_.dead()) return;
  if (!opened.ok()) return Die(std::string(opened.status().message()));
  Lead(*std::move(opened), epoch);
}

void Replica::Lead(OpenedLedger opened, int64_t epoch) {
  unmetered_ = opened.untrusted;
  // The name of the folder has the number of this process in it, and runs are to be equal.
  const std::size_t at = volume_ ? unmetered_.find(volume_->folder()) : std::string::npos;
  if (at != std::string::npos) unmetered_.erase(at, volume_->folder().size() + 1);
  services_ =
      std::make_unique<LeaderServices>(config_, metrics_, std::move(opened), epoch, MakeHooks());
  services_->Attach(*cluster_);
  process_.Soon([this] { BeginToLead(); });
}

// When both are there: the ledger, and lists that began after the lease was gained.
void Replica::BeginToLead() {
  if (leading_ || !services_) return;
  if (config_.elects && (!refreshed_ || !grant_.holds())) return;
  leading_ = true;
  Tell(Kind::kLeads, static_cast<uint64_t>(services_->epoch()), unmetered_);
  if (config_.elects) buffer_.Open(services_->events());
  services_->Begin();
}

void Replica::Answer(http::Request request, http::Responder respond) {
  const bool probe = request.path == "/readyz" || request.path == "/healthz";
  if (!leading_ && !probe) {
    return respond(ErrorResponse(503, Describe(Readiness::kStandby)));
  }
  const Router& router = leading_ ? services_->router() : standby_;
  router.Route(std::move(request), std::move(respond));
}

std::optional<http::Response> Replica::Ask(const std::string& target) {
  std::optional<http::Request> request = ReadRequest({"GET", target});
  if (!request || process_.dead() || !leading_) return std::nullopt;
  const ClockScope scope(process_.clocks());
  const auto answer = std::make_shared<std::optional<http::Response>>();
  Answer(*std::move(request), [answer](http::Response response) { *answer = std::move(response); });
  return *answer;
}

}  // namespace tranche::sim
