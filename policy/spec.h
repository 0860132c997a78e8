// What administrators declared, as plain values. Immutable once handed to the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tranche {

enum class Strategy : uint8_t { kFragmentation, kBestFit, kSpread };
enum class Permission : uint8_t { kAllow, kRefuse };
enum class PreemptionActor : uint8_t { kPlanner, kScheduler, kOff };

// How many pods may share one GPU of a model (a GPU model name, or "any").
struct SharingLimit {
  std::string model;
  int max_pods_per_gpu = 0;
};

// GPUPolicy.spec (tranche.dev/v1alpha1), the fields this version acts on.
struct GpuPolicy {
  std::string name = "default";
  Strategy strategy = Strategy::kFragmentation;
  int filter_width = 11;  // 1..64 nodes of a filter answer; 11 is what strict ranks 10..0 can order
  // Fractions on nodes with nothing that enforces them: a packing promise only.
  Permission unenforced_sharing = Permission::kRefuse;
  std::vector<SharingLimit> sharing_limits;
  std::vector<std::string> dialects;  // accepted request dialects; empty: all
  PreemptionActor actor = PreemptionActor::kPlanner;
  int hami_minor = 0;  // agents.hamiVersion "2.x" as x; 0: tell from the register's form
};

inline constexpr int kMaxFilterWidth = 64;

}  // namespace tranche
