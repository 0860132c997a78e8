// The workshop (scheduler/turns/workshop.h) on a thread of its own, since the driver may take
// seconds or hang: who asks waits for a while and no longer.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/turns/device_id.h"
#include "scheduler/turns/look.h"
#include "scheduler/turns/mig_driver.h"
#include "scheduler/turns/turns.h"

namespace tranche::agent {

class MigWorker {
 public:
  struct Options {
    std::chrono::milliseconds patience{20'000};  // with the driver
    // For Clear, without cards. Called on the worker's thread, which may outlive this.
    std::function<absl::StatusOr<Look>()> look;
  };

  MigWorker(std::unique_ptr<MigDriver> driver, Options options);
  // Waits two seconds for a call of the driver; one that hangs is left alone.
  ~MigWorker();
  MigWorker(const MigWorker&) = delete;
  MigWorker& operator=(const MigWorker&) = delete;

  // As Workshop has it. Error also where the driver takes too long: the place is closed until the
  // driver is done with it.
  absl::StatusOr<std::string> Provide(const Grant& grant, const DeviceId& id);
  // Unavailable where the driver takes too long.
  absl::Status Check(const DeviceId& id);
  // Asks for a round of Workshop::Clear on these cards, and does not wait for it.
  void Clear(std::vector<Card> cards);

  // Disjoint on each card.
  std::map<GpuUuid, std::vector<ClosedPlace>> closed() const;

 private:
  struct State;
  struct Job;

  void Post(std::shared_ptr<Job> job);
  absl::StatusOr<std::string> Await(const std::shared_ptr<Job>& job, const DeviceId& id);
  static void Work(const std::shared_ptr<State>& state);

  const Options options_;
  const std::shared_ptr<State> state_;
};

}  // namespace tranche::agent
