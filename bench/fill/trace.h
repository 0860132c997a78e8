// The machines and the tasks of the fill benchmarks, read from CSV files of the OpenB form.
//
//   nodes  sn,cpu_milli,memory_mib,gpu,model
//   tasks  cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]   models separated by a bar
//
// Other columns are passed over. Tasks that ask for the same are of one type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench::fill {

inline constexpr int kMaxGpus = 16;  // of a node
inline constexpr int64_t kWhole = 1'000;

struct Machine {
  int64_t cpu = 0;     // milli
  int64_t memory = 0;  // MiB
  int gpus = 0;
  int model = -1;  // position in Fleet::models; -1: no GPU
};

struct Fleet {
  std::vector<Machine> machines;
  std::vector<std::string> models;

  int64_t milli() const;  // of all GPUs
};

using ModelSet = uint64_t;  // bit i: model i
inline constexpr ModelSet kAnyOfThem = ~ModelSet{0};

// Classes of tasks that are counted apart. GPU counts between two of them count to the larger.
enum class Class : uint8_t { kCpuOnly, kSharing, kOne, kTwo, kFour, kEight };
inline constexpr int kClasses = 6;
inline constexpr const char* kClassNames[kClasses] = {"cpuOnly", "sharing", "1", "2", "4", "8"};

struct TaskType {
  int64_t cpu = 0;
  int64_t memory = 0;
  int gpus = 0;
  int64_t milli = 0;  // of each GPU; 0 without GPUs, 1000 where it is more than one
  ModelSet models = kAnyOfThem;

  int64_t total() const { return gpus * milli; }
  bool shares() const { return gpus == 1 && milli < kWhole; }
  Class task_class() const;
  friend bool operator==(const TaskType&, const TaskType&) = default;
};

struct Variant {
  std::string name;  // the file's, without "openb_pod_list_" and extension
  std::string path;
  uint64_t hash = 0;                // FNV-1a, 64 bits, of the file
  std::vector<std::string> models;  // those of the fleet, then others the tasks name
  std::vector<TaskType> types;      // by first appearance
  std::vector<int> tasks;           // their types, in the file's order

  int64_t milli() const;  // of all tasks
};

// Errors: NotFound; InvalidArgument naming file and line, what was expected, what was found.
absl::StatusOr<Fleet> ReadFleet(const std::string& path);
absl::StatusOr<Variant> ReadVariant(const std::string& path, const Fleet& fleet);

}  // namespace tranche::bench::fill
