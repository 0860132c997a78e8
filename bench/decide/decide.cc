#include "bench/decide/decide.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "bench/decide/fleet.h"
#include "bench/decide/teams.h"
#include "bench/http/client.h"
#include "bench/http/process.h"
#include "bench/report/report.h"
#include "scheduler/http/server.h"
#include "scheduler/wire/json/json.h"

namespace tranche::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr int kOrders = 16;  // slightly different candidate orders, as parallel filters leave
constexpr std::chrono::microseconds kSpin{60};
// The servers are asked in turns, so many times.
constexpr uint64_t kTurns = 10;
// Warming up, which is not reported, and asking as fast as it goes take no longer than this, nor
// longer than the open loop.
constexpr int kMostSeconds = 3;
constexpr int kServerCore = 0;
constexpr int kClientCore = 1;

struct Requests {
  std::vector<std::string> pods;
  std::vector<std::string> names;  // JSON arrays of all node names
};

Requests MakeRequests(const DecideOptions& options, const Profile& profile) {
  std::mt19937_64 random(options.seed);
  Requests requests;
  for (int i = 0; i < options.pods; ++i) requests.pods.push_back(PendingPod(profile, i, random()));
  std::vector<int> order(static_cast<std::size_t>(profile.nodes));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (int variant = 0; variant < kOrders; ++variant) {
    // kube-scheduler's workers finish out of step: neighbours swap here and there.
    for (std::size_t i = 0; i + 1 < order.size(); i += 1 + random() % 64) {
      std::swap(order[i], order[i + 1]);
    }
    std::string names = "[";
    for (const int node : order) {
      names += fmt::format("{}\"{}\"", names.size() > 1 ? "," : "", NodeNameOf(node));
    }
    requests.names.push_back(names + "]");
  }
  return requests;
}

struct Sample {
  double decision = 0;  // from due time to the last byte of the prioritize answer
  double service = 0;   // from the first byte sent
  bool fits = false;
};

// What one server showed.
struct Result {
  std::string policy;
  std::vector<Sample> samples = {};
  uint64_t closed_loop_done = 0;
  std::chrono::duration<double> closed_loop_took{0};
  std::chrono::nanoseconds cpu{0};  // of the server, for all samples
  int64_t resident_mib = 0;
  double ready_seconds = 0;
  int64_t fitting = 0;  // decisions that found a node
};

absl::StatusOr<bool> Decide(Client& client, const Requests& requests, uint64_t number) {
  const std::string& pod = requests.pods[number % requests.pods.size()];
  const std::string& names = requests.names[number % requests.names.size()];
  const std::array<std::string_view, 5> filter = {R"({"Pod":)", pod,
                                                  R"(,"Nodes":null,"NodeNames":)", names, "}\n"};
  auto answer = client.Post("/scheduler/filter", filter);
  if (!answer.ok()) return answer.status();
  const std::size_t key = answer->find(R"("NodeNames":[)");
  if (key == std::string_view::npos) {
    return absl::UnavailableError(
        fmt::format("expected NodeNames, found {}", answer->substr(0, 200)));
  }
  const std::size_t from = key + 12;
  const std::string chosen(answer->substr(from, answer->find(']', from) + 1 - from));
  if (chosen.size() <= 2) return false;
  const std::array<std::string_view, 5> prioritize = {
      R"({"Pod":)", pod, R"(,"Nodes":null,"NodeNames":)", chosen, "}\n"};
  answer = client.Post("/scheduler/prioritize", prioritize);
  if (!answer.ok()) return answer.status();
  return true;
}

// Decisions [first, first + count) of the fixed sequence, at their due times.
absl::Status OpenLoop(Client& client, const Requests& requests, int rate, uint64_t first,
                      uint64_t count, Result& result) {
  const auto gap =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1.0 / rate));
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < count; ++i) {
    const Clock::time_point due = begin + gap * static_cast<int64_t>(i);
    // Sleeping to the end would add the timer's slack to what is measured; spinning all the while
    // would take a core from whoever shares the machine, and be throttled for it.
    std::this_thread::sleep_until(due - kSpin);
    while (Clock::now() < due) {
    }
    const Clock::time_point sent = Clock::now();
    const auto fits = Decide(client, requests, first + i);
    if (!fits.ok()) return fits.status();
    const Clock::time_point end = Clock::now();
    result.samples.push_back({Micros(end - due).count(), Micros(end - sent).count(), *fits});
    result.fitting += *fits;
  }
  return absl::OkStatus();
}

