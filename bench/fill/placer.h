// A policy under test: says where the task that arrives goes.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "topology/base/units.h"

namespace tranche::bench::fill {

struct Arrival {
  int64_t serial = 0;
  int type = 0;  // position in Variant::types
  Instant when;
};

class Placer {
 public:
  virtual ~Placer() = default;

  // nullopt: nowhere, and the task is gone for good. `books` are as they are before the placement;
  // the caller checks it and takes it up.
  virtual absl::StatusOr<std::optional<Placement>> Place(const Books& books,
                                                         const Arrival& arrival) = 0;
  // A task that was placed has ended.
  virtual absl::Status Leave(const Arrival& task, Instant now) = 0;
  // How often it looked for nodes so far, several times for a task where it looks at some of them;
  // 0: not counted.
  virtual int64_t looks() const { return 0; }
};

}  // namespace tranche::bench::fill
