#include "scheduler/wire/nodes/node_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <system_error>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kMostGpus = 64;
constexpr std::size_t kMostInstances = 8;
constexpr std::size_t kMostPods = 4'096;
constexpr IntegerRange kPoints = {0, 10'000};
constexpr IntegerRange kIndices = {0, 1'000};
constexpr IntegerRange kNumaNodes = {0, 4'096};
constexpr IntegerRange kUnits = {0, 64};
// vgpu-manager's kinds of links: the ways over PCIe, then 1 to 18 NVLinks.
constexpr int64_t kPathKinds = 6;
constexpr int64_t kMostLinkKinds = kPathKinds + 18;
// HAMi's points for the same.
constexpr int kPointsPerPath = 10;
constexpr int kPointsPerNvlink = 100;

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
  for (const Object instance : reader.Objects(instances, "gpus.mig")) {
    if (gpu.layout.size() == kMostInstances) {
      reader.Fail(TooMany(kMostInstances, "instances of a GPU"));
      return gpu;
    }
    MigDevice device;
    device.profile = reader.ReadText(instance, "profile", "gpus.mig");
    device.start =
        static_cast<int>(reader.ReadInteger(instance, "start", "gpus.mig", kUnits).value_or(0));
    device.size =
        static_cast<int>(reader.ReadInteger(instance, "size", "gpus.mig", kUnits).value_or(0));
    gpu.layout.push_back(std::move(device));
  }
  return gpu;
}

int64_t ReadIndex(std::string_view text, FieldReader& reader) {
  int64_t index = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
      error != std::errc() || end != text.data() + text.size()) {
    reader.Fail(fmt::format("expected the index of a GPU, found {}, in links", Quoted(text)));
  }
  return index;
}

// Null: reported.
const AgentDevice* DeviceAt(int64_t index, const std::vector<AgentDevice>& devices,
                            FieldReader& reader) {
  const auto found = std::ranges::find(devices, index, &AgentDevice::index);
  if (found != devices.end()) return &*found;
  reader.Fail(fmt::format("expected GPUs of the register, found index {}", index));
  return nullptr;
}

// Of one pair: at most one way over PCIe and one number of NVLinks; 0 is an unknown link.
int ReadLinkPoints(Object links, std::string_view key, FieldReader& reader) {
  const std::optional<Array> kinds = reader.ReadArray(links, key, "links");
  if (!kinds) return 0;
  int path = 0;
  int nvlinks = 0;
  for (const Element element : *kinds) {
    int64_t kind = 0;
    if (element.get(kind) != simdjson::SUCCESS || kind < 0 || kind > kMostLinkKinds) {
      reader.Fail(fmt::format("expected links from 0 to {}, found {}, in links of {}",
                              kMostLinkKinds, DescribeElement(element), Quoted(key)));
      return 0;
    }
    int& known = kind > kPathKinds ? nvlinks : path;
    if (known != 0 && kind != 0) {
      reader.Fail(
          fmt::format("expected one way over PCIe and one number of NVLinks, found more, "
                      "in links of {}",
                      Quoted(key)));
      return 0;
    }
    if (kind != 0) known = static_cast<int>(kind > kPathKinds ? kind - kPathKinds : kind);
  }
  return path * kPointsPerPath + nvlinks * kPointsPerNvlink;
}

// Entries of one pod are merged; what is no whole GPU or replica of one (MIG) is left out.
std::vector<ProbePod> ReadPods(Array entries, FieldReader& reader) {
  std::map<PodName, std::set<GpuUuid>> pods;
  for (const Object entry : reader.Objects(entries, "pods")) {
    if (pods.size() == kMostPods) {
      reader.Fail(TooMany(kMostPods, "pods"));
      return {};
    }
    const PodName name{std::string(reader.ReadText(entry, "namespace", "pods")),
                       std::string(reader.ReadText(entry, "name", "pods"))};
    const std::optional<Array> devices = reader.ReadArray(entry, "devices", "pods");
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

// Lives as long as the parser.
absl::StatusOr<Array> ParseRows(std::string_view text, Parser& parser) {
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  Array rows;
  if (document.get_array().get(rows) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("expected an array, found {}", DescribeElement(document)));
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<PairScore>> ParseHamiScores(std::string_view text) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Array rows, ParseRows(text, parser));
  FieldReader reader;
  std::vector<PairScore> scores;
  std::size_t gpus = 0;
  for (const Object row : reader.Objects(rows, "score")) {
    if (++gpus > kMostGpus) return absl::InvalidArgumentError(TooMany(kMostGpus, "GPUs"));
    const GpuUuid left(reader.ReadText(row, "uuid", "score"));
    const std::optional<Object> points = reader.ReadObject(row, "score", "score");
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

absl::StatusOr<std::vector<PairScore>> ParseVgpuManagerLinks(
    std::string_view text, const std::vector<AgentDevice>& devices) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Array rows, ParseRows(text, parser));
  FieldReader reader;
  std::vector<PairScore> scores;
  std::size_t gpus = 0;
  for (const Element element : rows) {
    if (++gpus > kMostGpus) return absl::InvalidArgumentError(TooMany(kMostGpus, "GPUs"));
    const std::optional<Object> row = reader.AsObject(element, "topology");
    if (!row) break;
    const std::optional<int64_t> index = reader.ReadInteger(*row, "index", "topology", kIndices);
    if (!index) reader.Fail("expected an index, found none, in topology");
    const AgentDevice* const left = DeviceAt(index.value_or(0), devices, reader);
    const std::optional<Object> links = reader.ReadObject(*row, "links", "topology");
    if (!reader.ok()) break;
    if (!links) continue;  // it has none
    std::size_t pairs = 0;
    for (const auto field : *links) {
      if (++pairs > kMostGpus) return absl::InvalidArgumentError(TooMany(kMostGpus, "GPUs"));
      const AgentDevice* const right = DeviceAt(ReadIndex(field.key, reader), devices, reader);
      const int points = ReadLinkPoints(*links, field.key, reader);
      if (!reader.ok()) break;
      if (right != left && points > 0) scores.push_back({left->uuid, right->uuid, points});
    }
  }
  if (!reader.ok()) return reader.status();
  return scores;
}

absl::StatusOr<NodeProbe> ParseNodeProbe(std::string_view text) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(text));
  FieldReader reader;
  const std::optional<Object> object = reader.AsObject(document, "probe");
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
  for (const Object gpu : reader.Objects(reader.ReadArray(*object, "gpus", "probe"), "gpus")) {
    if (probe.gpus.size() == kMostGpus) {
      reader.Fail(TooMany(kMostGpus, "GPUs"));
      break;
    }
    probe.gpus.push_back(ReadGpu(gpu, reader));
  }
  std::ranges::sort(probe.gpus, {}, &ProbeGpu::index);
  if (const std::optional<Array> pods = reader.ReadArray(*object, "pods", "probe")) {
    probe.pods = ReadPods(*pods, reader);
  }
  if (!reader.ok()) return reader.status();
  return probe;
}

}  // namespace tranche::wire
