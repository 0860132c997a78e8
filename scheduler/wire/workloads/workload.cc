#include "scheduler/wire/workloads/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/text_fields.h"

namespace tranche::wire {
namespace {

constexpr int64_t kMostPods = 10'000;  // as of a gang
constexpr IntegerRange kCounts = {0, kMostPods};

// One object; the steps of its kind fill what its controller makes of it.
class WorkloadReader {
 public:
  absl::StatusOr<Workload> Read(Element object, std::string_view kind);

  void ReadJob() { AddJob("", spec_, 1); }
  void ReadReplicas() { Add("", Count(spec_, "replicas", 1), spec_); }
  void ReadJobSet();
  void ReadPyTorchJob() { ReadTraining("pytorchReplicaSpecs", {"Master", "Worker"}); }
  void ReadMpiJob();
  void ReadRayCluster() { ReadRay(spec_); }
  void ReadRayJob();

 private:
  int64_t Count(Object parent, std::string_view key, int64_t otherwise) {
    return reader_.ReadInteger(parent, key, "spec", kCounts).value_or(otherwise);
  }
  // `owner` has the template.
  void Add(std::string_view name, int64_t count, Object owner);
  void AddJob(std::string_view name, Object job, int64_t replicas);
  void ReadTraining(std::string_view specs, std::array<std::string_view, 2> roles);
  void ReadRay(Object cluster);
  int64_t Total() const;

  FieldReader reader_;
  Object spec_;
  Workload found_;
};

struct Kind {
  std::string_view name;
  std::string_view gang;  // the word before the name of the gang its pods are; empty: none
  void (WorkloadReader::*read)();
};
constexpr std::array kKinds = {
    Kind{"Job", "", &WorkloadReader::ReadJob},
    Kind{"Deployment", "", &WorkloadReader::ReadReplicas},
    Kind{"ReplicaSet", "", &WorkloadReader::ReadReplicas},
    Kind{"StatefulSet", "", &WorkloadReader::ReadReplicas},
    Kind{"JobSet", "jobset/", &WorkloadReader::ReadJobSet},
    Kind{"PyTorchJob", "training/", &WorkloadReader::ReadPyTorchJob},
    Kind{"MPIJob", "training/", &WorkloadReader::ReadMpiJob},
    Kind{"RayCluster", "ray/", &WorkloadReader::ReadRayCluster},
    Kind{"RayJob", "ray/", &WorkloadReader::ReadRayJob},
};

const Kind* FindKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &Kind::name);
  return found == kKinds.end() ? nullptr : found;
}

void WorkloadReader::Add(std::string_view name, int64_t count, Object owner) {
  found_.sets.push_back({std::string(name), count, reader_.ReadObject(owner, "template", "spec")});
}

// A Job runs as many pods at once as it has work for.
void WorkloadReader::AddJob(std::string_view name, Object job, int64_t replicas) {
  const int64_t parallel = Count(job, "parallelism", 1);
  Add(name, replicas * std::min(parallel, Count(job, "completions", parallel)), job);
}

int64_t WorkloadReader::Total() const {
  int64_t total = 0;
  for (const PodSet& set : found_.sets) total += set.count;
  return total;
}

void WorkloadReader::ReadJobSet() {
  constexpr std::string_view kJobs = "replicatedJobs";
  bool staged = false;
  for (const Object job : reader_.Objects(reader_.ReadArray(spec_, kJobs, "spec"), kJobs)) {
    const std::optional<Array> after = reader_.ReadArray(job, "dependsOn", kJobs);
    staged |= after && after->size() > 0;
    const std::optional<Object> made = reader_.ReadObject(job, "template", kJobs);
    const std::optional<Object> spec =
        made ? reader_.ReadObject(*made, "spec", kJobs) : std::nullopt;
    if (spec) AddJob(reader_.ReadText(job, "name", kJobs), *spec, Count(job, "replicas", 1));
  }
  if (const auto startup = reader_.ReadObject(spec_, "startupPolicy", "spec")) {
    staged |= reader_.ReadText(*startup, "startupPolicyOrder", "spec.startupPolicy") == "InOrder";
  }
  // Jobs that wait for others have no pods until those run: nobody may wait for all of them.
  found_.together = staged ? 0 : Total();
}

