#include "bench/decide/decide.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "bench/decide/client.h"
#include "bench/decide/process.h"
#include "scheduler/http/server.h"
#include "scheduler/wire/json.h"

namespace tranche::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr int kOrders = 16;  // slightly different candidate orders, as parallel filters leave
constexpr std::chrono::microseconds kSpin{60};
constexpr int kServerCore = 0;
constexpr int kClientCore = 1;

struct Requests {
  std::vector<std::string> pods;
  std::vector<std::string> names;  // JSON arrays of all node names
};

Requests MakeRequests(const DecideOptions& options) {
  std::mt19937_64 random(options.fleet.seed);
  Requests requests;
  for (int i = 0; i < options.pods; ++i) requests.pods.push_back(PendingPod(i, random()));
  std::vector<int> order(static_cast<std::size_t>(options.fleet.nodes));
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

struct Result {
  std::string policy;
  std::vector<Sample> samples;
  double closed_loop_per_second = 0;
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

absl::Status OpenLoop(Client& client, const Requests& requests, int rate, int seconds,
                      Result& result) {
  result.samples.clear();
  const auto total = static_cast<uint64_t>(rate) * static_cast<uint64_t>(seconds);
  result.samples.reserve(total);
  const auto gap =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1.0 / rate));
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < total; ++i) {
    const Clock::time_point due = begin + gap * static_cast<int64_t>(i);
    // Sleeping to the end would add the timer's slack to what is measured; spinning all the while
    // would take a core from whoever shares the machine, and be throttled for it.
    std::this_thread::sleep_until(due - kSpin);
    while (Clock::now() < due) {
    }
    const Clock::time_point sent = Clock::now();
    const auto fits = Decide(client, requests, i);
    if (!fits.ok()) return fits.status();
    const Clock::time_point end = Clock::now();
    result.samples.push_back({Micros(end - due).count(), Micros(end - sent).count(), *fits});
    result.fitting += *fits;
  }
  return absl::OkStatus();
}

