#include "bench/fill/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "bench/fill/csv.h"

namespace tranche::bench::fill {
namespace {

constexpr int64_t kMostMilliCpu = 10'000'000;
constexpr int64_t kMostMebibytes = 1'000'000'000;
constexpr std::size_t kMostModels = 63;
constexpr std::string_view kPrefix = "openb_pod_list_";

// Its position, as a new one if need be.
int ModelNamed(std::string_view name, std::vector<std::string>& models, Csv& csv) {
  const auto found = std::ranges::find(models, name);
  const auto position = static_cast<int>(found - models.begin());
  if (found != models.end()) return position;
  if (models.size() == kMostModels) {
    csv.Fail(fmt::format("at most {} GPU models", kMostModels), name);
    return 0;
  }
  models.emplace_back(name);
  return position;
}

ModelSet ModelsOf(std::string_view spec, std::vector<std::string>& models, Csv& csv) {
  if (spec.empty()) return kAnyOfThem;
  ModelSet set = 0;
  while (!spec.empty()) {
    const std::size_t bar = std::min(spec.find('|'), spec.size());
    if (bar == 0) csv.Fail("GPU models separated by \"|\"", spec);
    set |= ModelSet{1} << ModelNamed(spec.substr(0, bar), models, csv);
    spec.remove_prefix(std::min(bar + 1, spec.size()));
  }
  return set;
}

uint64_t Fnv1a(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  uint64_t hash = 0xcbf29ce484222325;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) {
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
  }
  return hash;
}

std::string VariantName(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.starts_with(kPrefix) ? stem.substr(kPrefix.size()) : stem;
}

}  // namespace

int64_t Fleet::milli() const {
  int64_t gpus = 0;
  for (const Machine& machine : machines) gpus += machine.gpus;
  return gpus * kWhole;
}

Class TaskType::task_class() const {
  if (gpus == 0) return Class::kCpuOnly;
  if (shares()) return Class::kSharing;
  if (gpus <= 2) return gpus == 1 ? Class::kOne : Class::kTwo;
  return gpus <= 4 ? Class::kFour : Class::kEight;
}

int64_t Variant::milli() const {
  int64_t sum = 0;
  for (const int task : tasks) sum += types[static_cast<std::size_t>(task)].total();
  return sum;
}

absl::StatusOr<Fleet> ReadFleet(const std::string& path) {
  Csv csv(path);
  const std::size_t cpu = csv.Column("cpu_milli", true);
  const std::size_t memory = csv.Column("memory_mib", true);
  const std::size_t gpus = csv.Column("gpu", true);
  const std::size_t model = csv.Column("model", true);
  Fleet fleet;
  while (csv.Next()) {
    Machine machine;
    machine.cpu = csv.Number(cpu, 0, kMostMilliCpu);
    machine.memory = csv.Number(memory, 0, kMostMebibytes);
    machine.gpus = static_cast<int>(csv.Number(gpus, 0, kMaxGpus));
    if (machine.gpus > 0) {
      if (csv.Text(model).empty()) csv.Fail("the model of its GPUs", "");
      machine.model = ModelNamed(csv.Text(model), fleet.models, csv);
    }
    fleet.machines.push_back(machine);
  }
  if (csv.status().ok() && fleet.milli() == 0) csv.Fail("a node with GPUs", "none");
  if (!csv.status().ok()) return csv.status();
  return fleet;
}

absl::StatusOr<Variant> ReadVariant(const std::string& path, const Fleet& fleet) {
  Csv csv(path);
  const std::size_t cpu = csv.Column("cpu_milli", true);
  const std::size_t memory = csv.Column("memory_mib", true);
  const std::size_t gpus = csv.Column("num_gpu", true);
  const std::size_t milli = csv.Column("gpu_milli", true);
  const std::size_t spec = csv.Column("gpu_spec", false);
  Variant variant;
  variant.name = VariantName(path);
  variant.path = path;
  variant.hash = Fnv1a(path);
  variant.models = fleet.models;
  std::map<std::tuple<int64_t, int64_t, int, int64_t, ModelSet>, int> known;
  while (csv.Next()) {
    TaskType type;
    type.cpu = csv.Number(cpu, 0, kMostMilliCpu);
    type.memory = csv.Number(memory, 0, kMostMebibytes);
    type.gpus = static_cast<int>(csv.Number(gpus, 0, kMaxGpus));
    if (type.gpus > 0) {
      type.milli = csv.Number(milli, type.gpus > 1 ? kWhole : 1, kWhole);
      type.models = ModelsOf(csv.Text(spec), variant.models, csv);
    }
    const auto key = std::tuple(type.cpu, type.memory, type.gpus, type.milli, type.models);
    const auto [at, added] = known.emplace(key, static_cast<int>(variant.types.size()));
    if (added) variant.types.push_back(type);
    variant.tasks.push_back(at->second);
  }
  if (csv.status().ok() && variant.milli() == 0) csv.Fail("a task that asks for a GPU", "none");
  if (!csv.status().ok()) return csv.status();
  return variant;
}

}  // namespace tranche::bench::fill
