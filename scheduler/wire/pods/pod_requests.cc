#include "scheduler/wire/pods/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace {

struct KindRow {
  std::string_view key;
  AmountKind kind;
  RequestStyle style;
  bool plugin;
};
using enum AmountKind;

// In order of AmountKind. Source: request-dialects sections 4.1, 6-10, 12-14.
constexpr std::array<KindRow, static_cast<std::size_t>(kForeign) + 1> kKinds = {{
    {kGpuKey, kGpu, RequestStyle::kNative, true},
    {kGpuSharedKey, kGpuShared, RequestStyle::kNative, true},
    {kMigKeyPrefix, kMig, RequestStyle::kNative, true},
    {"nvidia.com/gpumem", kHamiMemory, RequestStyle::kHami, false},
    {"nvidia.com/gpumem-percentage", kHamiPercent, RequestStyle::kHami, false},
    {"nvidia.com/gpucores", kHamiCores, RequestStyle::kHami, false},
    {"volcano.sh/vgpu-number", kVolcanoNumber, RequestStyle::kVolcano, true},
    {"volcano.sh/vgpu-memory", kVolcanoMemory, RequestStyle::kVolcano, false},
    {"volcano.sh/vgpu-memory-percentage", kVolcanoPercent, RequestStyle::kVolcano, false},
    {"volcano.sh/vgpu-cores", kVolcanoCores, RequestStyle::kVolcano, false},
    {"volcano.sh/gpu-memory", kVolcanoOldMemory, RequestStyle::kVolcanoOld, true},
    {"volcano.sh/gpu-number", kVolcanoOldNumber, RequestStyle::kVolcanoOld, true},
    {"aliyun.com/gpu-mem", kGpushareMemory, RequestStyle::kGpushare, true},
    {"tencent.com/vcuda-core", kVcudaCore, RequestStyle::kTkestack, true},
    {"tencent.com/vcuda-memory", kVcudaMemory, RequestStyle::kTkestack, false},
    {"elasticgpu.io/gpu-core", kElasticCore, RequestStyle::kElastic, true},
    {"elasticgpu.io/gpu-memory", kElasticMemory, RequestStyle::kElastic, true},
    {"nvidia.com/vgpu-number", kVgpuNumber, RequestStyle::kVgpuManager, true},
    {"nvidia.com/vgpu-memory", kVgpuMemory, RequestStyle::kVgpuManager, false},
    {"nvidia.com/vgpu-cores", kVgpuCores, RequestStyle::kVgpuManager, false},
    {"koordinator.sh/gpu", kKoordGpu, RequestStyle::kKoordinator, false},
    {"koordinator.sh/gpu.shared", kKoordShared, RequestStyle::kKoordinator, false},
    {"koordinator.sh/gpu-core", kKoordCore, RequestStyle::kKoordinator, false},
    {"koordinator.sh/gpu-memory", kKoordMemory, RequestStyle::kKoordinator, false},
    {"koordinator.sh/gpu-memory-ratio", kKoordRatio, RequestStyle::kKoordinator, false},
    {"hivedscheduler.microsoft.com/pod-scheduling-enable", kHivedEnable, RequestStyle::kHived,
     false},
    {"", kForeign, RequestStyle::kNone, false},
}};
static_assert([] {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  }
  return true;
}());

