// The fleet of a benchmark, the teams that share it and the pods that wait, as a file of
// bench/profiles declares them.
//
// Plain values. A benchmark reads what it needs of them; the comments of its file say what that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench {

// A part of some amount of GPUs, and GPUs on top.
struct ProfileAmount {
  int64_t percent = 0;
  int64_t gpus = 0;

  int64_t Of(int64_t whole) const { return whole * percent / 100 + gpus; }  // rounded down
};

struct ProfileTeam {
  std::string name;
  int share = 1;  // of the pods that run
  ProfileAmount nominal;
  ProfileAmount borrow;
};

struct ProfileClass {
  std::string name;
  int share = 1;  // of the pods
  int rank = 0;
  std::string preemptible;
  std::string charge_factor;
};

struct ProfilePod {
  std::string name;
  int share = 1;         // of the pods
  std::string team;      // the kind of team it is of
  int64_t milli = 0;     // of GPUs
  std::string selector;  // CEL, of devices
};

// The row that the draw falls on, by share. Requires: a share above 0.
template <typename Row>
const Row& ByShare(const std::vector<Row>& rows, uint64_t draw) {
  uint64_t sum = 0;
  for (const Row& row : rows) sum += static_cast<uint64_t>(row.share);
  uint64_t at = draw % sum;
  auto row = rows.begin();
  while (at >= static_cast<uint64_t>(row->share)) at -= static_cast<uint64_t>((row++)->share);
  return *row;
}

struct Profile {
  int nodes = 1;
  int gpus_per_node = 8;
  std::string product;
  int64_t memory_mib = 0;  // of a GPU
  double fill = 0;         // share of all GPUs in use
  int pods = 0;            // that run
  int pods_per_node = 1;
  int namespaces = 1;
  std::vector<ProfilePod> waiting;
  std::vector<ProfileClass> classes;
  int departments = 1;
  int teams = 0;
  std::vector<ProfileTeam> kinds;  // of teams, in turn
  ProfileTeam last;                // the kind of the last team
  ProfileAmount budget;

  const ProfileTeam& KindOf(int team) const;
};

// The file, and what the command line says instead of it.
struct ProfileOptions {
  std::string file;
  std::optional<int> nodes;
  std::optional<int> gpus_per_node;
  std::optional<double> fill;
  std::optional<int> pods;
  std::optional<int> pods_per_node;
};

// Errors: InvalidArgument, naming file and line, for what is no such file, has fields unknown here
// or lacks pods that wait, or kinds of its teams.
absl::StatusOr<Profile> ReadProfile(const ProfileOptions& options);

}  // namespace tranche::bench
