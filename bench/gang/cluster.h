// The cluster of the gang benchmark: nodes of 8 GPUs in a tree of zones, blocks and racks, some of
// whose GPUs are taken by other pods for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/gangs/gang_plan.h"

namespace tranche::bench {

inline constexpr int kGangGpus = 8;  // of a node

struct GangTree {
  int zones = 4;
  int blocks = 8;  // of a zone
  int racks = 8;   // of a block
  int nodes = 2;   // of a rack

  int Nodes() const { return zones * blocks * racks * nodes; }
  // Of one domain: a rack, a block, a zone.
  int NodesOf(GangLevel level) const;
};

// The pods beside the gangs, and what their members ask for.
struct GangScene {
  enum class Others : uint8_t { kNone, kRandom, kPacked };
  std::string name;
  Others others = Others::kNone;
  int gpus = kGangGpus;  // of a member
};
// "random-4": other pods on GPUs drawn at random, 4 GPUs a member. "packed-8": they fill nodes
// drawn at random, one after the other. "empty-8": there are none.
absl::StatusOr<GangScene> ParseGangScene(const std::string& text);

// Members of one kind, each so many GPUs of one node.
class GangCluster : public GangRoom {
 public:
  // `share` of all GPUs is taken by others, as the scene says.
  GangCluster(const GangTree& tree, const GangScene& scene, double share, uint64_t seed);

  int Seats(std::size_t node, int kind, int most) override;
  void Take(std::size_t node, int kind, int count) override;
  void Reset() override { left_ = free_; }

  // GPUs of a node after what was taken in the trial.
  int left(std::size_t node) const { return left_[node]; }
  int gpus() const { return gpus_; }
  std::size_t size() const { return free_.size(); }
  // Domains by rack, block, zone; costs: a fuller node goes first.
  const std::vector<GangNode>& nodes();

  // One member on each of these, nodes may be named twice. Stops the program where there is no
  // room.
  void Start(const std::vector<std::size_t>& members);
  void End(const std::vector<std::size_t>& members);

  // Free seats, by domain of the level, most first.
  std::vector<int> SeatsBy(GangLevel level) const;

 private:
  std::vector<GangNode> nodes_;
  std::vector<int> free_;
  std::vector<int> left_;
  const int gpus_;
};

}  // namespace tranche::bench