const KindRow& RowOf(AmountKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

// Vendors that are not ours, and keys of the styles above that nobody here can read, by the start
// of their resource keys. Source: device plugin documentation of the vendors.
constexpr std::array<std::string_view, 29> kForeignPrefixes = {
    "volcano.sh/vgpu-",
    "volcano.sh/gpu-",
    "aliyun.com/gpu-",
    "tencent.com/vcuda-",
    "tke.cloud.tencent.com/qgpu-",
    "elasticgpu.io/",
    "nvidia.com/vgpu-",
    "koordinator.sh/gpu",
    "alibabacloud.com/gpu-",
    "hivedscheduler.microsoft.com/",
    "mig.das.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "huawei.com/Ascend",
    "huawei.com/npu",
    "cambricon.com/",
    "hygon.com/",
    "iluvatar.ai/",
    "iluvatar.com/",
    "metax-tech.com/",
    "mthreads.com/",
    "enflame.com/",
    "kunlunxin.com/",
    "vastaitech.com/",
    "biren.com/",
    "aws.amazon.com/neuron",
    "google.com/tpu",
    "squat.ai/gpu",
};

std::optional<AmountKind> Classify(std::string_view key) {
  // cpu, memory and ephemeral-storage, the keys of every container, have no domain.
  if (key.find('/') == std::string_view::npos) return std::nullopt;
  for (const KindRow& row : kKinds) {
    if (row.key == key && row.kind != kMig) return row.kind;
  }
  if (key.starts_with(kMigKeyPrefix)) return kMig;
  const bool foreign =
      std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                  [key](std::string_view prefix) { return key.starts_with(prefix); });
  return foreign ? std::optional(kForeign) : std::nullopt;
}

// What a quantity says, before it is known to be a sensible amount.
struct Reading {
  std::string_view key;
  AmountKind kind = kGpu;
  Element value;
};

bool ByKey(const Reading& left, const Reading& right) { return left.key < right.key; }

// The GPU keys of a resource list, ascending, the last of equal keys, nulls left out.
std::vector<Reading> ReadList(Object list, std::string_view where, FieldReader& reader) {
  std::vector<Reading> readings;
  for (const auto field : list) {
    if (!IsQuantityType(field.value)) {
      reader.Fail(fmt::format("expected quantity, found {}, in {} {}", DescribeElement(field.value),
                              where, Quoted(field.key)));
    }
    if (const std::optional<AmountKind> kind = Classify(field.key)) {
      readings.push_back({field.key, *kind, field.value});
    }
  }
  if (readings.size() < 2) {
    if (!readings.empty() && readings[0].value.is_null()) readings.clear();
    return readings;
  }
  std::stable_sort(readings.begin(), readings.end(), ByKey);
  std::vector<Reading> last;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (i + 1 < readings.size() && readings[i + 1].key == readings[i].key) continue;
    if (!readings[i].value.is_null()) last.push_back(readings[i]);
  }
  return last;
}

// The place that names the amount, for error texts; built only when there is an error.
std::string Owner(int container, std::string_view name) {
  return container == kOverhead ? "the pod's overhead" : "container " + Quoted(name);
}

Amount MakeAmount(const Reading& reading, int container, std::string_view name) {
  Amount amount;
  amount.container = container;
  amount.kind = reading.kind;
  amount.key = reading.key;
  const bool bytes = reading.kind == kKoordMemory;
  if (const std::optional<int64_t> value =
          bytes ? MebibyteAmount(reading.value) : WholeAmount(reading.value)) {
    amount.value = *value;
  } else if (bytes) {
    amount.problem = fmt::format(
        "expected whole number of bytes up to {} MiB, found {}, in {} of {}", kMaxAmount,
        Quoted(AmountText(reading.value)), Quoted(reading.key), Owner(container, name));
  } else {
    amount.problem =
        fmt::format("expected whole number from 0 to {}, found {}, in {} of {}", kMaxAmount,
                    Quoted(AmountText(reading.value)), Quoted(reading.key), Owner(container, name));
  }
  return amount;
}

// Limits and requests both name the key: the limit, if they agree.
Amount MakeEqualAmount(const Reading& limit, const Reading& request, int container,
                       std::string_view name) {
  Amount amount = MakeAmount(limit, container, name);
  if (!amount.problem.empty()) return amount;
  Amount asked = MakeAmount(request, container, name);
  if (!asked.problem.empty()) {
    amount.problem = std::move(asked.problem);
  } else if (asked.value != amount.value) {
    amount.problem = fmt::format(
        "expected requests equal to limits, found requests {} and limits {}, in {} of {}",
        Quoted(AmountText(request.value)), Quoted(AmountText(limit.value)), Quoted(limit.key),
        Owner(container, name));
  }
  return amount;
}

}  // namespace