absl::Status ClosedLoop(Client& client, const Requests& requests, Clock::duration length,
                        Result& result) {
  const Clock::time_point begin = Clock::now();
  while (Clock::now() < begin + length) {
    const auto fits = Decide(client, requests, result.closed_loop_done++);
    if (!fits.ok()) return fits.status();
  }
  result.closed_loop_took += Clock::now() - begin;
  return absl::OkStatus();
}

// A server under measurement.
struct Contestant {
  Result result;
  std::vector<std::string> command;
  uint16_t port = 0;
  std::string log;
  std::optional<Process> process = std::nullopt;
  std::unique_ptr<Client> client = nullptr;
};

absl::Status Start(Contestant& contestant) {
  Result& result = contestant.result;
  std::fprintf(stderr, "%s: starting\n", result.policy.c_str());
  const Clock::time_point begin = Clock::now();
  auto process = Process::Start(contestant.command, contestant.log, kServerCore);
  if (!process.ok()) return process.status();
  contestant.process.emplace(*std::move(process));
  if (const absl::Status ready = WaitReady(contestant.port, *contestant.process); !ready.ok()) {
    return absl::UnavailableError(
        fmt::format("{} (its log: {})", std::string(ready.message()), contestant.log));
  }
  result.ready_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  contestant.client = std::make_unique<Client>(contestant.port);
  return contestant.client->Connect();
}

// All contestants run, and are asked in turns.
absl::Status Measure(const DecideOptions& options, const Requests& requests,
                     std::span<Contestant> contestants) {
  const int short_seconds = std::min(kMostSeconds, options.seconds);
  for (Contestant& contestant : contestants) {
    if (absl::Status status = Start(contestant); !status.ok()) return status;
    std::fprintf(stderr, "%s: ready after %.2f s, warming up %d s\n",
                 contestant.result.policy.c_str(), contestant.result.ready_seconds, short_seconds);
    const auto count = static_cast<uint64_t>(options.rate) * static_cast<uint64_t>(short_seconds);
    const absl::Status status =
        OpenLoop(*contestant.client, requests, options.rate, 0, count, contestant.result);
    if (!status.ok()) return status;
    contestant.result.samples.clear();
    contestant.result.fitting = 0;
  }
  const uint64_t total =
      static_cast<uint64_t>(options.rate) * static_cast<uint64_t>(options.seconds);
  std::fprintf(stderr, "%d decisions/s for %d s\n", options.rate, options.seconds);
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    const uint64_t first = total * turn / kTurns;
    const uint64_t count = total * (turn + 1) / kTurns - first;
    for (Contestant& contestant : contestants) {
      const std::chrono::nanoseconds before = contestant.process->CpuTime();
      const absl::Status status =
          OpenLoop(*contestant.client, requests, options.rate, first, count, contestant.result);
      if (!status.ok()) return status;
      contestant.result.cpu += contestant.process->CpuTime() - before;
    }
  }
  std::fprintf(stderr, "as fast as it goes for %d s\n", short_seconds);
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    for (Contestant& contestant : contestants) {
      const absl::Status status = ClosedLoop(
          *contestant.client, requests,
          Clock::duration(std::chrono::seconds(short_seconds)) / kTurns, contestant.result);
      if (!status.ok()) return status;
    }
  }
  for (Contestant& contestant : contestants) {
    contestant.result.resident_mib = contestant.process->ResidentMib();
    contestant.client.reset();
    contestant.process.reset();
  }
  return absl::OkStatus();
}

struct Row {
  double p50, p99, p999;
  double service50, service99;
  double refused50;  // service, where no node fits
  double per_second;
  double cpu;      // of the server for one decision at the asked rate, in us
  double fitting;  // share of the decisions, in percent
};

