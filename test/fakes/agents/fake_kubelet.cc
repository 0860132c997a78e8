#include "test/fakes/agents/fake_kubelet.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tranche::fakes {
namespace {

constexpr int64_t kNever = int64_t{1} << 60;

// What is used of a card. An init container gives back what it had before the app containers run,
// so a pod holds the larger of its largest init container and its app containers' sum.
struct CardUse {
  int64_t memory_mib = 0;
  int64_t cores = 0;
  int users = 0;
  void Add(const Grant& grant) {
    memory_mib += grant.memory_mib;
    cores += grant.cores;
    ++users;
  }
  void Raise(const CardUse& other) {
    memory_mib = std::max(memory_mib, other.memory_mib);
    cores = std::max(cores, other.cores);
    users = std::max(users, other.users);
  }
};

}  // namespace

KubeletReport& KubeletReport::operator+=(const KubeletReport& other) {
  served += other.served;
  wrong_pod += other.wrong_pod;
  admission_errors += other.admission_errors;
  start_errors += other.start_errors;
  overcommits += other.overcommits;
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
  return *this;
}

FakeKubelet::FakeKubelet(FakePods& pods, NodeAgent& agent, std::string node, KubeletOptions options)
    : pods_(pods), agent_(agent), node_(std::move(node)), options_(options), random_(options.seed) {
  if (const std::optional<FakeNode> here = pods_.Node(node_)) {
    for (const auto& [resource, amount] : here->capacity) {
      for (int64_t i = 0; i < amount; ++i) {
        ids_[resource][node_ + "/" + resource + "/" + std::to_string(i)] = false;
      }
    }
  }
  pods_.Watch([this](const FakePod& pod, bool gone) { Hear(pod, gone); });
}

int64_t FakeKubelet::Random(int64_t most) {
  return most <= 0 ? 0 : static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1));
}

bool FakeKubelet::OneIn(int n) { return n > 0 && Random(n - 1) == 0; }

void FakeKubelet::Hear(const FakePod& pod, bool gone) {
  if (pod.node != node_) return;
  if (gone || pod.ended()) {
    Release(pod.uid);
    return;
  }
  const auto [found, added] = pods_here_.try_emplace(pod.uid);
  found->second.pod = pod;
  if (added) found->second.due = now_ + Random(options_.most_notice_ms);
}

void FakeKubelet::Step(int64_t now_ms) {
  now_ = std::max(now_, now_ms);
  if (options_.restart_one_in > 0 && Random(options_.restart_one_in - 1) == 0) Restart();
  std::string first;
  std::vector<std::string> deleting;
  std::vector<std::string> due;
  for (const auto& [uid, held] : pods_here_) {
    if (held.pod.deleting) {
      deleting.push_back(uid);
    } else if (held.due > now_) {
      continue;
    } else if (held.stage != Stage::kWaiting) {
      due.push_back(uid);
    } else if (first.empty() || held.due < pods_here_.at(first).due) {
      first = uid;
    }
  }
  for (const std::string& uid : deleting) pods_.Delete(uid);
  for (const std::string& uid : due) {
    const auto found = pods_here_.find(uid);
    if (found == pods_here_.end()) continue;
    if (found->second.stage == Stage::kStarting) {
      Start(found->second);
    } else {
      pods_.SetPhase(uid, FakePhase::kSucceeded);
    }
  }
  if (const auto found = pods_here_.find(first); found != pods_here_.end()) Admit(found->second);
}

void FakeKubelet::Restart() {
  constexpr int64_t kLongAgo = int64_t{1} << 60;
  for (auto& [uid, held] : pods_here_) {
    // All at once, the oldest pods first.
    if (held.stage == Stage::kWaiting) held.due = held.pod.created - kLongAgo;
  }
}

void FakeKubelet::Admit(Held& held) {
  const std::string uid = held.pod.uid;
  const std::vector<FakeContainer> containers = held.pod.containers;
  if (held.pod.lasts && OneIn(options_.lasting_refused_one_in)) {
    pods_.SetPhase(uid, FakePhase::kFailed, "UnexpectedAdmissionError");
    return;
  }
  for (const FakeContainer& container : containers) {
    for (const std::string& resource : agent_.resources()) {
      if (container.Limit(resource) == 0) continue;
      if (AllocateFor(held, container, resource)) continue;
      pods_.SetPhase(uid, FakePhase::kFailed, "UnexpectedAdmissionError");
      return;
    }
  }
  held.stage = Stage::kStarting;
  held.due = now_ + Random(options_.most_start_ms);
  if (!held.pod.lasts) return;
  held.due += Random(options_.lasting_start_ms);
  if (OneIn(options_.lasting_dead_one_in)) held.due = kNever;
}

bool FakeKubelet::TakeIds(Held& held, const FakeContainer& container, const std::string& resource,
                          std::vector<std::string>& ids) {
  const auto wanted = static_cast<std::size_t>(container.Limit(resource));
  // What an init container of the pod had is offered again to the app containers.
  for (const Devices& earlier : held.devices) {
    const bool of_init = std::any_of(
        held.pod.containers.begin(), held.pod.containers.end(),
        [&earlier](const FakeContainer& c) { return c.init && c.name == earlier.container; });
    if (!of_init || container.init || earlier.resource != resource) continue;
    for (const std::string& id : earlier.ids) {
      const bool again =
          std::none_of(held.devices.begin(), held.devices.end(), [&](const Devices& other) {
            return &other != &earlier &&
                   std::find(other.ids.begin(), other.ids.end(), id) != other.ids.end();
          });
      if (again && ids.size() < wanted) ids.push_back(id);
    }
  }
  std::vector<std::string> free;
  for (const auto& [id, used] : ids_[resource]) {
    if (!used) free.push_back(id);
  }
  if (options_.any_ids) std::shuffle(free.begin(), free.end(), random_);
  for (const std::string& id : free) {
    if (ids.size() == wanted) break;
    ids_[resource][id] = true;
    ids.push_back(id);
  }
  held.devices.push_back({container.name, resource, ids});
  return ids.size() == wanted;
}

