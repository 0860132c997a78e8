// What is kept of an object so that the past can be lived through again: what decides where its
// pods go, in the object's own form, so that its reader reads it again.
//
// Pure functions. Cost: O(object). An object whose kept text would be longer than kMostPastText is
// not kept (""): whoever may make pods could fill the ledger's disk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "scheduler/wire/json/json.h"

namespace tranche::wire {

inline constexpr std::size_t kMostPastText = 16'384;
// Of objects that only administrators write.
inline constexpr std::size_t kMostPastObject = 262'144;

// Of a pod neither name and uid nor times, so that pods of one template have one text.
std::string PastPodText(Element pod);
// Of a node no times and no news of its agent's pulse.
std::string PastNodeText(Element node);
// Of a policy object no status. "": not JSON, or too long.
std::string PastPolicyText(std::string_view json);

}  // namespace tranche::wire