Row Summarise(const Result& result) {
  std::vector<double> decision, service, refused;
  for (const Sample& sample : result.samples) {
    decision.push_back(sample.decision);
    service.push_back(sample.service);
    if (!sample.fits) refused.push_back(sample.service);
  }
  const auto decisions = static_cast<double>(std::max<std::size_t>(result.samples.size(), 1));
  return {Quantile(decision, 0.5),
          Quantile(decision, 0.99),
          Quantile(decision, 0.999),
          Quantile(service, 0.5),
          Quantile(service, 0.99),
          Quantile(refused, 0.5),
          static_cast<double>(result.closed_loop_done) / result.closed_loop_took.count(),
          Micros(result.cpu).count() / decisions,
          100.0 * static_cast<double>(result.fitting) / decisions};
}

void Print(const DecideOptions& options, const Profile& profile, int64_t pods,
           const std::vector<Result>& results) {
  std::printf(
      "decide: %d nodes x %d GPUs, %.0f %% full by %lld pods, names only, "
      "%d decisions/s for %d s\n\n",
      profile.nodes, profile.gpus_per_node, profile.fill * 100, static_cast<long long>(pods),
      options.rate, options.seconds);
  std::printf("%-8s %29s %19s\n", "", "from due time, us", "from sending, us");
  std::printf("%-8s %9s %9s %9s %9s %9s %12s %8s %8s %8s %8s\n", "", "p50", "p99", "p99.9", "p50",
              "p99", "decisions/s", "CPU us", "RSS MiB", "ready s", "fitting");
  for (const Result& result : results) {
    const Row row = Summarise(result);
    std::printf("%-8s %9.0f %9.0f %9.0f %9.0f %9.0f %12.0f %8.0f %8lld %8.2f %7.1f%%\n",
                result.policy.c_str(), row.p50, row.p99, row.p999, row.service50, row.service99,
                row.per_second, row.cpu, static_cast<long long>(result.resident_mib),
                result.ready_seconds, row.fitting);
  }
  const Row floor = Summarise(results.back());
  std::printf("\n");
  for (const Result& result : std::span(results).first(results.size() - 1)) {
    const Row row = Summarise(result);
    std::printf(
        "%s: CPU %.2f, p50 from sending %.2f, decisions/s %.2f times the floor's; where "
        "no node fits p50 from sending is %.0f us\n",
        result.policy.c_str(), row.cpu / floor.cpu, row.service50 / floor.service50,
        row.per_second / floor.per_second, row.refused50);
  }
  const Row tranche = Summarise(results.front());
  for (const Result& result : std::span(results).subspan(1, results.size() - 2)) {
    const Row row = Summarise(result);
    std::printf(
        "%s against %s: CPU x %.3f, p50 x %.3f, p99 x %.3f, from sending p50 x %.3f, "
        "p99 x %.3f, decisions/s x %.3f\n",
        result.policy.c_str(), results.front().policy.c_str(), row.cpu / tranche.cpu,
        row.p50 / tranche.p50, row.p99 / tranche.p99, row.service50 / tranche.service50,
        row.service99 / tranche.service99, row.per_second / tranche.per_second);
  }
}

std::string ToJson(const DecideOptions& options, const Profile& profile,
                   const std::vector<Result>& results) {
  std::string runs;
  for (const Result& result : results) {
    const Row row = Summarise(result);
    runs += fmt::format(
        R"({}{{"policy":"{}","seeds":[{}],"p50Us":{:.1f},"p99Us":{:.1f},"p999Us":{:.1f},)"
        R"("serviceP50Us":{:.1f},"serviceP99Us":{:.1f},)"
        R"("cpuPerDecisionUs":{:.1f},"decisionsPerSecond":{:.0f},"rssMiB":{},)"
        R"("readySeconds":{:.2f},)"
        R"("fittingPercent":{:.1f}}})",
        runs.empty() ? "" : ",", result.policy, options.seed, row.p50, row.p99, row.p999,
        row.service50, row.service99, row.cpu, row.per_second, result.resident_mib,
        result.ready_seconds, row.fitting);
  }
  return fmt::format(
      R"({{"benchmark":"decide","nodes":{},"gpusPerNode":{},"fill":{:g},"rate":{},"seconds":{},)"
      R"("runs":[{}]}})",
      profile.nodes, profile.gpus_per_node, profile.fill, options.rate, options.seconds, runs);
}

