#include "scheduler/wire/pods/pod_times.h"

namespace tranche::wire {
namespace {

std::optional<Instant> ReadTime(Object parent, std::string_view key, std::string_view where,
                                FieldReader& reader) {
  const std::optional<Instant> time = ParseTime(reader.ReadText(parent, key, where));
  return time && *time > Instant{} ? time : std::nullopt;
}

void KeepEarlier(std::optional<Instant>& kept, std::optional<Instant> time) {
  if (time && (!kept || *time < *kept)) kept = time;
}

void KeepLater(std::optional<Instant>& kept, std::optional<Instant> time) {
  if (time && (!kept || *time > *kept)) kept = time;
}

// What the containers of a pod have done so far.
struct Lives {
  std::optional<Instant> began;  // the earliest start of an app container
  std::optional<Instant> ended;  // the latest end of any
  bool running = false;
  bool waiting = false;  // not started yet, or to be started again
  bool app = false;      // an app container is among them
};

// One state of a container, now or the time before: running, waiting or terminated.
enum class When { kNow, kBefore };
void ReadState(Object state, bool init, When when, FieldReader& reader, Lives& lives) {
  const bool current = when == When::kNow;
  if (const auto running = reader.ReadObject(state, "running", "state")) {
    if (!init) KeepEarlier(lives.began, ReadTime(*running, "startedAt", "state.running", reader));
    lives.running = lives.running || current;
  } else if (const auto ended = reader.ReadObject(state, "terminated", "state")) {
    if (!init) KeepEarlier(lives.began, ReadTime(*ended, "startedAt", "state.terminated", reader));
    KeepLater(lives.ended, ReadTime(*ended, "finishedAt", "state.terminated", reader));
  } else {
    lives.waiting = lives.waiting || current;
  }
}

void ReadContainerStatuses(Object status, std::string_view list, FieldReader& reader,
                           Lives& lives) {
  const bool init = list == "initContainerStatuses";
  for (const Object container : reader.Objects(reader.ReadArray(status, list, "status"), list)) {
    lives.app = lives.app || !init;
    if (const auto state = reader.ReadObject(container, "state", list)) {
      ReadState(*state, init, When::kNow, reader, lives);
    } else {
      lives.waiting = true;
    }
    if (const auto state = reader.ReadObject(container, "lastState", list)) {
      ReadState(*state, init, When::kBefore, reader, lives);
    }
  }
}

constexpr std::string_view kConditions = "status.conditions";

std::optional<Object> FindCondition(Object status, std::string_view type, FieldReader& reader) {
  std::optional<Object> found;
  for (const Object condition :
       reader.Objects(reader.ReadArray(status, "conditions", "status"), kConditions)) {
    if (reader.ReadText(condition, "type", kConditions) == type) found = condition;
  }
  return found;
}

bool IsTrue(const std::optional<Object>& condition, FieldReader& reader) {
  return condition && reader.ReadText(*condition, "status", kConditions) == "True";
}

std::optional<Instant> ReadBound(Object status, FieldReader& reader) {
  const std::optional<Object> condition = FindCondition(status, "PodScheduled", reader);
  if (!IsTrue(condition, reader)) return std::nullopt;
  return ReadTime(*condition, "lastTransitionTime", kConditions, reader);
}

}  // namespace

void ReadPodTimes(Object status, FieldReader& reader, PodFacts& pod) {
  pod.bound_at = ReadBound(status, reader);
  pod.disrupted = IsTrue(FindCondition(status, "DisruptionTarget", reader), reader);
  pod.started_at = ReadTime(status, "startTime", "status", reader);
  Lives lives;
  ReadContainerStatuses(status, "initContainerStatuses", reader, lives);
  ReadContainerStatuses(status, "containerStatuses", reader, lives);
  pod.running_at = lives.began;
  // In a pod that is over, a container that waits will never start.
  const bool over = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  const bool all_ended = lives.app && !lives.running && !lives.waiting;
  if (all_ended || (over && !lives.running)) pod.finished_at = lives.ended;
}

void ReadUnschedulable(Object status, FieldReader& reader, PodFacts& pod) {
  const std::optional<Object> condition = FindCondition(status, "PodScheduled", reader);
  pod.unschedulable = condition && reader.ReadText(*condition, "status", kConditions) == "False" &&
                      reader.ReadText(*condition, "reason", kConditions) == "Unschedulable";
  if (!pod.unschedulable) return;
  pod.scheduler_says = CutAt(reader.ReadText(*condition, "message", kConditions), kLongestSaying);
}

}  // namespace tranche::wire
