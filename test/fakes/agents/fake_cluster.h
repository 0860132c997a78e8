// A cluster as node agents and kubelets see it: pods and nodes as plain structs behind an API
// server's rules. A Binding happens once and carries annotations, a patch merges, a patch with a
// resourceVersion fails if somebody was faster, and everybody hears of every change in order.
//
// Knows nothing of the product. Source: request-dialects section 1.
//
// Thread rule: any thread. Watchers are called without a lock held and may call back; what they
// change is told after they return, so that nobody hears of a later state first.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tranche::fakes {

using Text = std::map<std::string, std::string>;
using TextPatch = std::map<std::string, std::optional<std::string>>;  // nullopt: the key goes

struct FakeContainer {
  std::string name;
  bool init = false;
  Text limits;         // resource -> quantity
  Text env_from = {};  // variable -> the annotation whose text it has

  // 0: asks none of it.
  int64_t Limit(const std::string& resource) const;
};

enum class FakePhase : uint8_t { kPending, kRunning, kSucceeded, kFailed };
const char* PhaseName(FakePhase phase);

struct FakePod {
  std::string name;
  std::string ns = "team-a";
  std::string uid;
  std::string node;  // empty: not bound
  FakePhase phase = FakePhase::kPending;
  std::string reason;     // of kFailed: "UnexpectedAdmissionError", "StartError"
  bool deleting = false;  // has a deletionTimestamp
  Text annotations;
  Text labels;
  std::vector<FakeContainer> containers;  // init containers first, as kubelet runs them
  int64_t created = 0;                    // order of creation
  int64_t created_ms = 0;
  int64_t bound = 0;  // order of binding; 0: not bound
  int64_t bound_ms = 0;
  std::string service_account;
  bool lasts = false;     // holds its devices until it is deleted, and does nothing with them
  std::string told;       // by its first init container, at its end: the devices it saw
  int binding_posts = 0;  // Bindings that were sent for it, refused ones included

  bool ended() const { return phase == FakePhase::kSucceeded || phase == FakePhase::kFailed; }
  // Empty: no such annotation.
  std::string Note(const std::string& key) const;
};

// A legal place of a MIG instance.
struct FakeMigProfile {
  std::string name;
  int64_t memory_mib = 0;
  int cores = 0;
  int size = 0;
  std::vector<int> starts;
};
struct FakeCard {
  std::string uuid;
  int64_t memory_mib = 0;
  int cores = 100;
  int slots = 10;                        // how many containers may share it
  std::vector<FakeMigProfile> profiles;  // not empty: in MIG mode
};
struct FakeNode {
  std::string name;
  Text annotations;
  Text labels;
  std::map<std::string, int64_t> capacity;  // extended resources; of each unit there is a device id
  std::vector<FakeCard> cards;              // by minor number
  uint64_t version = 0;

  std::string Note(const std::string& key) const;
  int CardOf(const std::string& uuid) const;  // -1: none
};

class FakePods {
 public:
  using PodWatcher = std::function<void(const FakePod& pod, bool gone)>;
  using NodeWatcher = std::function<void(const FakeNode& node)>;

  // The server's clock, for what is created and bound from now on.
  void SetNow(int64_t now_ms);
  void AddNode(FakeNode node);
  // Its uid must be new. Creation order is given here.
  void AddPod(FakePod pod);

  std::optional<FakePod> Pod(const std::string& uid) const;
  std::optional<FakePod> PodNamed(const std::string& ns, const std::string& name) const;
  // Ascending namespace, name: how an API server lists them.
  std::vector<FakePod> Pods() const;
  std::vector<FakePod> PodsOn(const std::string& node) const;
  std::optional<FakeNode> Node(const std::string& name) const;
  std::vector<FakeNode> Nodes() const;

  // The status of the answer: 201, 404, or 409 for a pod that is bound, being deleted, or another.
  int Bind(const std::string& ns, const std::string& name, const std::string& uid,
           const std::string& node, const Text& annotations);
  // 200 or 404.
  int PatchAnnotations(const std::string& uid, const TextPatch& patch);
  int PatchLabels(const std::string& uid, const TextPatch& patch);
  int SetPhase(const std::string& uid, FakePhase phase, const std::string& reason = "");
  int SetTold(const std::string& uid, const std::string& told);
  int MarkDeleting(const std::string& uid);
  int Delete(const std::string& uid);  // gone at once
  // With `version` only if the node still has it: 409 otherwise.
  int PatchNode(const std::string& name, const TextPatch& annotations,
                std::optional<uint64_t> version = std::nullopt);

  // New watchers are told of everything there is.
  void Watch(PodWatcher pods, NodeWatcher nodes = nullptr);
  // How often annotation `key` of any node was set by a successful write.
  int NodeWrites(const std::string& key) const;

 private:
  struct Event {
    FakePod pod;
    FakeNode node;
    bool is_node = false;
    bool gone = false;
  };
  // 200 or 404.
  int Change(const std::string& uid, const std::function<void(FakePod&)>& change);
  void Tell(Event event);  // under the lock
  void Drain();

  mutable std::mutex mutex_;
  std::map<std::string, FakePod> pods_;                               // by uid
  std::map<std::pair<std::string, std::string>, std::string> names_;  // -> uid
  std::map<std::string, FakeNode> nodes_;
  std::map<std::string, int> node_writes_;
  std::vector<std::pair<PodWatcher, NodeWatcher>> watchers_;
  std::deque<Event> events_;
  bool draining_ = false;
  int64_t order_ = 0;
  int64_t now_ms_ = 0;
};

}  // namespace tranche::fakes
