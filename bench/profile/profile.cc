#include "bench/profile/profile.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace tranche::bench {
namespace {

using Reader = std::function<void(const YAML::Node&)>;
using Fields = std::vector<std::pair<std::string_view, Reader>>;

void ReadFields(const YAML::Node& node, const Fields& fields) {
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    const auto field = std::ranges::find(fields, key, &Fields::value_type::first);
    if (field == fields.end()) {
      throw YAML::RepresentationException(entry.first.Mark(), "unknown field " + key);
    }
    field->second(entry.second);
  }
}

template <typename Value>
Reader To(Value& value) {
  return [&value](const YAML::Node& node) { value = node.as<Value>(); };
}

Reader To(ProfileAmount& amount) {
  return [&amount](const YAML::Node& node) {
    ReadFields(node, {{"percent", To(amount.percent)}, {"gpus", To(amount.gpus)}});
  };
}

Reader To(ProfileTeam& team) {
  return [&team](const YAML::Node& node) {
    ReadFields(node, {{"name", To(team.name)},
                      {"share", To(team.share)},
                      {"nominal", To(team.nominal)},
                      {"borrow", To(team.borrow)}});
  };
}

Reader To(ProfileClass& of) {
  return [&of](const YAML::Node& node) {
    ReadFields(node, {{"name", To(of.name)},
                      {"share", To(of.share)},
                      {"rank", To(of.rank)},
                      {"preemptible", To(of.preemptible)},
                      {"chargeFactor", To(of.charge_factor)}});
  };
}

Reader To(ProfilePod& pod) {
  return [&pod](const YAML::Node& node) {
    ReadFields(node, {{"name", To(pod.name)},
                      {"share", To(pod.share)},
                      {"team", To(pod.team)},
                      {"milli", To(pod.milli)},
                      {"selector", To(pod.selector)}});
  };
}

template <typename Row>
Reader ToRows(std::vector<Row>& rows) {
  return [&rows](const YAML::Node& list) {
    for (const auto& node : list) To(rows.emplace_back())(node);
  };
}

void ReadAll(const YAML::Node& node, Profile& profile) {
  ReadFields(node, {{"nodes", To(profile.nodes)},
                    {"gpusPerNode", To(profile.gpus_per_node)},
                    {"product", To(profile.product)},
                    {"memoryMiB", To(profile.memory_mib)},
                    {"fill", To(profile.fill)},
                    {"pods", To(profile.pods)},
                    {"podsPerNode", To(profile.pods_per_node)},
                    {"namespaces", To(profile.namespaces)},
                    {"waiting", ToRows(profile.waiting)},
                    {"classes", ToRows(profile.classes)},
                    {"departments", To(profile.departments)},
                    {"teams", To(profile.teams)},
                    {"kinds", ToRows(profile.kinds)},
                    {"last", To(profile.last)},
                    {"budget", To(profile.budget)}});
}

}  // namespace

const ProfileTeam& Profile::KindOf(int team) const {
  return kinds[static_cast<std::size_t>(team) % kinds.size()];
}

absl::StatusOr<Profile> ReadProfile(const ProfileOptions& options) {
  Profile profile;
  try {
    ReadAll(YAML::LoadFile(options.file), profile);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", options.file, error.what()));
  }
  profile.nodes = options.nodes.value_or(profile.nodes);
  profile.gpus_per_node = options.gpus_per_node.value_or(profile.gpus_per_node);
  profile.fill = options.fill.value_or(profile.fill);
  profile.pods = options.pods.value_or(profile.pods);
  profile.pods_per_node = options.pods_per_node.value_or(profile.pods_per_node);
  if (profile.waiting.empty() || (profile.teams > 0 && profile.kinds.empty())) {
    return absl::InvalidArgumentError(options.file +
                                      ": expected waiting pods, and kinds of teams, found none");
  }
  return profile;
}

}  // namespace tranche::bench
