// A pod that somebody measures: it runs on two whole cards of node n1.
#pragma once

#include "test/builders/cluster.h"

namespace tranche::test {

inline PodFacts MeasuredPod(Instant running_at) {
  const PodRequest request = WholePod("p", 2);
  ContainerDevices held{request.containers.at(0).name, {}};
  for (const int card : {0, 1}) {
    Device device;
    device.card = card;
    device.milli = kWholeGpu;
    device.memory = Mebibytes::Of(kH100Mib);
    held.devices.push_back(device);
  }
  Allocation allocation;
  allocation.containers.push_back(held);
  PodFacts pod = Bound(request, "n1", allocation);
  pod.running_at = running_at;
  return pod;
}

}  // namespace tranche::test
