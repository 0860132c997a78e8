// A full cluster in an Engine: teams under departments, some of which use more than they own, and
// pods of all sizes that run.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/profile/profile.h"
#include "scheduler/engine/engine.h"

namespace tranche::bench {

std::string NamespaceOf(int team);

// What a pod asks: half a GPU or whole ones.
PodRequest RequestFor(const std::string& name, int team, int64_t milli);

class Crowd {
 public:
  // Errors: Internal, when the engine does not take a pod where it must fit.
  static absl::StatusOr<std::unique_ptr<Crowd>> Make(const Profile& profile, uint64_t seed);

  Engine& engine() { return engine_; }
  std::span<const std::string_view> node_names() const { return node_views_; }
  // Pods that run; each has a node, devices, and for every second one a checkpoint.
  const std::vector<PodFacts>& running() const { return running_; }
  Instant start() const { return start_; }

 private:
  Crowd();
  void Declare(const Profile& profile);
  absl::Status Fill(const Profile& profile, std::mt19937_64& random);
  absl::Status Run(const PodRequest& request, const std::string& node, std::mt19937_64& random);

  Engine engine_;
  Instant start_;
  std::vector<std::string> nodes_;
  std::vector<std::string_view> node_views_;
  std::vector<PodFacts> running_;
};

}  // namespace tranche::bench
