#include "scheduler/dra/charge.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "scheduler/dra/capacity.h"
#include "topology/base/check.h"
#include "topology/base/int128.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"
#include "topology/vgpu.h"

namespace tranche::dra {
namespace {

constexpr Charge kWhole{kQuantaPerGpu, kQuantaPerGpu};
constexpr int64_t kMebibyte = 1024 * 1024;
constexpr std::string_view kUnknownModel = "unknown";
constexpr std::string_view kMemorySlices = "memory-slice-";
constexpr std::string_view kProcessors = "multiprocessors";

using Charges = std::map<std::string, Charge>;

Charge Plus(const Charge& left, const Charge& right) {
  return {left.compute + right.compute, left.memory + right.memory};
}
Charge Larger(const Charge& left, const Charge& right) {
  return {std::max(left.compute, right.compute), std::max(left.memory, right.memory)};
}

std::vector<ModelCharge> AsList(const Charges& charges) {
  std::vector<ModelCharge> list;
  for (const auto& [model, charge] : charges) {
    if (charge != Charge{}) list.push_back({model, charge});
  }
  return list;
}

// The label GFD would write: NVML's name with '-' for blanks.
std::string ProductLabel(const Device& device) {
  std::string label(GpuText(device, "productName"));
  std::ranges::replace(label, ' ', '-');
  return label;
}

Mebibytes MemoryOf(const Device& device) {
  const Capacity* memory = FindCapacity(device, kGpuDriver, "memory");
  return Mebibytes::Of(memory == nullptr ? 0 : memory->value.whole() / kMebibyte);
}

// The part of the whole, rounded up; at most all of it.
int64_t Part(int64_t part, int64_t whole) {
  if (whole <= 0 || part >= whole) return kQuantaPerGpu;
  return MulDivCeil(kQuantaPerGpu, std::max<int64_t>(part, 0), whole);
}

enum class CounterName : uint8_t { kEqual, kPrefix };

int64_t Sum(const CounterSet& set, std::string_view name, CounterName match) {
  Quantity sum;
  for (const Counter& counter : set.counters) {
    const bool counts =
        match == CounterName::kPrefix ? counter.name.starts_with(name) : counter.name == name;
    if (counts) sum = sum + counter.value;
  }
  return sum.milli();
}

// By what it takes of its GPU's counters; nullopt: they do not say.
std::optional<Charge> OfCounters(const DeviceTable::Entry& entry) {
  if (entry.counters == nullptr) return std::nullopt;
  for (const CounterSet& use : entry.device->consumes) {
    const auto found = std::ranges::find_if(
        *entry.counters, [&use](const CounterSet* set) { return set->name == use.name; });
    if (found == entry.counters->end()) continue;
    const int64_t slices = Sum(**found, kMemorySlices, CounterName::kPrefix);
    const int64_t processors = Sum(**found, kProcessors, CounterName::kEqual);
    if (slices <= 0 || processors <= 0) continue;
    return Charge{Part(Sum(use, kProcessors, CounterName::kEqual), processors),
                  Part(Sum(use, kMemorySlices, CounterName::kPrefix), slices)};
  }
  return std::nullopt;
}

// The catalogue is exact; processors are not split evenly on every board.
Charge OfMig(const DeviceTable::Entry& entry) {
  const std::string profile(GpuText(*entry.device, "profile"));
  const MigBoard* board =
      FindMigBoard(ProductLabel(*entry.device) + "-MIG-" + profile, MemoryOf(*entry.device));
  const MigProfile* known = board == nullptr ? nullptr : FindMigProfile(*board, profile);
  if (known != nullptr) return ChargeOfMig(*board, *known);
  return OfCounters(entry).value_or(kWhole);
}

Charge OfWholeDevice(const DeviceTable::Entry& entry) {
  if (GpuText(*entry.device, "type") == "mig") return OfMig(entry);
  const std::optional<VgpuType> vgpu = VgpuTypeOf(ProductLabel(*entry.device));
  return vgpu ? ChargeOfPart(kWhole, vgpu->part) : kWhole;
}

// What is consumed of the driver's own capacity; nullopt: not said.
std::optional<Quantity> Consumed(const AllocatedDevice& held, std::string_view name) {
  for (const CapacityAmount& consumed : held.consumed) {
    if (consumed.name.domain == kGpuDriver && consumed.name.name == name) return consumed.amount;
  }
  return std::nullopt;
}

// A part of what the device costs; the larger of what its shares and its memory come to.
Charge OfShare(const AllocatedDevice& held, const DeviceTable::Entry& entry) {
  const Charge device = OfWholeDevice(entry);
  int64_t part = 0;
  const std::optional<Quantity> shares = Consumed(held, "shares");
  const Capacity* all_shares = FindCapacity(*entry.device, kGpuDriver, "shares");
  if (shares && all_shares != nullptr) {
    part = Part(shares->milli(), all_shares->value.milli());
  }
  if (const std::optional<Quantity> memory = Consumed(held, "memory")) {
    const int64_t mib = (memory->whole() + kMebibyte - 1) / kMebibyte;
    const Mebibytes card = MemoryOf(*entry.device);
    if (mib > 0) part = std::max(part, ChargeOfMemory(Mebibytes::Of(mib), card).memory);
  }
  if (part == 0) return device;
  const auto of = [part](int64_t whole) { return MulDivCeil(whole, part, kQuantaPerGpu); };
  return {of(device.compute), of(device.memory)};
}

// The most that one device of the node costs a choice, by model. With `all` their sum.
class ChoiceCharge {
 public:
  ChoiceCharge(const NodeBooks& books, Selectors& selectors, const RequestChoice& choice)
      : books_(books), selectors_(selectors), choice_(choice) {}

