#include "scheduler/server/use_source.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/controllers/use_reader.h"
#include "scheduler/kube/transport/http_client.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "topology/base/check.h"

namespace tranche {

namespace asio = boost::asio;

// Of MIG instances only the second of each pair is measured, of whole cards mostly both. Rows of
// different measures have different labels, so that `or` keeps them all.
const char* const kUseQuery =
    "max by (UUID, GPU_I_ID, namespace, pod, exported_namespace, exported_pod) ("
    "max_over_time(DCGM_FI_DEV_GPU_UTIL[2m]) / 100"
    " or max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE[2m]))"
    " or label_replace("
    "max by (UUID, GPU_I_ID, namespace, pod, exported_namespace, exported_pod) ("
    "avg_over_time(DCGM_FI_DEV_GPU_UTIL[2m]) / 100"
    " or avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE[2m])),"
    " 'measure', 'mean', '', '')"
    " or label_replace("
    "max by (UUID, GPU_I_ID, namespace, pod, exported_namespace, exported_pod) ("
    "max_over_time(DCGM_FI_DEV_FB_USED[2m])),"
    " 'measure', 'memory', '', '')"
    " or label_replace(max by (UUID) (DCGM_FI_DEV_GPU_TEMP), 'measure', 'temperature', '', '')"
    " or label_replace(max by (UUID) (DCGM_FI_DEV_POWER_USAGE), 'measure', 'power', '', '')";

namespace {

// HAMi's monitor tells what each container does; by its older names and by those of 2.9.
struct HamiNames {
  const char* work;    // percent
  const char* kernel;  // seconds since one was launched
  const char* card;    // the label of its UUID
  const char* pod;     // labels of the pod
};
constexpr HamiNames kHamiNames[] = {
    {"Device_utilization_desc_of_container", "Device_last_kernel_of_container", "deviceuuid",
     "podnamespace, podname"},
    {"hami_container_device_utilization_ratio", "hami_container_last_kernel_elapsed_seconds",
     "device_uuid", "namespace, pod, exported_namespace, exported_pod"},
};

// What pods do themselves on cards that they share. A zero of HAMi proves nothing by itself: where
// a container has no limit of cores, or its processes are not found, it is zero for ever
// (Project-HAMi/HAMi#601, #1864). So all of the pod's containers on the card must have been seen to
// work within a day; and for a zero the pod must have launched a kernel before, and none for two
// minutes.
std::string HamiUse(const HamiNames& names) {
  const std::string by = fmt::format("by ({}, {})", names.pod, names.card);
  const std::string work = fmt::format("max {} (max_over_time({}[2m]))", by, names.work);
  const std::string seen = fmt::format("min {} (max_over_time({}[1d])) > 0", by, names.work);
  const std::string still =
      fmt::format("min by ({0}) (min_over_time({1}[2m])) > 120", names.pod, names.kernel);
  std::string rows = fmt::format("({0} > 0 or {0} == 0 and on ({1}) {2}) / 100 and {3}", work,
                                 names.pod, still, seen);
  const auto rename = [&rows](const char* to, const char* from) {
    rows = fmt::format("label_replace({}, '{}', '$1', '{}', '(.+)')", rows, to, from);
  };
  rename("UUID", names.card);
  rename("namespace", "podnamespace");
  rename("pod", "podname");
  return fmt::format("label_replace({}, 'measure', 'own', '', '')", rows);
}

constexpr std::chrono::milliseconds kFirst{1'000};
constexpr std::chrono::milliseconds kPatience{10'000};
// 600,000 rows of 300 bytes.
constexpr std::size_t kMostBytes = std::size_t{192} << 20;

kube::Options ClientOf(const UseOptions& options) {
  const absl::StatusOr<kube::ServerUrl> url = kube::ParseServerUrl(options.prometheus);
  TRANCHE_CHECK(url.ok());  // the configuration was checked
  kube::Options client;
  kube::Credentials& server = client.credentials;
  server.host = url->host;
  server.port = url->port;
  server.path_prefix = url->path_prefix;
  server.tls = url->tls;
  server.ca_file = options.ca_file;
  server.system_roots = options.ca_file.empty();
  server.token_file = options.token_file;
  return client;
}

absl::StatusOr<std::string> BodyOf(kube::ApiAnswer answer) {
  if (answer.transport != kube::ApiAnswer::Transport::kAnswered) {
    return absl::UnavailableError(answer.error);
  }
  // What is wrong with a query it says in a body of its own form.
  if (answer.status != 200 && answer.status != 400 && answer.status != 422) {
    return absl::UnavailableError(fmt::format("expected rows, found HTTP {}", answer.status));
  }
  return std::move(answer.body);
}

}  // namespace

std::string UseTarget(const UseOptions& options) {
  std::string query = options.query;
  if (query.empty()) {
    query = kUseQuery;
    for (const HamiNames& names : kHamiNames) query += " or " + HamiUse(names);
  }
  return "/api/v1/query?query=" + kube::PercentEncoded(query);
}

struct UseSource::Impl {
  Impl(const UseOptions& given, Host& host, const Clock& time, Ledger* ledger,
       std::vector<PodWork> before)
      : options(given),
        clock(time),
        client(context, stop, ClientOf(given)),
        reader(host, given.idle_percent, time.Now(), ledger, std::move(before)) {}

  asio::awaitable<void> Run() {
    for (std::chrono::milliseconds pause = kFirst; co_await stop.Sleep(pause);
         pause = std::chrono::seconds(options.every_seconds)) {
      kube::ApiRequest request;
      request.target = UseTarget(options);
      request.answer_limit = kMostBytes;
      request.deadline = std::chrono::steady_clock::now() + kPatience;
      kube::ApiAnswer answer = co_await client.Call(request);
      if (stop.raised()) break;
      reader.Take(BodyOf(std::move(answer)));
    }
  }

  const UseOptions options;
  const Clock& clock;
  asio::io_context context{1};
  kube::StopSignal stop{context};
  kube::HttpClient client;
  UseReader reader;
  std::thread thread;
};

UseSource::UseSource(const UseOptions& options, Host& host, const Clock& clock, Ledger* ledger,
                     std::vector<PodWork> before)
    : impl_(options.prometheus.empty()
                ? nullptr
                : std::make_unique<Impl>(options, host, clock, ledger, std::move(before))) {}

UseSource::~UseSource() { End(); }

void UseSource::Begin() {
  if (impl_ == nullptr) return;
  asio::co_spawn(impl_->context, impl_->Run(), kube::Rethrow);
  impl_->thread = std::thread([impl = impl_.get()] { impl->context.run(); });
}

void UseSource::End() {
  if (impl_ == nullptr || !impl_->thread.joinable()) return;
  asio::post(impl_->context, [impl = impl_.get()] { impl->stop.Raise(); });
  impl_->thread.join();
}

std::optional<UseHistory> UseSource::history() const {
  if (impl_ == nullptr) return std::nullopt;
  return impl_->reader.history();
}

std::shared_ptr<const CardReadings> UseSource::readings() const {
  return impl_ == nullptr ? nullptr : impl_->reader.readings();
}

std::optional<metrics::UseRow> UseSource::row() const {
  if (impl_ == nullptr) return std::nullopt;
  return impl_->reader.row(impl_->clock.Now());
}

}  // namespace tranche