void WorkloadReader::ReadTraining(std::string_view specs, std::array<std::string_view, 2> roles) {
  const std::optional<Object> replicas = reader_.ReadObject(spec_, specs, "spec");
  for (const std::string_view role : roles) {
    const auto set = replicas ? reader_.ReadObject(*replicas, role, specs) : std::nullopt;
    if (!set) continue;
    std::string name(role);
    name.front() = static_cast<char>(name.front() - 'A' + 'a');
    Add(name, Count(*set, "replicas", 1), *set);
  }
  found_.together = Total();
  if (const auto elastic = reader_.ReadObject(spec_, "elasticPolicy", "spec")) {
    const int64_t workers = found_.sets.empty() ? 0 : found_.sets.back().count;
    found_.together -= workers - std::min(workers, Count(*elastic, "minReplicas", workers));
  }
  const auto run = reader_.ReadObject(spec_, "runPolicy", "spec");
  const auto policy =
      run ? reader_.ReadObject(*run, "schedulingPolicy", "spec.runPolicy") : std::nullopt;
  if (policy) found_.together = Count(*policy, "minAvailable", found_.together);
}

void WorkloadReader::ReadMpiJob() {
  ReadTraining("mpiReplicaSpecs", {"Launcher", "Worker"});
  const bool later =
      reader_.ReadText(spec_, "launcherCreationPolicy", "spec") == "WaitForWorkersReady";
  if (!later) return;
  // The workers would wait for a launcher that waits for them.
  int64_t workers = 0;
  for (const PodSet& set : found_.sets) workers += set.name == "worker" ? set.count : 0;
  found_.together = std::min(found_.together, workers);
}

void WorkloadReader::ReadRay(Object cluster) {
  constexpr std::string_view kGroups = "workerGroupSpecs";
  if (const auto head = reader_.ReadObject(cluster, "headGroupSpec", "spec")) {
    Add("head", 1, *head);
  }
  found_.together = Total();
  const bool scales = reader_.ReadBool(cluster, "enableInTreeAutoscaling", "spec").value_or(false);
  for (const Object group : reader_.Objects(reader_.ReadArray(cluster, kGroups, "spec"), kGroups)) {
    if (reader_.ReadBool(group, "suspend", kGroups).value_or(false)) continue;
    const int64_t least = Count(group, "minReplicas", 0);
    const int64_t most =
        reader_.ReadInteger(group, "maxReplicas", kGroups, {0, std::numeric_limits<int32_t>::max()})
            .value_or(std::numeric_limits<int32_t>::max());
    const int64_t wanted = std::min(std::max(Count(group, "replicas", least), least), most);
    const int64_t hosts = Count(group, "numOfHosts", 1);
    Add(reader_.ReadText(group, "groupName", kGroups), wanted * hosts, group);
    // Its autoscaler asks for the others when there is work for them.
    found_.together += (scales ? least : wanted) * hosts;
  }
}

void WorkloadReader::ReadRayJob() {
  if (const auto cluster = reader_.ReadObject(spec_, "rayClusterSpec", "spec")) ReadRay(*cluster);
}

absl::StatusOr<Workload> WorkloadReader::Read(Element object, std::string_view kind) {
  const std::optional<Object> root = reader_.AsObject(object, "object");
  if (!root) return reader_.status();
  if (const auto metadata = reader_.ReadObject(*root, "metadata", "object")) {
    found_.ns = reader_.ReadText(*metadata, "namespace", "metadata");
    found_.name = reader_.ReadText(*metadata, "name", "metadata");
  }
  if (found_.name.empty()) reader_.Fail("expected a name, found none, in metadata.name");
  found_.gang = GangOfOwner(kind, found_.name);
  if (const auto spec = reader_.ReadObject(*root, "spec", "object")) {
    spec_ = *spec;
    (this->*FindKind(kind)->read)();
  }
  if (const int64_t total = Total(); total > kMostPods) {
    reader_.Fail(fmt::format("expected at most {} pods, found {}, in spec", kMostPods, total));
  }
  if (!reader_.ok()) return reader_.status();
  return std::move(found_);
}

}  // namespace

std::string WorkloadKinds() {
  std::string text;
  for (const Kind& kind : kKinds) text += fmt::format("{}{}", text.empty() ? "" : ", ", kind.name);
  return text;
}

bool IsWorkload(std::string_view kind) { return FindKind(kind) != nullptr; }

absl::StatusOr<Workload> ReadWorkload(Element object, std::string_view kind) {
  return WorkloadReader().Read(object, kind);
}

std::string GangOfOwner(std::string_view kind, std::string_view name) {
  const Kind* const found = FindKind(kind);
  if (found == nullptr || found->gang.empty()) return "";
  return fmt::format("{}{}", found->gang, name);
}

}  // namespace tranche::wire
