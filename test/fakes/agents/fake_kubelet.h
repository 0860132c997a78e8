// One node's kubelet: hears of bound pods late and in no order, admits one pod at a time, calls the
// agent for each container that asks for its resource, starts the containers and ends them after a
// while. It alone knows which pod a call was for, so it tells when an agent served another one, and
// what each card was really given.
//
// Source: request-dialects section 1.
// Thread rule: one thread, the one that changes the pods; `pods` tells of nothing after it is gone.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

struct KubeletOptions {
  uint64_t seed = 1;
  int64_t most_notice_ms = 0;  // until it hears of a pod: 0 to this, so that pods overtake
  int64_t most_start_ms = 0;   // from admission until the containers start: images are pulled
  int64_t least_run_ms = 1'000'000;
  int64_t most_run_ms = 1'000'000;
  bool any_ids = false;  // devices are taken in no order
  // Pods that last: how many are refused at admission, and how many never start; 0: none. The
  // others take up to this long.
  int lasting_refused_one_in = 0;
  int lasting_dead_one_in = 0;
  int64_t lasting_start_ms = 0;
  int restart_one_in = 0;  // steps; a restarted kubelet takes up waiting pods by age. 0: never
};

struct KubeletReport {
  int served = 0;  // pods that run with what was meant for them
  int wrong_pod = 0;
  int admission_errors = 0;  // pods that ended as UnexpectedAdmissionError
  int start_errors = 0;      // pods whose containers could not start
  int overcommits = 0;
  std::vector<std::string> faults;  // a line for each of the above but `served`

  KubeletReport& operator+=(const KubeletReport& other);
};

class FakeKubelet {
 public:
  FakeKubelet(FakePods& pods, NodeAgent& agent, std::string node, KubeletOptions options = {});

  // Does what is due: notices pods, admits at most one, starts and ends others. Times only grow.
  void Step(int64_t now_ms);
  // Nothing is bound here that has not ended.
  bool idle() const { return pods_here_.empty(); }
  const KubeletReport& report() const { return report_; }

 private:
  enum class Stage : uint8_t { kWaiting, kStarting, kRunning };
  struct Devices {
    std::string container;
    std::string resource;
    std::vector<std::string> ids;
  };
  struct Held {
    FakePod pod;
    Stage stage = Stage::kWaiting;
    int64_t due = 0;
    bool right = true;
    std::vector<Devices> devices;
    std::map<std::string, std::vector<Grant>> grants;  // by container
    std::string visible;                               // of its first container with devices
    std::string poison;                                // why its containers cannot start
  };

  void Hear(const FakePod& pod, bool gone);
  void Restart();
  void Admit(Held& held);
  // False: the pod is refused.
  bool AllocateFor(Held& held, const FakeContainer& container, const std::string& resource);
  // False: too few are left.
  bool TakeIds(Held& held, const FakeContainer& container, const std::string& resource,
               std::vector<std::string>& ids);
  void Start(Held& held);
  std::string StartContainer(Held& held, const FakeContainer& container);
  // Takes note of what an answer says.
  void Note(Held& held, const std::string& container, const Service& service);
  void CheckCards(const std::string& after);
  void Release(const std::string& uid);
  void Fault(int& counter, std::string line);
  int64_t Random(int64_t most);
  bool OneIn(int n);  // 0: never

  FakePods& pods_;
  NodeAgent& agent_;
  const std::string node_;
  const KubeletOptions options_;
  std::mt19937_64 random_;
  int64_t now_ = 0;
  std::map<std::string, Held> pods_here_;                   // by uid
  std::map<std::string, std::map<std::string, bool>> ids_;  // resource -> id -> in use
  KubeletReport report_;
};

}  // namespace tranche::fakes
