#include "scheduler/dra/sharing.h"

#include <fmt/format.h>

namespace tranche::dra {
namespace {

std::string TargetName(Sharing::Target target) {
  return target == Sharing::Target::kMig ? "a MIG instance" : "a GPU";
}

std::string DescribeTimeSlicing(const Sharing& sharing) {
  // The driver takes the setting and does nothing with it.
  if (sharing.target == Sharing::Target::kMig) {
    return "time-slicing has no effect on a MIG instance: the containers of the claim share it "
           "anyway";
  }
  const bool named = !sharing.interval.empty() && sharing.interval != "Default";
  return fmt::format("time-slicing: the containers of the claim take turns on a GPU{}",
                     named ? fmt::format(", with {} time slices", sharing.interval) : "");
}

std::string DescribeMps(const Sharing& sharing) {
  std::string limits;
  if (sharing.thread_percent) limits = fmt::format("{}% of the threads", *sharing.thread_percent);
  if (sharing.pinned_memory) {
    limits +=
        fmt::format("{}{} MiB", limits.empty() ? "" : " and ", sharing.pinned_memory->count());
  }
  std::string text = limits.empty()
                         ? fmt::format("MPS: the processes of the claim share {} without limits",
                                       TargetName(sharing.target))
                         : fmt::format("MPS: each process gets at most {} of {}", limits,
                                       TargetName(sharing.target));
  for (const auto& [device, memory] : sharing.pinned_memory_of) {
    text += fmt::format("; on device {} {} MiB", device, memory.count());
  }
  if (sharing.multi_user) text += "; processes of several users may share";
  return text;
}

}  // namespace

std::string Describe(const Sharing& sharing) {
  if (sharing.target == Sharing::Target::kVfio) return "passed through to a virtual machine";
  switch (sharing.strategy) {
    case Sharing::Strategy::kTimeSlicing:
      return DescribeTimeSlicing(sharing);
    case Sharing::Strategy::kMps:
      return DescribeMps(sharing);
    case Sharing::Strategy::kNone:
      break;
  }
  return "the containers of the claim share " + TargetName(sharing.target);
}

}  // namespace tranche::dra
