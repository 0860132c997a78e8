// How many GPUs of each model to keep whole, to cut by MIG and into what, and to time-slice, for
// the demand that was recorded.
//
// Work is put where its class prefers it: pods of whole cards need whole cards; small pods whose
// class lists MIG before time-slicing get instances (smallest profile that holds their compute and
// memory), others replicas. Pure. Cost: a search over instance counts for each kind and model, tens
// of milliseconds for a large fleet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/repartition.h"

namespace tranche {

struct SplitPart {
  enum class Use : uint8_t { kWhole, kMig, kTimeSliced };
  Use use = Use::kWhole;
  int64_t gpus = 0;
  Geometry geometry;     // kMig
  int64_t replicas = 1;  // kTimeSliced: of each GPU
  std::string serves;    // "20 x 1g.10gb (inference)", for people
};
struct SplitModel {
  std::string model;
  int64_t gpus = 0;  // there are
  int64_t whole_now = 0, mig_now = 0, shared_now = 0;
  std::vector<SplitPart> parts;       // sum of gpus is at most `gpus`
  int64_t spare = 0;                  // not needed by the recorded demand: left whole
  std::vector<std::string> short_of;  // demand that does not fit, "6 x 1 GPU (training)"
};
struct SplitAdvice {
  std::vector<SplitModel> models;  // by name
  std::string basis;               // what demand it rests on: span, peak or mean
  std::vector<std::string> notes;
};

// Replicas of a time-sliced GPU where kinds say no share.
inline constexpr int64_t kDefaultReplicas = 10;

SplitAdvice AdviseSplit(const AdviceCase& fleet);

}  // namespace tranche
