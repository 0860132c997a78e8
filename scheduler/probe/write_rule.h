// When a reading is worth a write: it says something new, or the last write is so long ago that
// readers would doubt it, or that annotations somebody removed would stay away.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "scheduler/probe/node_reading.h"

namespace tranche::probe {

class WriteRule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kMaxSilence{10};

  bool Due(const NodeReading& reading, Time now) const {
    return !written_ || *written_ != reading || now - written_at_ >= kMaxSilence;
  }
  // After the API server has said yes.
  void Written(NodeReading reading, Time now) {
    written_ = std::move(reading);
    written_at_ = now;
  }

 private:
  std::optional<NodeReading> written_;
  Time written_at_;
};

}  // namespace tranche::probe