absl::Status ClosedLoop(Client& client, const Requests& requests, Result& result) {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = begin + std::chrono::seconds(3);
  uint64_t done = 0;
  while (Clock::now() < end) {
    const auto fits = Decide(client, requests, done++);
    if (!fits.ok()) return fits.status();
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  result.closed_loop_per_second = static_cast<double>(done) / took.count();
  return absl::OkStatus();
}

absl::Status WaitReady(uint16_t port, Process& process) {
  for (int i = 0; i < 6000; ++i) {
    Client client(port);
    if (client.Connect().ok() && client.Get("/readyz").ok()) return absl::OkStatus();
    if (!process.running()) return absl::UnavailableError("expected a running server, it ended");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::DeadlineExceededError("expected the server to be ready within 60 s, it was not");
}

absl::Status Measure(const DecideOptions& options, const Requests& requests,
                     const std::vector<std::string>& command, uint16_t port, const std::string& log,
                     Result& result) {
  std::fprintf(stderr, "%s: starting\n", result.policy.c_str());
  const Clock::time_point begin = Clock::now();
  auto process = Process::Start(command, log, kServerCore);
  if (!process.ok()) return process.status();
  if (const absl::Status ready = WaitReady(port, *process); !ready.ok()) {
    return absl::UnavailableError(
        fmt::format("{} (its log: {})", std::string(ready.message()), log));
  }
  result.ready_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  Client client(port);
  if (const absl::Status connected = client.Connect(); !connected.ok()) return connected;
  std::fprintf(stderr, "%s: ready after %.2f s, warming up %d s\n", result.policy.c_str(),
               result.ready_seconds, options.warmup_seconds);
  absl::Status status = OpenLoop(client, requests, options.rate, options.warmup_seconds, result);
  if (!status.ok()) return status;
  result.fitting = 0;
  std::fprintf(stderr, "%s: %d decisions/s for %d s\n", result.policy.c_str(), options.rate,
               options.seconds);
  status = OpenLoop(client, requests, options.rate, options.seconds, result);
  if (!status.ok()) return status;
  std::fprintf(stderr, "%s: as fast as it goes for 3 s\n", result.policy.c_str());
  status = ClosedLoop(client, requests, result);
  result.resident_mib = process->ResidentMib();
  return status;
}

double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

struct Row {
  double p50, p99, p999;
  double service50, service99;
  double refused50;  // service, where no node fits
};

Row Summarise(const Result& result) {
  std::vector<double> decision, service, refused;
  for (const Sample& sample : result.samples) {
    decision.push_back(sample.decision);
    service.push_back(sample.service);
    if (!sample.fits) refused.push_back(sample.service);
  }
  return {Quantile(decision, 0.5), Quantile(decision, 0.99), Quantile(decision, 0.999),
          Quantile(service, 0.5),  Quantile(service, 0.99),  Quantile(refused, 0.5)};
}

void Print(const DecideOptions& options, int64_t pods, const std::vector<Result>& results) {
  std::printf(
      "decide: %d nodes x %d GPUs, %.0f %% full by %lld pods, names only, "
      "%d decisions/s for %d s\n\n",
      options.fleet.nodes, options.fleet.gpus_per_node, options.fleet.fill * 100,
      static_cast<long long>(pods), options.rate, options.seconds);
  std::printf("%-8s %29s %19s\n", "", "from due time, us", "from sending, us");
  std::printf("%-8s %9s %9s %9s %9s %9s %12s %8s %8s %8s\n", "", "p50", "p99", "p99.9", "p50",
              "p99", "decisions/s", "RSS MiB", "ready s", "fitting");
  for (const Result& result : results) {
    const Row row = Summarise(result);
    std::printf("%-8s %9.0f %9.0f %9.0f %9.0f %9.0f %12.0f %8lld %8.2f %7.1f%%\n",
                result.policy.c_str(), row.p50, row.p99, row.p999, row.service50, row.service99,
                result.closed_loop_per_second, static_cast<long long>(result.resident_mib),
                result.ready_seconds,
                100.0 * static_cast<double>(result.fitting) /
                    static_cast<double>(std::max<std::size_t>(result.samples.size(), 1)));
  }
  const Row tranche = Summarise(results[0]);
  const Row floor = Summarise(results[1]);
  std::printf("\np50 is %.2f times the floor; where no node fits p50 from sending is %.0f us\n",
              tranche.service50 / floor.service50, tranche.refused50);
}

absl::Status WriteJson(const DecideOptions& options, const std::vector<Result>& results) {
  if (options.out.empty()) return absl::OkStatus();
  std::ofstream file(options.out);
  file << R"({"benchmark":"decide","nodes":)" << options.fleet.nodes << R"(,"gpusPerNode":)"
       << options.fleet.gpus_per_node << R"(,"fill":)" << options.fleet.fill << R"(,"rate":)"
       << options.rate << R"(,"seconds":)" << options.seconds << R"(,"runs":[)";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Row row = Summarise(results[i]);
    file << fmt::format(
        R"({}{{"policy":"{}","seeds":[{}],"p50Us":{:.1f},"p99Us":{:.1f},"p999Us":{:.1f},)"
        R"("serviceP50Us":{:.1f},"serviceP99Us":{:.1f},)"
        R"("decisionsPerSecond":{:.0f},"rssMiB":{},"readySeconds":{:.2f}}})",
        i > 0 ? "," : "", results[i].policy, options.fleet.seed, row.p50, row.p99, row.p999,
        row.service50, row.service99, results[i].closed_loop_per_second, results[i].resident_mib,
        results[i].ready_seconds);
  }
  file << "]}\n";
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError(fmt::format("expected to write {}, could not", options.out));
}

}  // namespace

absl::Status RunDecide(const DecideOptions& options) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "tranche-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError("expected to make a temporary folder, could not");
  }
  const std::string objects = folder + "/fleet.json";
  std::fprintf(stderr, "writing a fleet of %d nodes\n", options.fleet.nodes);
  const absl::StatusOr<int64_t> pods = WriteFleet(options.fleet, objects);
  if (!pods.ok()) return pods.status();
  const Requests requests = MakeRequests(options);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(kClientCore, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);

  std::vector<Result> results(2);
  results[0].policy = "tranche";
  results[1].policy = "floor";
  const uint16_t port = FreePort();
  absl::Status status = Measure(options, requests,
                                {options.server, "serve", "--cluster", "embedded", "--listen",
                                 fmt::format("127.0.0.1:{}", port), "--objects", objects},
                                port, folder + "/tranche.log", results[0]);
  if (!status.ok()) return status;
  const uint16_t floor_port = FreePort();
  status = Measure(
      options, requests,
      {fs::read_symlink("/proc/self/exe").string(), "floor", "--port", std::to_string(floor_port)},
      floor_port, folder + "/floor.log", results[1]);
  if (!status.ok()) return status;
  fs::remove_all(folder);
  Print(options, *pods, results);
  return WriteJson(options, results);
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
      if (!parser.Parse(request.body, true).ok()) response.status = 400;
      response.body = request.path == "/scheduler/filter" ? filter_answer : prioritize_answer;
    }
    respond(std::move(response));
  });
  if (const absl::Status started = server.Start(); !started.ok()) return started;
  pause();
  return absl::OkStatus();
}

}  // namespace tranche::bench
