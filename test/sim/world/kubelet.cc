#include "test/sim/world/kubelet.h"

#include <algorithm>
#include <utility>

#include "test/sim/world/hami_node.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kMigPrefix = "nvidia.com/mig-";
constexpr int64_t kMilliCard = 1000;
constexpr SimTime kStartBackoff = seconds(10);  // after a container that could not be started

std::string NoteOf(const Stored& pod, const char* key) {
  const Json& metadata = pod.object().at("metadata");
  const auto notes = metadata.find("annotations");
  return notes == metadata.end() ? std::string() : notes->value(key, std::string());
}

Json ContainerStatuses(const Json& pod, const Json& state, bool is_ready) {
  Json list = Json::array();
  for (const Json& container : pod.at("spec").at("containers")) {
    list.push_back({{"name", container.at("name")}, {"ready", is_ready}, {"state", state}});
  }
  return list;
}

Json Conditions(const char* ready, const std::string& when) {
  return Json::array(
      {{{"type", "Ready"}, {"status", ready}, {"lastTransitionTime", when}},
       {{"type", "ContainersReady"}, {"status", ready}, {"lastTransitionTime", when}}});
}

}  // namespace

Kubelet::Kubelet(Loop& loop, History& history, ApiServer& api, Machine machine,
                 KubeletOptions options, uint64_t seed)
    : loop_(loop),
      history_(history),
      api_(api),
      machine_(std::move(machine)),
      options_(options),
      draws_(seed),
      actor_(loop.NewActor("kubelet/" + machine_.name)),
      prepared_(history, api.store(), machine_) {
  if (machine_.kind == NodeKind::kAgent) agent_.emplace(api.store(), machine_, seed);
}

StoredPtr Kubelet::Now(const std::string& uid) const {
  const auto run = runs_.find(uid);
  if (run == runs_.end()) return nullptr;
  const StoredPtr pod = api_.store().Find("pods", run->second.key);
  return pod != nullptr && pod->uid() == uid ? pod : nullptr;
}

Write Kubelet::WriteOf(const std::string& key, const char* method) const {
  Write write{loop_.NameOf(actor_), method, {FindResource("pods")}, ""};
  const std::size_t slash = key.find('/');
  write.path.ns = key.substr(0, slash);
  write.path.name = key.substr(slash + 1);
  return write;
}