RequestStyle StyleOf(AmountKind kind) { return RowOf(kind).style; }

bool IsPluginKey(AmountKind kind) { return RowOf(kind).plugin; }

void ReadAmounts(Object resources, int container, std::string_view name, FieldReader& reader,
                 std::vector<Amount>& out) {
  const std::optional<Object> limit_list = reader.ReadObject(resources, "limits", "resources");
  const std::optional<Object> request_list = reader.ReadObject(resources, "requests", "resources");
  std::vector<Reading> limits;
  std::vector<Reading> requests;
  if (limit_list) limits = ReadList(*limit_list, "limits", reader);
  if (request_list) requests = ReadList(*request_list, "requests", reader);
  auto limit = limits.begin();
  auto request = requests.begin();
  while (limit != limits.end() || request != requests.end()) {
    if (request == requests.end() || (limit != limits.end() && limit->key < request->key)) {
      out.push_back(MakeAmount(*limit++, container, name));
    } else if (limit == limits.end() || request->key < limit->key) {
      out.push_back(MakeAmount(*request++, container, name));
    } else {
      out.push_back(MakeEqualAmount(*limit++, *request++, container, name));
    }
  }
}

void ReadOverhead(Object overhead, FieldReader& reader, std::vector<Amount>& out) {
  for (const Reading& reading : ReadList(overhead, "spec.overhead", reader)) {
    out.push_back(MakeAmount(reading, kOverhead, ""));
  }
}

namespace {

constexpr std::string_view kMovedKey = PodAnnotations::KeyName(PodKey::kHamiLimits);

Amount MovedProblem(int container, std::string_view expected, std::string_view found) {
  Amount amount;
  amount.container = container;
  amount.kind = kHamiMemory;
  amount.key = kMovedKey;
  amount.problem =
      fmt::format("expected {}, found {}, in annotation {}", expected, found, kMovedKey);
  return amount;
}

// One container's, ascending key; what is wrong with it instead.
std::vector<Amount> ReadMoved(Object amounts, int container, std::string_view name) {
  std::map<std::string_view, Amount> by_key;
  for (const auto field : amounts) {
    const auto row = std::find_if(kKinds.begin(), kKinds.end(), [&field](const KindRow& one) {
      return one.style == RequestStyle::kHami && one.key == field.key;
    });
    if (row == kKinds.end()) {
      return {MovedProblem(container, "keys of HAMi", Quoted(field.key))};
    }
    if (field.value.is_null() || !IsQuantityType(field.value)) {
      return {MovedProblem(container, "a quantity",
                           fmt::format("{} of {}", DescribeElement(field.value), row->key))};
    }
    by_key[row->key] = MakeAmount({row->key, row->kind, field.value}, container, name);
  }
  std::vector<Amount> moved;
  for (auto& [key, amount] : by_key) moved.push_back(std::move(amount));
  return moved;
}

}  // namespace

