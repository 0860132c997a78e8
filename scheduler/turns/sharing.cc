#include "scheduler/turns/sharing.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche::agent {
namespace {

// What the container's record names of the GPU, or what it was given before that was changed.
Part PartOf(const GivenParts& given, const BoundPod& pod, const std::string& container,
            const GpuUuid& gpu) {
  Part own{gpu, {}, {}};
  if (const ContainerDevices* const record = EntryOf(pod, container); record != nullptr) {
    for (const Device& device : record->devices) {
      if (device.uuid != gpu || device.mig) continue;
      own.compute += device.milli;
      own.memory += device.memory;
    }
  }
  const auto found = given.find({pod.uid, container});
  if (found == given.end()) return own;
  for (const Part& part : found->second) {
    if (part.gpu != gpu) continue;
    own.compute = std::max(own.compute, part.compute);
    own.memory = std::max(own.memory, part.memory);
  }
  return own;
}

// The most of a GPU that the pod's containers have that run at a time.
Part MostOf(const GivenParts& given, const BoundPod& pod, const GpuUuid& gpu) {
  Part together{gpu, {}, {}};
  Part most{gpu, {}, {}};
  for (const Asking& asking : pod.asking) {
    const Part own = PartOf(given, pod, asking.name, gpu);
    if (!asking.init) {
      together.compute += own.compute;
      together.memory += own.memory;
    }
    most.compute = std::max({most.compute, own.compute, together.compute});
    most.memory = std::max({most.memory, own.memory, together.memory});
  }
  return most;
}

bool Names(const BoundPod& pod, const GpuUuid& gpu) {
  return pod.record &&
         std::ranges::any_of(pod.record->containers, [&](const ContainerDevices& container) {
           return std::ranges::any_of(container.devices,
                                      [&](const Device& device) { return device.uuid == gpu; });
         });
}

bool HoldsSomeOf(const Holding& holding, const GpuUuid& gpu) {
  return std::ranges::any_of(holding.ids,
                             [&](const std::string& id) { return ParseDeviceId(id).gpu == gpu; });
}

// The pod whose container holds some of the GPU by the kubelet's book and by no record; nullptr:
// there is none. Of two pods of one name the kubelet says no more than the name.
const KubeletPod* Unrecorded(const Look& look, const BoundPod& pod, const GpuUuid& gpu) {
  for (const KubeletPod& known : look.kubelet) {
    const auto holds = [&](const Holding& holding) { return HoldsSomeOf(holding, gpu); };
    if (std::ranges::none_of(known.holdings, holds) && std::ranges::none_of(known.others, holds)) {
      continue;
    }
    const bool two = std::ranges::count(look.kubelet, known.name, &KubeletPod::name) > 1;
    const bool recorded = std::ranges::any_of(
        *look.pods, [&](const BoundPod& one) { return one.name == known.name && Names(one, gpu); });
    if (!recorded || (two && known.name == pod.name)) return &known;
  }
  return nullptr;
}

}  // namespace

const ContainerDevices* EntryOf(const BoundPod& pod, const std::string& container) {
  if (!pod.record) return nullptr;
  const auto at =
      std::ranges::find(pod.record->containers, container, &ContainerDevices::container);
  return at == pod.record->containers.end() ? nullptr : &*at;
}

const Card* SharedCard(const Look& look, const GpuUuid& gpu) {
  const auto card = std::ranges::find(look.cards, gpu, &Card::uuid);
  return card == look.cards.end() || card->slots == 0 ? nullptr : &*card;
}

std::vector<Part> PartsOf(const Look& look, const BoundPod& pod, const std::string& container) {
  std::vector<Part> parts;
  const ContainerDevices* const record = EntryOf(pod, container);
  if (record == nullptr) return parts;
  for (const Device& device : record->devices) {
    if (device.mig || SharedCard(look, device.uuid) == nullptr) continue;
    parts.push_back({device.uuid, device.milli, device.memory});
  }
  return parts;
}

std::string WhyNoPart(const Look& look, const GivenParts& given, const BoundPod& pod,
                      const Card& card) {
  Part sum{card.uuid, {}, {}};
  for (const BoundPod& one : *look.pods) {
    const Part most = MostOf(given, one, card.uuid);
    sum.compute += most.compute;
    sum.memory += most.memory;
  }
  if (sum.compute > kWholeGpu || sum.memory > Mebibytes::Of(card.mib)) {
    return fmt::format(
        "expected records and running containers to have 1000 thousandths and {} MiB of it at "
        "most, "
        "found {} thousandths and {} MiB",
        card.mib, sum.compute.count(), sum.memory.count());
  }
  if (const KubeletPod* const other = Unrecorded(look, pod, card.uuid); other != nullptr) {
    return fmt::format("pod {} holds a part of it that no record names", other->name.str());
  }
  return "";
}

std::vector<std::string> WithoutSlots(const std::vector<std::string>& ids) {
  std::vector<std::string> named;
  for (const std::string& text : ids) {
    const DeviceId id = ParseDeviceId(text);
    named.push_back(id.slot ? id.gpu.str() : text);
  }
  std::ranges::sort(named);
  return named;
}

std::vector<std::string> ChoiceFor(const Look& look, const std::vector<DeviceId>& devices,
                                   const Offer& offer) {
  std::vector<std::string> chosen = offer.keep;
  std::vector<std::string> kept = WithoutSlots(offer.keep);  // those that stand for no device yet
  std::vector<std::string> wanted;
  for (const DeviceId& device : devices) wanted.push_back(device.str());
  std::ranges::sort(wanted);
  for (const std::string& device : wanted) {
    if (const auto at = std::ranges::find(kept, device); at != kept.end()) {
      kept.erase(at);
      continue;
    }
    if (static_cast<int64_t>(chosen.size()) == offer.size) break;
    const DeviceId id = ParseDeviceId(device);
    if (id.place || SharedCard(look, id.gpu) == nullptr) {
      chosen.push_back(device);
      continue;
    }
    const auto slot = std::ranges::find_if(offer.available, [&](const std::string& text) {
      const DeviceId one = ParseDeviceId(text);
      return one.slot && one.gpu == id.gpu && std::ranges::count(chosen, text) == 0;
    });
    if (slot != offer.available.end()) chosen.push_back(*slot);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace tranche::agent