void Kubelet::Hear(const Change& change) {
  const PodView pod(change.object);
  const auto found = runs_.find(pod.uid);
  if (change.type == Change::Type::kDeleted) {
    if (found == runs_.end()) return;
    // Removed by force: its containers still run until the kubelet has ended them.
    if (found->second.stage == Stage::kOver) {
      runs_.erase(found);
    } else if (!found->second.ending) {
      Leave(pod.uid, SimTime{0});
    }
    return;
  }
  if (found == runs_.end()) {
    if (pod.terminal()) return;
    runs_[pod.uid].key = pod.key;
    // Of another machine of this name: there is nothing of it to end.
    if (pod.deleting) return Leave(pod.uid, SimTime{0});
    loop_.After(SimTime(draws_.Between(20'000, options_.most_admission.count())), actor_,
                [this, uid = pod.uid] { Admit(uid); });
    return;
  }
  if (pod.deleting && !found->second.ending && found->second.stage != Stage::kOver) {
    const Json& metadata = change.object->object().at("metadata");
    Leave(pod.uid, seconds(metadata.value("deletionGracePeriodSeconds", kDefaultGraceSeconds)));
  }
}

void Kubelet::Admit(const std::string& uid) {
  const auto found = runs_.find(uid);
  if (found == runs_.end() || found->second.ending || found->second.stage != Stage::kWaiting) {
    return;
  }
  const StoredPtr now = Now(uid);
  if (now == nullptr) return Kill(uid);
  const PodView pod(now);
  Run& run = found->second;
  std::string problem;
  std::optional<Json> devices = Allocate(pod, run, problem);
  if (!devices) return Refuse(uid, problem);
  if (!devices->empty()) {
    run.granted = true;
    Granted(uid, run, std::move(*devices));
  }
  run.stage = Stage::kStarting;
  loop_.After(SimTime(draws_.Between(50'000, options_.most_pull.count())), actor_,
              [this, uid] { Started(uid); });
}

void Kubelet::Refuse(const std::string& uid, const std::string& problem) {
  Run& run = runs_.at(uid);
  run.stage = Stage::kOver;
  Release(uid, run);
  PatchStatus(uid, run,
              {{"phase", "Failed"}, {"reason", "UnexpectedAdmissionError"}, {"message", problem}});
  runs_.erase(uid);
}

std::optional<Json> Kubelet::Allocate(const PodView& pod, Run& run, std::string& problem) {
  const auto gpus = pod.requests.find(kGpu);
  const int64_t count = gpus == pod.requests.end() ? 0 : gpus->second;
  if (machine_.kind == NodeKind::kHami) {
    return count > 0 ? AllocateHami(pod, problem) : std::optional<Json>(Json::array());
  }
  if (agent_) return agent_->Admit(pod, problem);
  std::optional<Json> devices = AllocateCards(count, run, problem);
  if (!devices) return devices;
  if (machine_.kind == NodeKind::kDra) return devices;
  std::optional<Json> instances = AllocateInstances(pod, run, problem);
  if (!instances) return instances;
  for (Json& one : *instances) devices->push_back(std::move(one));
  return devices;
}

std::optional<Json> Kubelet::AllocateCards(int64_t count, Run& run, std::string& problem) {
  Json devices = Json::array();
  if (count == 0) return devices;
  std::vector<int> free;
  for (int card = 0; card < static_cast<int>(machine_.cards.size()); ++card) {
    const bool held = std::any_of(runs_.begin(), runs_.end(), [card](const auto& entry) {
      const std::vector<int>& cards = entry.second.cards;
      return std::find(cards.begin(), cards.end(), card) != cards.end();
    });
    if (!held && machine_.kind == NodeKind::kStock) free.push_back(card);
  }
  if (static_cast<int64_t>(free.size()) < count) {
    problem = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu";
    return std::nullopt;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(draws_.Below(static_cast<int64_t>(free.size())));
    const int card = free[at];
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(at));
    run.cards.push_back(card);
    devices.push_back({{"uuid", machine_.cards[static_cast<std::size_t>(card)]},
                       {"index", card},
                       {"milli", kMilliCard},
                       {"mib", machine_.mib}});
  }
  return devices;
}

std::optional<Json> Kubelet::AllocateInstances(const PodView& pod, Run& run, std::string& problem) {
  Json devices = Json::array();
  for (const auto& [resource, units] : pod.requests) {
    if (!resource.starts_with(kMigPrefix)) continue;
    const std::string profile = resource.substr(std::string(kMigPrefix).size());
    int64_t left = units;
    for (int i = 0; i < static_cast<int>(machine_.instances.size()) && left > 0; ++i) {
      const MigInstance& instance = machine_.instances[static_cast<std::size_t>(i)];
      const bool held = std::any_of(runs_.begin(), runs_.end(), [i](const auto& entry) {
        const std::vector<int>& held_here = entry.second.instances;
        return std::find(held_here.begin(), held_here.end(), i) != held_here.end();
      });
      if (held || instance.profile != profile) continue;
      --left;
      run.instances.push_back(i);
      devices.push_back(
          {{"uuid", machine_.cards[static_cast<std::size_t>(instance.card)]},
           {"index", instance.card},
           {"milli", 0},
           {"mib", instance.mib},
           {"mig", {{"profile", profile}, {"start", instance.start}, {"size", instance.size}}}});
    }
    if (left > 0) {
      problem = "Allocate failed due to requested number of devices unavailable for " + resource;
      return std::nullopt;
    }
  }
  return devices;
}

std::optional<Json> Kubelet::AllocateHami(const PodView& pod, std::string& problem) {
  HamiGrant grant = AskHamiAgent(api_.store(), machine_, options_.hami_minor, pod);
  const std::string agent = "agent/" + machine_.name;
  for (const auto& [key, notes] : grant.pods) {
    Write write = WriteOf(key, "PATCH");
    write.who = agent;
    write.content_type = "application/merge-patch+json";
    write.body = {{"metadata", {{"annotations", notes}}}};
    api_.Do(actor_, std::move(write));
  }
  if (!grant.node.is_null()) {
    Write write{agent, "PATCH", {FindResource("nodes")}, "application/merge-patch+json"};
    write.path.name = machine_.name;
    write.body = {{"metadata", {{"annotations", grant.node}}}};
    api_.Do(actor_, std::move(write));
  }
  if (!grant.problem.empty()) {
    problem = "Allocate failed due to rpc error: " + grant.problem;
    return std::nullopt;
  }
  return std::move(grant.devices);
}

void Kubelet::Started(const std::string& uid) {
  const auto found = runs_.find(uid);
  if (found == runs_.end() || found->second.ending) return;
  Run& run = found->second;
  const StoredPtr pod = Now(uid);
  if (pod == nullptr) return Kill(uid);
  if (!prepared_.Prepare(*pod)) {
    loop_.After(seconds(2), actor_, [this, uid] { Started(uid); });
    return;
  }
  std::string problem;
  if (agent_ && !agent_->MayStart(PodView(pod), problem)) {
    loop_.After(kStartBackoff, actor_, [this, uid] { Started(uid); });
    return;
  }
  run.stage = Stage::kRunning;
  run.started = loop_.now();
  const std::string when = TimeText(loop_.now());
  // A pod has been taken up once, however often its containers start anew (the kubelet's status
  // manager keeps status.startTime).
  const Json status = pod->object().value("status", Json::object());
  const std::string taken_up = status.value("startTime", when);
  PatchStatus(uid, run,
              {{"phase", "Running"},
               {"startTime", taken_up},
               {"conditions", Conditions("True", when)},
               {"containerStatuses",
                ContainerStatuses(pod->object(), {{"running", {{"startedAt", when}}}}, true)}});
  FinishAfter(*pod);
}

void Kubelet::FinishAfter(const Stored& pod) {
  const std::string runtime = NoteOf(pod, kRuntimeKey);
  const bool fails = !NoteOf(pod, kFailsKey).empty();
  if (runtime.empty()) return;  // it runs until it is deleted
  loop_.After(milliseconds(std::strtoll(runtime.c_str(), nullptr, 10)), actor_,
              [this, uid = std::string(pod.uid()), fails] {
                const auto run_now = runs_.find(uid);
                if (run_now == runs_.end() || run_now->second.ending) return;
                Finish(uid, fails ? "Failed" : "Succeeded", fails ? "Error" : "Completed");
              });
}

void Kubelet::Adopt(const Stored& pod, Json devices) {
  const std::string uid(pod.uid());
  Run& run = runs_[uid];
  run.key = pod.key();
  run.stage = Stage::kRunning;
  run.started = loop_.now();
  run.granted = true;
  Granted(uid, run, std::move(devices));
  FinishAfter(pod);
}

void Kubelet::Granted(const std::string& uid, const Run& run, Json devices) {
  Happening granted{Happening::Kind::kGranted};
  granted.who = loop_.NameOf(actor_);
  granted.resource = "pods";
  granted.key = run.key;
  granted.text = uid;
  granted.after = {{"node", machine_.name}, {"devices", std::move(devices)}};
  history_.Add(std::move(granted));
}

void Kubelet::Finish(const std::string& uid, const char* phase, const char* reason) {
  Run& run = runs_.at(uid);
  const bool ran = std::exchange(run.stage, Stage::kOver) == Stage::kRunning;
  Release(uid, run);
  prepared_.Unprepare(uid);
  const StoredPtr pod = Now(uid);
  if (pod == nullptr || IsTerminal(pod->object())) return;
  const std::string when = TimeText(loop_.now());
  const Json state = {{"terminated",
                       {{"exitCode", std::string_view(phase) == "Succeeded" ? 0 : 1},
                        {"reason", reason},
                        {"startedAt", TimeText(run.started)},
                        {"finishedAt", when}}}};
  Json status = {{"phase", phase}, {"conditions", Conditions("False", when)}};
  if (ran) {
    status["containerStatuses"] = ContainerStatuses(pod->object(), state, false);
  }
  PatchStatus(uid, run, std::move(status));
}

void Kubelet::Leave(const std::string& uid, SimTime grace) {
  Run& run = runs_.at(uid);
  run.ending = true;
  // Most containers end soon after they were asked to; those whose first process is a shell do not
  // hear of it, and use all their time.
  const SimTime longest = std::max(grace, SimTime(milliseconds(100)));
  const SimTime soon = std::min(longest, SimTime(milliseconds(draws_.Between(50, 3'000))));
  loop_.After(draws_.Chance(4'000) ? longest : soon, actor_, [this, uid] { Kill(uid); });
}

void Kubelet::Kill(const std::string& uid) {
  const auto found = runs_.find(uid);
  if (found == runs_.end()) return;
  Finish(uid, "Failed", "Error");
  if (Now(uid) == nullptr) {
    runs_.erase(found);
    return;
  }
  Write write = WriteOf(found->second.key, "DELETE");
  write.body = {{"kind", "DeleteOptions"},
                {"apiVersion", "v1"},
                {"gracePeriodSeconds", 0},
                {"preconditions", {{"uid", uid}}}};
  // After the status, which has to be seen first.
  loop_.After(milliseconds(10), actor_,
              [this, write = std::move(write)]() mutable { api_.Do(actor_, std::move(write)); });
}

void Kubelet::Release(const std::string& uid, Run& run) {
  if (agent_) agent_->End(uid);
  run.cards.clear();
  run.instances.clear();
  if (!std::exchange(run.granted, false)) return;
  Happening released{Happening::Kind::kReleased};
  released.who = loop_.NameOf(actor_);
  released.resource = "pods";
  released.key = run.key;
  history_.Add(std::move(released));
}

void Kubelet::PatchStatus(const std::string& uid, const Run& run, Json status,
                          std::function<void(const Answer&)> done) {
  Write write = WriteOf(run.key, "PATCH");
  write.path.subresource = "status";
  write.content_type = "application/strategic-merge-patch+json";
  write.body = {{"metadata", {{"uid", uid}}}, {"status", std::move(status)}};
  api_.Do(actor_, std::move(write), std::move(done));
}

void Kubelet::Vanish() {
  loop_.End(actor_);
  for (auto& [uid, run] : runs_) {
    Release(uid, run);
    prepared_.Unprepare(uid);
  }
  runs_.clear();
}

}  // namespace tranche::sim
