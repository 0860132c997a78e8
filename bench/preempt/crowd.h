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
#include "scheduler/engine/engine.h"

namespace tranche::bench {

struct CrowdOptions {
  int nodes = 500;
  int gpus_per_node = 8;
  int pods = 4'000;  // running; they fill every GPU
  uint64_t seed = 42;
};

// How a team uses what it owns: of every four teams one borrows, two use what is theirs, and one
// leaves most of it to others.
enum class TeamKind : uint8_t { kBorrower, kOwner, kAway };

inline constexpr int kDepartments = 4;
inline constexpr int kTeams = 20;
TeamKind KindOf(int team);
std::string NamespaceOf(int team);

// What a pod asks: half a GPU or whole ones.
PodRequest RequestFor(const std::string& name, int team, int64_t milli);

class Crowd {
 public:
  // Errors: Internal, when the engine does not take a pod where it must fit.
  static absl::StatusOr<std::unique_ptr<Crowd>> Make(const CrowdOptions& options);

  Engine& engine() { return engine_; }
  std::span<const std::string_view> node_names() const { return node_views_; }
  // Pods that run; each has a node, devices, and for every second one a checkpoint.
  const std::vector<PodFacts>& running() const { return running_; }
  Instant start() const { return start_; }

 private:
  Crowd();
  void Declare(const CrowdOptions& options);
  absl::Status Fill(const CrowdOptions& options);
  absl::Status Run(const PodRequest& request, const std::string& node, std::mt19937_64& random);

  Engine engine_;
  Instant start_;
  std::vector<std::string> nodes_;
  std::vector<std::string_view> node_views_;
  std::vector<PodFacts> running_;
};

}  // namespace tranche::bench
