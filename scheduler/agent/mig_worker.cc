#include "scheduler/agent/mig_worker.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/turns/workshop.h"

namespace tranche::agent {
namespace {

constexpr absl::Duration kEnding = absl::Seconds(2);

}  // namespace

// A question to the workshop, shared by the one that waits for its answer, if it still does, and
// the worker.
struct MigWorker::Job {
  std::function<absl::StatusOr<std::string>(Workshop&)> run;
  std::string id;  // of the instance to be provided; empty: none
  bool given_up = false;
  std::optional<absl::StatusOr<std::string>> answer;
};

// Lives as long as the thread does, which a driver that hangs may keep for good.
struct MigWorker::State {
  explicit State(std::unique_ptr<MigDriver> with) : driver(std::move(with)), workshop(*driver) {}

  const std::unique_ptr<MigDriver> driver;
  Workshop workshop;  // of the thread alone
  absl::Mutex mutex;
  std::deque<std::shared_ptr<Job>> jobs ABSL_GUARDED_BY(mutex);
  bool clearing ABSL_GUARDED_BY(mutex) = false;  // a round of Clear is among the jobs
  bool ending ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  std::map<GpuUuid, std::vector<ClosedPlace>> closed ABSL_GUARDED_BY(mutex);
  // By id: what the driver still works at although nobody waits for it any more.
  std::map<std::string, std::string> late ABSL_GUARDED_BY(mutex);
};

MigWorker::MigWorker(std::unique_ptr<MigDriver> driver, Options options)
    : options_(std::move(options)), state_(std::make_shared<State>(std::move(driver))) {
  std::thread([state = state_] { Work(state); }).detach();
}

MigWorker::~MigWorker() {
  const absl::MutexLock lock(&state_->mutex);
  state_->ending = true;
  state_->mutex.AwaitWithTimeout(absl::Condition(&state_->ended), kEnding);
}

void MigWorker::Work(const std::shared_ptr<State>& state) {
  const auto due = [](State* of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(of->mutex) {
    return of->ending || !of->jobs.empty();
  };
  const absl::MutexLock lock(&state->mutex);
  for (;;) {
    state->mutex.Await(absl::Condition(+due, state.get()));
    if (state->ending) break;
    const std::shared_ptr<Job> job = state->jobs.front();
    state->jobs.pop_front();
    if (job->given_up) {
      state->late.erase(job->id);
      continue;
    }
    state->mutex.Unlock();
    auto answer = job->run(state->workshop);
    auto closed = state->workshop.closed();
    state->mutex.Lock();
    state->late.erase(job->id);
    state->closed = std::move(closed);
    job->answer = std::move(answer);
  }
  state->ended = true;
}

void MigWorker::Post(std::shared_ptr<Job> job) {
  const absl::MutexLock lock(&state_->mutex);
  state_->jobs.push_back(std::move(job));
}

absl::StatusOr<std::string> MigWorker::Await(const std::shared_ptr<Job>& job, const DeviceId& id) {
  const auto answered = [](Job* of) { return of->answer.has_value(); };
  const absl::MutexLock lock(&state_->mutex);
  const absl::Time until = absl::Now() + absl::FromChrono(options_.patience);
  if (state_->mutex.AwaitWithDeadline(absl::Condition(+answered, job.get()), until)) {
    return *std::move(job->answer);
  }
  job->given_up = true;
  const std::string why =
      fmt::format("the driver has not answered within {} ms", options_.patience.count());
  if (!job->id.empty()) state_->late[job->id] = why;
  return absl::UnavailableError(fmt::format("MIG instance {}: {}", id.str(), why));
}

absl::StatusOr<std::string> MigWorker::Provide(const Grant& grant, const DeviceId& id) {
  auto job = std::make_shared<Job>();
  job->id = id.str();
  job->run = [grant, id](Workshop& workshop) { return workshop.Provide(grant, id); };
  Post(job);
  return Await(job, id);
}

absl::Status MigWorker::Check(const DeviceId& id) {
  auto job = std::make_shared<Job>();
  job->run = [id](Workshop& workshop) -> absl::StatusOr<std::string> {
    const absl::Status right = workshop.Check(id);
    if (!right.ok()) return right;
    return std::string();
  };
  Post(job);
  return Await(job, id).status();
}

void MigWorker::Clear(std::vector<Card> cards) {
  auto job = std::make_shared<Job>();
  job->run = [state = std::weak_ptr<State>(state_), look = options_.look,
              cards = std::move(cards)](Workshop& workshop) -> absl::StatusOr<std::string> {
    const uint64_t moment = workshop.moment();
    auto seen = look();
    if (seen.ok()) {
      seen->cards = cards;
      workshop.Clear(*seen, moment);
    }
    if (const auto still = state.lock()) {
      const absl::MutexLock lock(&still->mutex);
      still->clearing = false;
    }
    return std::string();
  };
  const absl::MutexLock lock(&state_->mutex);
  if (std::exchange(state_->clearing, true)) return;
  state_->jobs.push_back(std::move(job));
}

std::map<GpuUuid, std::vector<ClosedPlace>> MigWorker::closed() const {
  const absl::MutexLock lock(&state_->mutex);
  auto closed = state_->closed;
  for (const auto& [text, why] : state_->late) {
    const DeviceId id = ParseDeviceId(text);
    std::vector<ClosedPlace>& places = closed[id.gpu];
    std::erase_if(places, [&](const ClosedPlace& other) {
      return Overlap({id.gpu, other.place}, id);
    });
    places.push_back({*id.place, why});
  }
  return closed;
}

}  // namespace tranche::agent
