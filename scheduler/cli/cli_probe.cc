#include "scheduler/cli/cli_probe.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/kube/transport/timing.h"
#include "scheduler/kube/writes/annotator.h"
#include "scheduler/probe/annotations.h"
#include "scheduler/probe/write_rule.h"
#include "scheduler/server/log.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Annotations = std::map<std::string, std::string>;

constexpr int kFailed = 1;
constexpr Millis kMinInterval = std::chrono::seconds(1);
constexpr Millis kMaxInterval = std::chrono::hours(1);
constexpr kube::Backoff::Limits kBackoff = {std::chrono::seconds(5), std::chrono::minutes(5),
                                            std::chrono::minutes(10)};
constexpr std::chrono::seconds kWriteTimeout{10};

// Has SIGTERM and SIGINT end the process where it stands, be it in a driver that hangs. Nothing is
// held that would have to be put away: a write is one request that can be repeated.
class EndAtOnce {
 public:
  EndAtOnce() {
    for (std::size_t at = 0; at < kSignals.size(); ++at) {
      before_[at] = std::signal(kSignals[at], [](int) { _exit(0); });
    }
  }
  ~EndAtOnce() {
    for (std::size_t at = 0; at < kSignals.size(); ++at) std::signal(kSignals[at], before_[at]);
  }
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals = {SIGTERM, SIGINT};
  std::array<void (*)(int), 2> before_{};
};

// Where annotations go.
class Sink {
 public:
  virtual ~Sink() = default;
  // Errors: Unavailable.
  virtual absl::Status Put(const Annotations& annotations) = 0;
};

class PrintSink : public Sink {
 public:
  explicit PrintSink(std::ostream& out) : out_(out) {}
  absl::Status Put(const Annotations& annotations) override {
    const auto json = nlohmann::ordered_json::parse(annotations.at(probe::kProbeKey));
    out_ << probe::kTopologyKey << ":\n"
         << annotations.at(probe::kTopologyKey) << '\n'
         << probe::kProbeKey << ":\n"
         << json.dump(2) << '\n'
         << std::flush;
    return absl::OkStatus();
  }

 private:
  std::ostream& out_;
};

class ClusterSink : public Sink {
 public:
  ClusterSink(kube::Options options, NodeName node)
      : annotator_(std::move(options)), node_(std::move(node)) {}
  absl::Status Put(const Annotations& annotations) override {
    const WriteResult result = annotator_.Annotate(node_, annotations);
    if (result.kind == WriteResult::Kind::kDone) return absl::OkStatus();
    return absl::UnavailableError(fmt::format(
        "expected the API server to take the annotations of node {}, found {} {}", node_.str(),
        result.http_code == 0 ? "no answer:" : fmt::format("{}", result.http_code),
        result.message));
  }

 private:
  kube::Annotator annotator_;
  const NodeName node_;
};

absl::StatusOr<std::unique_ptr<Sink>> MakeSink(const ProbeOptions& options, std::ostream& out) {
  if (options.print) return std::make_unique<PrintSink>(out);
  if (options.node.empty()) {
    return absl::InvalidArgumentError("expected --node or NODE_NAME, found neither");
  }
  TRANCHE_ASSIGN_OR_RETURN(auto credentials, options.kubeconfig.empty()
                                                 ? kube::InClusterCredentials()
                                                 : kube::LoadKubeconfig(options.kubeconfig));
  kube::Options cluster;
  cluster.credentials = std::move(credentials);
  cluster.user_agent = "tranche-probe";
  cluster.bind_timeout = kWriteTimeout;
  return std::make_unique<ClusterSink>(std::move(cluster), NodeName(options.node));
}

// Looks, and writes what is worth it.
class Reporter {
 public:
  Reporter(probe::Sources sources, Sink& sink) : surveyor_(std::move(sources)), sink_(sink) {}

  // Errors: NotFound when there is no NVML library.
  absl::Status LookAndWrite() {
    TRANCHE_ASSIGN_OR_RETURN(probe::Survey survey, surveyor_.Look(SteadyClock::now()));
    if (survey.notes != notes_) {
      for (const std::string& note : survey.notes) spdlog::warn("{}", note);
      notes_ = std::move(survey.notes);
    }
    probe::NodeReading& reading = survey.reading;
    if (!rule_.Due(reading, SteadyClock::now())) return absl::OkStatus();
    const auto at = std::chrono::floor<Millis>(std::chrono::system_clock::now());
    TRANCHE_ASSIGN_OR_RETURN(const Annotations annotations, probe::RenderAnnotations(reading, at));
    TRANCHE_RETURN_IF_ERROR(sink_.Put(annotations));
    spdlog::info("written: {} GPUs, devices of {} containers, {} bytes of topology",
                 reading.gpus.size(), reading.pods ? reading.pods->size() : 0,
                 reading.topology.size());
    rule_.Written(std::move(reading), SteadyClock::now());
    return absl::OkStatus();
  }

 private:
  probe::Surveyor surveyor_;
  Sink& sink_;
  probe::WriteRule rule_;
  std::vector<std::string> notes_;  // of the last look; told when they change
};

int Fail(std::ostream& err, const absl::Status& status, int code) {
  err << "tranche: " << std::string(status.message()) << '\n';
  return code;
}

// An interval, up to a tenth more or less, so that nodes that started together drift apart.
Millis Jittered(Millis interval, std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> part(-interval.count() / 10, interval.count() / 10);
  return interval + Millis(part(random));
}

int Loop(Reporter& reporter, Millis interval, std::ostream& err) {
  std::random_device device;
  std::mt19937_64 random(device());
  kube::Backoff backoff(kBackoff, random());
  for (;;) {
    const absl::Status status = reporter.LookAndWrite();
    // A container sees the driver's libraries as they were when it was made: only a new one helps.
    if (absl::IsNotFound(status)) return Fail(err, status, kFailed);
    Millis wait = Jittered(interval, random);
    if (!status.ok()) {
      wait = backoff.Next(SteadyClock::now());
      spdlog::warn("{}; tried again in {} s", std::string(status.message()),
                   std::chrono::ceil<std::chrono::seconds>(wait).count());
    }
    std::this_thread::sleep_for(wait);
  }
}

}  // namespace

int RunProbe(const ProbeOptions& options, std::ostream& out, std::ostream& err) {
  const std::optional<Millis> interval = wire::ParseDuration(options.interval, kMaxInterval);
  if (!interval || *interval < kMinInterval) {
    return Fail(err,
                absl::InvalidArgumentError(fmt::format("--interval: expected 1s to 1h, found {}",
                                                       wire::Quoted(options.interval))),
                kExitUsage);
  }
  const EndAtOnce end;
  LogToStderr("info");
  absl::StatusOr<std::unique_ptr<Sink>> sink = MakeSink(options, out);
  if (!sink.ok()) return Fail(err, sink.status(), kExitUsage);
  Reporter reporter(options.sources, **sink);
  if (!options.once) return Loop(reporter, *interval, err);
  const absl::Status status = reporter.LookAndWrite();
  return status.ok() ? 0 : Fail(err, status, kFailed);
}

}  // namespace tranche