  Charges Run() {
    if (choice_.admin || selectors_.FindClass(choice_.device_class) == nullptr) return {};
    for (const DeviceBook& book : books_.devices) {
      const Pool& pool = books_.pools[static_cast<std::size_t>(book.pool)];
      if (pool.driver != kGpuDriver) continue;
      const Match match = selectors_.Matches(choice_, *book.device, pool.driver).match;
      if (match == Match::kNo || match == Match::kError) continue;
      Add(book, pool);
    }
    if (choice_.all) return std::move(charges_);
    const int64_t count = std::min<int64_t>(choice_.count, static_cast<int64_t>(kMostResults));
    for (auto& [model, charge] : charges_) {
      charge = {charge.compute * count, charge.memory * count};
    }
    return std::move(charges_);
  }

 private:
  void Add(const DeviceBook& book, const Pool& pool) {
    AllocatedDevice held;
    held.id = IdOf(books_, book);
    held.shared = book.device->shareable;
    if (held.shared) {
      const auto consumed = ConsumedOf(*book.device, pool.driver, choice_.capacity);
      if (!consumed) return;  // never allocated to this choice
      for (std::size_t i = 0; i < consumed->size(); ++i) {
        held.consumed.push_back({book.device->capacities[i].name, (*consumed)[i]});
      }
    }
    const ModelCharge one = ChargeOfDevice(held, {book.device, &pool.counters});
    Charge& charge = charges_[one.model];
    charge = choice_.all ? Plus(charge, one.charge) : Larger(charge, one.charge);
  }

  const NodeBooks& books_;
  Selectors& selectors_;
  const RequestChoice& choice_;
  Charges charges_;
};

}  // namespace

DeviceTable::DeviceTable(std::span<const Slice* const> slices) {
  for (const Slice* slice : slices) {
    PoolEntry& pool = pools_[{slice->driver, slice->pool}];
    if (slice->generation < pool.generation) {
      for (const Device& device : slice->devices) pool.older.emplace(device.name, &device);
      continue;
    }
    if (slice->generation > pool.generation) {
      pool.devices.merge(pool.older);
      pool = {slice->generation, {}, {}, std::move(pool.devices)};
    }
    for (const CounterSet& set : slice->counters) pool.counters.push_back(&set);
    for (const Device& device : slice->devices) pool.devices.emplace(device.name, &device);
  }
}

DeviceTable::Entry DeviceTable::Find(const DeviceId& id) const {
  const auto pool = pools_.find({id.driver, id.pool});
  if (pool == pools_.end()) return {};
  const auto device = pool->second.devices.find(id.device);
  if (device != pool->second.devices.end()) return {device->second, &pool->second.counters};
  const auto older = pool->second.older.find(id.device);
  if (older == pool->second.older.end()) return {};
  return {older->second, nullptr};
}

ModelCharge ChargeOfDevice(const AllocatedDevice& held, const DeviceTable::Entry& entry) {
  if (entry.device == nullptr) return {std::string(kUnknownModel), kWhole};
  const std::string label = ProductLabel(*entry.device);
  return {label.empty() ? std::string(kUnknownModel) : GpuModelName(label),
          held.shared ? OfShare(held, entry) : OfWholeDevice(entry)};
}

std::vector<ModelCharge> ChargeOfAllocation(const Claim& claim, const DeviceTable& table) {
  TRANCHE_CHECK(claim.allocation.has_value());
  Charges charges;
  for (const AllocatedDevice& held : claim.allocation->devices) {
    if (held.admin || held.id.driver != kGpuDriver) continue;
    const ModelCharge one = ChargeOfDevice(held, table.Find(held.id));
    Charge& charge = charges[one.model];
    charge = Plus(charge, one.charge);
  }
  return AsList(charges);
}

std::vector<ModelCharge> ChargeAtMost(const Claim& claim, const NodeBooks& books,
                                      Selectors& selectors) {
  Charges charges;
  for (const Request& request : claim.requests) {
    Charges most;
    for (const RequestChoice& choice : request.choices) {
      for (const auto& [model, charge] : ChoiceCharge(books, selectors, choice).Run()) {
        most[model] = Larger(most[model], charge);
      }
    }
    for (const auto& [model, charge] : most) charges[model] = Plus(charges[model], charge);
  }
  return AsList(charges);
}

}  // namespace tranche::dra