Contestant Serve(const std::string& program, const std::string& name, const std::string& folder,
                 const std::vector<std::string>& objects) {
  const uint16_t port = FreePort();
  Contestant contestant{.result = {.policy = name},
                        .command = {program, "serve", "--cluster", "embedded", "--listen",
                                    fmt::format("127.0.0.1:{}", port)},
                        .port = port,
                        .log = fmt::format("{}/{}.log", folder, name)};
  for (const std::string& file : objects) {
    contestant.command.insert(contestant.command.end(), {"--objects", file});
  }
  return contestant;
}

Contestant Floor(const std::string& folder) {
  const uint16_t port = FreePort();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return {.result = {.policy = "floor"},
          .command = {self, "floor", "--port", std::to_string(port)},
          .port = port,
          .log = folder + "/floor.log"};
}

}  // namespace

absl::Status RunDecide(const DecideOptions& options) {
  namespace fs = std::filesystem;
  absl::StatusOr<Profile> profile = ReadProfile(options.profile);
  if (!profile.ok()) return profile.status();
  if (options.quota) profile->namespaces = profile->teams;
  if (profile->classes.empty() || profile->namespaces == 0) {
    return absl::InvalidArgumentError(options.profile.file +
                                      ": expected classes, and teams with --quota, found none");
  }
  std::string folder = (fs::temp_directory_path() / "tranche-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError("expected to make a temporary folder, could not");
  }
  std::fprintf(stderr, "writing a fleet of %d nodes\n", profile->nodes);
  const absl::StatusOr<FleetFiles> fleet = WriteFleet(*profile, options.seed, folder);
  if (!fleet.ok()) return fleet.status();
  std::vector<Contestant> servers;
  servers.push_back(
      Serve(options.server, options.quota ? "default" : "tranche", folder, fleet->paths));
  if (options.quota) {
    // Teams first: work keeps the leaf it was taken up under.
    std::vector<std::string> objects = {folder + "/teams.json"};
    if (absl::Status written = WriteTeams(*profile, objects.front()); !written.ok()) return written;
    objects.insert(objects.end(), fleet->paths.begin(), fleet->paths.end());
    servers.push_back(Serve(options.server, "quota", folder, objects));
  }
  if (!options.beside.empty()) {
    servers.push_back(Serve(options.beside, "beside", folder, fleet->paths));
  }
  servers.push_back(Floor(folder));
  const Requests requests = MakeRequests(options, *profile);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(kClientCore, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);

  if (absl::Status status = Measure(options, requests, servers); !status.ok()) return status;
  fs::remove_all(folder);
  std::vector<Result> results;
  for (Contestant& server : servers) results.push_back(std::move(server.result));
  Print(options, *profile, fleet->pods, results);
  return WriteReport(ToJson(options, *profile, results), options.out);
}

absl::Status ServeFloor(uint16_t port) {
  std::string chosen;
  std::string priorities;
  for (int i = 0; i < 11; ++i) {
    chosen += fmt::format("{}\"{}\"", i > 0 ? "," : "", NodeNameOf(i));
    priorities +=
        fmt::format(R"({}{{"Host":"{}","Score":{}}})", i > 0 ? "," : "", NodeNameOf(i), 10 - i);
  }
  const std::string filter_answer =
      R"({"Nodes":null,"NodeNames":[)" + chosen +
      R"(],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})";
  const std::string prioritize_answer = "[" + priorities + "]";
  http::Options options;
  options.port = port;
  http::Server server(options, [&](http::Request request, const http::Responder& respond) {
    thread_local wire::Parser parser;
    http::Response response;
    if (request.method == "POST") {
      if (!parser.Parse(request.body, wire::Padding::kThere).ok()) response.status = 400;
      response.body = request.path == "/scheduler/filter" ? filter_answer : prioritize_answer;
    }
    respond(std::move(response));
  });
  if (const absl::Status started = server.Start(); !started.ok()) return started;
  pause();
  return absl::OkStatus();
}

}  // namespace tranche::bench
