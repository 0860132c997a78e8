#include "scheduler/host/edit_trail.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/protocol/spec_changes.h"

namespace tranche {
namespace {

// The same for texts that say the same.
uint64_t DigestOf(std::string_view spec) {
  return std::hash<std::string>()(wire::OrderedJson(spec));
}

}  // namespace

void EditTrail::Reviewed(std::string kind, std::string name, std::string_view spec,
                         std::string_view user) {
  if (spec.size() > kMostSpecBytes) return;
  reviews_.push_back({{std::move(kind), std::move(name)},
                      DigestOf(spec),
                      std::string(wire::CutAt(user, kMostUserBytes))});
  if (reviews_.size() > kMostReviews) reviews_.pop_front();
}

std::string EditTrail::ByWhom(const Key& object, std::string_view spec) {
  if (spec.size() > kMostSpecBytes) return "";
  const uint64_t digest = DigestOf(spec);
  const auto found = std::find_if(reviews_.rbegin(), reviews_.rend(), [&](const Review& review) {
    return review.object == object && review.digest == digest;
  });
  if (found == reviews_.rend() || found->user.empty()) return "";
  const std::string said = fmt::format(", by {} as its review says", found->user);
  reviews_.erase(std::next(found).base());
  return said;
}

std::string EditTrail::Changed(const std::string& kind, const std::string& name,
                               std::string_view object) {
  const Key key(kind, name);
  std::string spec = wire::SpecOf(object);
  const auto [known, is_new] = specs_.try_emplace(key);
  std::string what = "created";
  if (!is_new) {
    what = known->second.empty() ? "its spec" : wire::SpecChanges(known->second, spec);
    if (what.empty()) return "";
  }
  const std::string who = ByWhom(key, spec);
  // What is not kept is told of without its fields the next time.
  known->second = spec.size() > kMostSpecBytes ? "" : std::move(spec);
  return fmt::format("{} {}: {}{}", kind, name, what, who);
}

std::string EditTrail::Gone(const std::string& kind, const std::string& name) {
  if (specs_.erase({kind, name}) == 0) return "";
  return fmt::format("{} {}: deleted{}", kind, name, ByWhom({kind, name}, ""));
}

}  // namespace tranche
