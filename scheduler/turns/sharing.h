// GPUs that several containers use at a time, each a part: what records allow, and slots.
//
// The kubelet counts slots, so that each container of the node is one of its devices; the parts are
// in the records alone. Pure; any thread. Cost: linear in the pods looked at.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/turns/device_id.h"
#include "scheduler/turns/look.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche::agent {

// What the kubelet would take devices from.
struct Offer {
  std::vector<std::string> available;  // what is to be kept included
  std::vector<std::string> keep;       // ids that must be among those chosen
  int64_t size = 0;
};

// A part of a GPU. A container that has it is not to use more.
struct Part {
  GpuUuid gpu;
  MilliGpu compute;  // none: no limit
  Mebibytes memory;
  friend bool operator==(const Part&, const Part&) = default;
};

// What containers were given so far, whatever their records say by now.
using GivenParts = std::map<std::pair<PodUid, std::string>, std::vector<Part>>;

// The record's entry of a container; null: it has none.
const ContainerDevices* EntryOf(const BoundPod& pod, const std::string& container);

// null: the node has no such GPU, or it is given whole.
const Card* SharedCard(const Look& look, const GpuUuid& gpu);
// What the container's record names of GPUs that are shared.
std::vector<Part> PartsOf(const Look& look, const BoundPod& pod, const std::string& container);
// Why the pod cannot have its part of the card; empty: it can. Of a container's record and what it
// was given the larger counts. Requires: look.pods.
std::string WhyNoPart(const Look& look, const GivenParts& given, const BoundPod& pod,
                      const Card& card);
// For ids that name slots the GPUs they are on, others as they are; ascending.
std::vector<std::string> WithoutSlots(const std::vector<std::string>& ids);
// The ids that the kubelet is to choose, ascending. It keeps some; each device of the record that
// none of those stands for adds itself, or the first free slot on its GPU. Fewer than the offer's
// size where it has none.
std::vector<std::string> ChoiceFor(const Look& look, const std::vector<DeviceId>& devices,
                                   const Offer& offer);

}  // namespace tranche::agent
