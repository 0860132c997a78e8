#include "scheduler/wire/node_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/wire/field_reader.h"
#include "scheduler/wire/json.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMostGpus = 64;
constexpr std::size_t kMostInstances = 8;
constexpr std::size_t kMostPods = 4'096;
constexpr IntegerRange kPoints = {0, 10'000};
constexpr IntegerRange kIndices = {0, 1'000};
constexpr IntegerRange kNumaNodes = {0, 4'096};
constexpr IntegerRange kUnits = {0, 64};

std::string TooMany(std::size_t most, std::string_view what) {
  return fmt::format("expected at most {} {}, found more", most, what);
}

ProbeGpu ReadGpu(Object object, FieldReader& reader) {
  constexpr std::string_view kWhere = "gpus";
  ProbeGpu gpu;
  gpu.index = static_cast<int>(reader.ReadInteger(object, "index", kWhere, kIndices).value_or(0));
  gpu.uuid = GpuUuid(reader.ReadText(object, "uuid", kWhere));
  if (gpu.uuid.empty()) reader.Fail("expected a uuid, found none, in gpus");
  gpu.pci_bus = reader.ReadText(object, "bus", kWhere);
  if (const auto numa = reader.ReadInteger(object, "numa", kWhere, kNumaNodes)) {
    gpu.numa = static_cast<int>(*numa);
  }
  const std::optional<Array> instances = reader.ReadArray(object, "mig", kWhere);
  gpu.mig = instances.has_value();
  if (!instances) return gpu;
  for (const Element element : *instances) {
    const std::optional<Object> instance = reader.AsObject(element, "gpus.mig");
    if (!instance) return gpu;
    if (gpu.layout.size() == kMostInstances) {
      reader.Fail(TooMany(kMostInstances, "instances of a GPU"));
      return gpu;
    }
    MigDevice device;
    device.profile = reader.ReadText(*instance, "profile", "gpus.mig");
    device.start =
        static_cast<int>(reader.ReadInteger(*instance, "start", "gpus.mig", kUnits).value_or(0));
    device.size =
        static_cast<int>(reader.ReadInteger(*instance, "size", "gpus.mig", kUnits).value_or(0));
    gpu.layout.push_back(std::move(device));
  }
  return gpu;
}

// Entries of one pod are merged; what is no whole GPU or replica of one (MIG) is left out.
std::vector<ProbePod> ReadPods(Array entries, FieldReader& reader) {
  std::map<PodName, std::set<GpuUuid>> pods;
  for (const Element element : entries) {
    const std::optional<Object> entry = reader.AsObject(element, "pods");
    if (!entry) return {};
    if (pods.size() == kMostPods) {
      reader.Fail(TooMany(kMostPods, "pods"));
      return {};
    }
    const PodName name{std::string(reader.ReadText(*entry, "namespace", "pods")),
                       std::string(reader.ReadText(*entry, "name", "pods"))};
    const std::optional<Array> devices = reader.ReadArray(*entry, "devices", "pods");
    if (!devices) continue;
    std::set<GpuUuid>& held = pods[name];
    for (const Element device : *devices) {
      const std::optional<std::string_view> id = reader.AsText(device, "pods.devices");
      if (!id) return {};
      if (id->starts_with("GPU-")) held.emplace(id->substr(0, id->find("::")));
    }
  }
  std::vector<ProbePod> result;
  for (auto& [name, held] : pods) {
    if (!held.empty()) result.push_back({name, {held.begin(), held.end()}});
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<PairScore>> ParseHamiScores(std::string_view text) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text, false);
  if (!document.ok()) return document.status();
  Array rows;
  if (document->get_array().get(rows) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("expected an array, found {}", DescribeElement(*document)));
  }
  FieldReader reader;
  std::vector<PairScore> scores;
  std::size_t gpus = 0;
  for (const Element element : rows) {
    const std::optional<Object> row = reader.AsObject(element, "score");
    if (!row) break;
    if (++gpus > kMostGpus) return absl::InvalidArgumentError(TooMany(kMostGpus, "GPUs"));
    const GpuUuid left(reader.ReadText(*row, "uuid", "score"));
    const std::optional<Object> points = reader.ReadObject(*row, "score", "score");
    if (!points) continue;
    std::size_t pairs = 0;
    for (const auto field : *points) {
      if (++pairs > kMostGpus) return absl::InvalidArgumentError(TooMany(kMostGpus, "GPUs"));
      const std::optional<int64_t> value =
          reader.ReadInteger(*points, field.key, "score.score", kPoints);
      if (!value) break;
      scores.push_back({left, GpuUuid(field.key), static_cast<int>(*value)});
    }
  }
  if (!reader.ok()) return reader.status();
  return scores;
}

absl::StatusOr<NodeProbe> ParseNodeProbe(std::string_view text) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text, false);
  if (!document.ok()) return document.status();
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(*document, "probe");
  if (!object) return reader.status();
  const std::optional<int64_t> version = reader.ReadInteger(*object, "v", "probe", {0, 1'000'000});
  if (reader.ok() && version != 1) {
    return absl::InvalidArgumentError(
        fmt::format("expected version 1, found {}", version ? std::to_string(*version) : "none"));
  }
  NodeProbe probe;
  const std::string_view at = reader.ReadText(*object, "at", "probe");
  const auto time = ParseTime(at);
  if (!time) reader.Fail(fmt::format("expected a time, found {}, in probe.at", Quoted(at)));
  probe.at = time.value_or(Instant());
  if (const std::optional<Array> gpus = reader.ReadArray(*object, "gpus", "probe")) {
    for (const Element element : *gpus) {
      const std::optional<Object> gpu = reader.AsObject(element, "gpus");
      if (!gpu) break;
      if (probe.gpus.size() == kMostGpus) {
        reader.Fail(TooMany(kMostGpus, "GPUs"));
        break;
      }
      probe.gpus.push_back(ReadGpu(*gpu, reader));
    }
  }
  std::ranges::sort(probe.gpus, {}, &ProbeGpu::index);
  if (const std::optional<Array> pods = reader.ReadArray(*object, "pods", "probe")) {
    probe.pods = ReadPods(*pods, reader);
  }
  if (!reader.ok()) return reader.status();
  return probe;
}

}  // namespace tranche::wire
