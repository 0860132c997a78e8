// A placeholder as a Pod object, both ways: see facts/placeholder.h and ADR 0024.
//
// Its init container is given a card by the kubelet, says which in its termination message and
// ends; the kubelet gives the same card to the container that stays. So a placeholder needs no
// right in the cluster, and only a kubelet can say what it says. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/facts/placeholder.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::wire {

inline constexpr std::string_view kVisibleDevicesKey = "tranche.dev/visible-devices";
inline constexpr std::string_view kVisibleDevicesEnv = "NVIDIA_VISIBLE_DEVICES";

// The pod to be created; `image` has /tranche.
std::string EncodePlaceholder(const PlaceholderOrder& order, std::string_view image);

// nullopt: the pod is no placeholder. Only what lies in the placeholders' namespace under their
// service account and label is one: nobody but us is to write there.
std::optional<PlaceholderFacts> ReadPlaceholder(Object pod);

// The card of NVIDIA_VISIBLE_DEVICES or a termination message: one id of a device, as "GPU-..." or
// an index; empty: `text` names none, or several.
std::string_view OneDevice(std::string_view text);

// The env entry by which a container sees them.
Json VisibleDevicesEnv();
// Is one of that name there, whatever it says?
bool NamesVisibleDevices(Array env);

// Does this container see the devices that a Binding writes? Its env has NVIDIA_VISIBLE_DEVICES
// from the annotation tranche.dev/visible-devices, and nothing else of that name.
bool SeesWrittenDevices(Object container);

}  // namespace tranche::wire