void AddMovedAmounts(std::string_view text, const std::vector<ContainerInfo>& containers,
                     std::vector<Amount>& out) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(text);
  Object root;
  if (!document.ok() || document->get(root) != simdjson::SUCCESS) {
    out.push_back(MovedProblem(0, "an object of containers and their amounts", Quoted(text)));
    return;
  }
  std::map<std::string_view, int> places;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    places.emplace(containers[i].name, static_cast<int>(i));
  }
  std::map<int, std::vector<Amount>> moved;
  for (const auto field : root) {
    const auto place = places.find(field.key);
    Object amounts;
    if (place == places.end()) {
      out.push_back(MovedProblem(0, "names of the pod's containers", Quoted(field.key)));
      return;
    }
    if (field.value.get(amounts) != simdjson::SUCCESS) {
      out.push_back(MovedProblem(
          place->second, "an object of amounts",
          fmt::format("{} for container {}", DescribeElement(field.value), Quoted(field.key))));
      return;
    }
    moved[place->second] = ReadMoved(amounts, place->second, field.key);
  }
  for (const Amount& amount : out) {
    const auto same = moved.find(amount.container);
    if (same == moved.end()) continue;
    for (Amount& other : same->second) {
      if (other.key != amount.key || !other.problem.empty()) continue;
      other = MovedProblem(amount.container, "amounts that the container's resources leave out",
                           Quoted(amount.key));
    }
  }
  for (auto& [container, amounts] : moved) {
    std::move(amounts.begin(), amounts.end(), std::back_inserter(out));
  }
  std::stable_sort(out.begin(), out.end(), [](const Amount& left, const Amount& right) {
    return std::pair(left.container, left.key) < std::pair(right.container, right.key);
  });
}

std::vector<PoolNeed> EffectiveRequests(const std::vector<Amount>& amounts,
                                        const std::vector<ContainerInfo>& containers) {
  std::vector<const Amount*> by_key;
  for (const Amount& amount : amounts) {
    if (IsPluginKey(amount.kind) && amount.value > 0) by_key.push_back(&amount);
  }
  std::stable_sort(by_key.begin(), by_key.end(),
                   [](const Amount* left, const Amount* right) { return left->key < right->key; });

  std::vector<PoolNeed> needs;
  for (auto first = by_key.begin(); first != by_key.end();) {
    const std::string_view key = (*first)->key;
    int64_t running = 0;  // sidecars started so far, then the app containers too
    int64_t largest = 0;  // while an init container runs
    int64_t overhead = 0;
    // Init containers stand before app containers, so one pass in container order is enough.
    for (; first != by_key.end() && (*first)->key == key; ++first) {
      const Amount& amount = **first;
      if (amount.container == kOverhead) {
        overhead = amount.value;
      } else if (containers[static_cast<std::size_t>(amount.container)].role ==
                 ContainerRole::kInit) {
        largest = std::max(largest, running + amount.value);
      } else {
        running += amount.value;
      }
    }
    needs.push_back({std::string(key), std::max(largest, running) + overhead});
  }
  return needs;
}

namespace {

// Of equal keys the last.
std::optional<int64_t> CpuOf(Object list) {
  std::optional<MilliCpu> cpu;
  for (const auto field : list) {
    if (field.key == "cpu") cpu = CpuAmount(field.value);
  }
  return cpu ? std::optional(cpu->count()) : std::nullopt;
}

std::optional<int64_t> CpuOfResources(Object resources, FieldReader& reader) {
  for (const std::string_view list : {"requests", "limits"}) {
    const std::optional<Object> quantities = reader.ReadObject(resources, list, "resources");
    if (!quantities) continue;
    if (const std::optional<int64_t> cpu = CpuOf(*quantities)) return cpu;
  }
  return std::nullopt;
}

}  // namespace

void CpuSum::AddContainer(Object resources, ContainerRole role, FieldReader& reader) {
  const int64_t cpu = CpuOfResources(resources, reader).value_or(0);
  if (role == ContainerRole::kInit) {
    largest_ = std::max(largest_, running_ + cpu);
  } else {
    running_ += cpu;
  }
}

void CpuSum::AddOverhead(Object overhead) { overhead_ = CpuOf(overhead).value_or(0); }

void CpuSum::SetPod(Object resources, FieldReader& reader) {
  pod_ = CpuOfResources(resources, reader);
}

MilliCpu CpuSum::Total() const {
  return MilliCpu::Of(pod_.value_or(std::max(largest_, running_)) + overhead_);
}

}  // namespace tranche::wire