bool FakeKubelet::AllocateFor(Held& held, const FakeContainer& container,
                              const std::string& resource) {
  std::vector<std::string> ids;
  if (!TakeIds(held, container, resource, ids)) {
    Fault(report_.admission_errors, held.pod.name + ": too few of " + resource);
    return false;
  }
  const Service service = agent_.Allocate({node_, resource, ids});
  if (!service.error.empty()) {
    Fault(report_.admission_errors, held.pod.name + " refused: " + service.error);
    return false;
  }
  Note(held, container.name, service);
  return true;
}

void FakeKubelet::Note(Held& held, const std::string& container, const Service& service) {
  const ContainerId truth{held.pod.uid, container};
  if (!service.believed.uid.empty() && !(service.believed == truth)) {
    held.right = false;
    Fault(report_.wrong_pod, held.pod.name + "/" + container + " got what was meant for " +
                                 service.believed.uid + "/" + service.believed.container);
  }
  std::vector<Grant>& grants = held.grants[container];
  if (!held.pod.lasts) {
    grants.insert(grants.end(), service.grants.begin(), service.grants.end());
  }
  const auto visible = service.env.find("NVIDIA_VISIBLE_DEVICES");
  if (visible != service.env.end() && held.visible.empty()) held.visible = visible->second;
  if (visible != service.env.end() && visible->second.starts_with("no-gpu-has-")) {
    held.poison = visible->second;
  }
  if (!service.grants.empty()) CheckCards(held.pod.name);
}

void FakeKubelet::Start(Held& held) {
  const std::string uid = held.pod.uid;
  const std::vector<FakeContainer> containers = held.pod.containers;
  std::string problem = held.poison;
  for (const FakeContainer& container : containers) {
    if (problem.empty()) problem = StartContainer(held, container);
  }
  if (!problem.empty()) {
    Fault(report_.start_errors, held.pod.name + " did not start: " + problem);
    pods_.SetPhase(uid, FakePhase::kFailed, "StartError");
    return;
  }
  held.stage = Stage::kRunning;
  if (held.pod.lasts) {
    held.due = kNever;
    const std::string visible = held.visible;
    pods_.SetTold(uid, visible);
    pods_.SetPhase(uid, FakePhase::kRunning);
    return;
  }
  if (held.right) ++report_.served;
  held.due = now_ + options_.least_run_ms + Random(options_.most_run_ms - options_.least_run_ms);
  pods_.SetPhase(uid, FakePhase::kRunning);
}

std::string FakeKubelet::StartContainer(Held& held, const FakeContainer& container) {
  const ContainerId owner{held.pod.uid, container.name};
  const std::vector<Devices> all = held.devices;
  for (const Devices& devices : all) {
    if (devices.container != container.name) continue;
    const Service service = agent_.PreStart({node_, devices.resource, devices.ids}, owner);
    if (!service.error.empty()) return service.error;
    Note(held, container.name, service);
  }
  const Service hooked = agent_.Hook(node_, owner);
  if (!hooked.error.empty()) return hooked.error;
  Note(held, container.name, hooked);
  return "";
}

void FakeKubelet::CheckCards(const std::string& after) {
  const std::optional<FakeNode> here = pods_.Node(node_);
  std::vector<CardUse> used(here->cards.size());
  for (const auto& [uid, held] : pods_here_) {
    std::vector<CardUse> apps(used.size());
    std::vector<CardUse> most(used.size());
    for (const FakeContainer& container : held.pod.containers) {
      const auto found = held.grants.find(container.name);
      if (found == held.grants.end()) continue;
      std::vector<CardUse> own(used.size());
      for (const Grant& grant : found->second) {
        (container.init ? own : apps)[static_cast<std::size_t>(grant.card)].Add(grant);
      }
      for (std::size_t i = 0; i < most.size(); ++i) most[i].Raise(own[i]);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      most[i].Raise(apps[i]);
      used[i].memory_mib += most[i].memory_mib;
      used[i].cores += most[i].cores;
      used[i].users += most[i].users;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const FakeCard& card = here->cards[i];
    if (used[i].memory_mib <= card.memory_mib && used[i].cores <= card.cores &&
        used[i].users <= card.slots) {
      continue;
    }
    Fault(report_.overcommits, node_ + " card " + std::to_string(i) + " after " + after + ": " +
                                   std::to_string(used[i].memory_mib) + " of " +
                                   std::to_string(card.memory_mib) + " MiB, " +
                                   std::to_string(used[i].cores) + " % of cores, " +
                                   std::to_string(used[i].users) + " users");
  }
}

void FakeKubelet::Release(const std::string& uid) {
  const auto found = pods_here_.find(uid);
  if (found == pods_here_.end()) return;
  for (const Devices& devices : found->second.devices) {
    for (const std::string& id : devices.ids) ids_[devices.resource][id] = false;
  }
  pods_here_.erase(found);
}

void FakeKubelet::Fault(int& counter, std::string line) {
  ++counter;
  report_.faults.push_back(std::move(line));
}

}  // namespace tranche::fakes
