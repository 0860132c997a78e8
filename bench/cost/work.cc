#include "bench/cost/work.h"

#include <algorithm>
#include <array>

#include "bench/fill/csv.h"
#include "bench/fill/draws.h"
#include "bench/tenants/trace.h"

namespace tranche::bench::cost {
namespace {

constexpr int64_t kMostSeconds = 1'000'000'000;
constexpr int64_t kMostMilliCpu = 10'000'000;
constexpr int kMostGpus = 16;
// What a GPU of Philly's jobs asks for beside it; the trace does not say.
constexpr int64_t kCpuPerGpu = 4'000;

}  // namespace

absl::StatusOr<Workload> ReadOpenb(const std::string& path) {
  fill::Csv csv(path);
  const std::size_t cpu = csv.Column("cpu_milli", /*required=*/true);
  const std::size_t gpus = csv.Column("num_gpu", /*required=*/true);
  const std::size_t milli = csv.Column("gpu_milli", /*required=*/true);
  const std::size_t qos = csv.Column("qos", /*required=*/true);
  const std::size_t phase = csv.Column("pod_phase", /*required=*/true);
  const std::size_t created = csv.Column("creation_time", /*required=*/true);
  const std::size_t deleted = csv.Column("deletion_time", /*required=*/true);
  Workload work{"openb", {}};
  while (csv.Next()) {
    Task task;
    task.gpus = static_cast<int>(csv.Number(gpus, 0, kMostGpus));
    if (task.gpus == 0 || csv.Text(phase) == "Pending") continue;
    task.milli = csv.Number(milli, 1, kWholeMilli);
    task.cpu = csv.Number(cpu, 0, kMostMilliCpu);
    task.submit = csv.Number(created, 0, kMostSeconds);
    task.duration = csv.Number(deleted, 0, kMostSeconds) - task.submit;
    task.interruptible = csv.Text(qos) == "BE" || csv.Text(qos) == "Burstable";
    if (task.duration > 0) work.tasks.push_back(task);
  }
  if (csv.status().ok() && work.tasks.empty()) csv.Fail("a task with GPUs that ran", "none");
  if (!csv.status().ok()) return csv.status();
  std::ranges::stable_sort(work.tasks, {}, &Task::submit);
  return work;
}

absl::StatusOr<Workload> ReadPhilly(const std::string& jobs, const std::string& tenants,
                                    uint64_t seed) {
  const absl::StatusOr<Trace> trace = ReadTrace(jobs, tenants);
  if (!trace.ok()) return trace.status();
  fill::Draws draws(seed);
  Workload work{"philly", {}};
  for (const Job& job : trace->jobs) {
    Task& task = work.tasks.emplace_back();
    task.submit = job.submit;
    task.duration = job.duration;
    task.gpus = job.gpus;
    task.cpu = job.gpus * kCpuPerGpu;
    task.interruptible = draws.Below(2) == 0;
    task.models = "v100-16gb,v100-32gb";
  }
  return work;
}

Workload Synthetic(uint64_t seed, int tasks) {
  struct Size {
    int gpus;
    int64_t milli;
  };
  constexpr std::array<Size, 8> kSizes = {Size{1, 250},     {1, 500},         {1, kWholeMilli},
                                          {1, kWholeMilli}, {1, kWholeMilli}, {2, kWholeMilli},
                                          {4, kWholeMilli}, {8, kWholeMilli}};
  constexpr double kMeanSeconds = 7'200;
  constexpr double kMeanGap = 300;
  fill::Draws draws(seed);
  Workload work{"synthetic", {}};
  double at = 0;
  for (int i = 0; i < tasks; ++i) {
    const Size size = kSizes.at(draws.Index(kSizes.size()));
    Task& task = work.tasks.emplace_back();
    at += kMeanGap * draws.Exponential();
    task.submit = static_cast<int64_t>(at);
    task.duration = 60 + static_cast<int64_t>(kMeanSeconds * draws.Exponential());
    task.gpus = size.gpus;
    task.milli = size.milli;
    task.cpu = size.gpus * kCpuPerGpu;
    task.interruptible = draws.Below(2) == 0;
  }
  return work;
}

}  // namespace tranche::bench::cost
