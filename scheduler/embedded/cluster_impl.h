// The embedded cluster behind its lock. Events are queued while the lock is held and delivered
// after it is released.
//
// Thread rule: State is used under the lock of Impl alone; the functions of Impl take it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/embedded/cluster.h"
#include "scheduler/embedded/derived_budget.h"
#include "scheduler/embedded/event_queue.h"
#include "scheduler/embedded/json_patch.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/embedded/object_store.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/object_json.h"
#include "scheduler/wire/nodes/node_slices.h"

namespace tranche::embedded {

struct Cluster::State {
  // Older events are dropped, as a real cluster drops them after an hour.
  static constexpr std::size_t kKeptEvents = 1000;

  State(const Clock& the_clock, EventQueue& the_queue, const GpuPolicy& the_defaults)
      : clock(the_clock), queue(the_queue), defaults(the_defaults) {}

  // Objects that people apply and delete.
  absl::Status StoreAll(std::vector<ManifestObject>& objects);
  absl::Status CheckUids(const std::vector<ManifestObject>& objects) const;
  void Store(ManifestObject& object, Instant now);
  void PushPod(PodFacts pod, wire::Element element);
  void StorePod(PodFacts pod, const ManifestObject& object, const StoredObject& stored,
                JsonPatch& patch, Instant now);
  void ContinueOurs(const ManifestObject& object, const StoredObject* prior, StoredObject& stored,
                    JsonPatch& patch);
  absl::Status DeleteAll(const std::vector<DeleteRequest>& requests);
  void DeleteOne(const DeleteRequest& request, Instant now);
  // With the grace asked for, else its own. `condition` is set on a pod that is given time.
  void DeletePod(const ObjectKey& key, std::optional<int64_t> grace_seconds,
                 const std::optional<wire::ConditionText>& condition, Instant now);
  void Forget(const ObjectKey& key);
  // What the object's facts say to the engine, unless it is a node or a pod itself.
  void Observe(ManifestObject& object, const std::string& uid);
  // Takes it back.
  void Unobserve(const ObjectKey& key);
  void PushSlices();
  void PushPolicyObject(const ObjectKey& key, const StoredObject& stored);
  // Ends a batch of policy objects, if there was one.
  void SettlePolicyObjects();
  void PushHeard();

  // What we write.
  PodLookup LookUp(const PodName& pod, const PodUid& uid);
  WriteResult TryBind(const BindingWrite& write);
  WriteResult TryWrite(const ObjectWrite& write);
  WriteResult TrySetWaiting(const WaitingWrite& write);
  WriteResult TryEvict(const EvictionWrite& write);
  // The pod of that name and uid with what `change` makes of it, told to the engine. As it is where
  // `change` says false.
  using PodChange = std::function<bool(wire::Element pod, JsonPatch& patch)>;
  WriteResult TryChangePod(const PodName& pod, const PodUid& uid, const PodChange& change);
  // kDone when there is a pod of that name and uid.
  WriteResult CheckPod(const PodName& pod, const PodUid& uid) const;
  WriteResult TryLabelNode(const NodeLabelWrite& write);
  enum class LockChange : uint8_t { kTake, kDrop };
  NodeLockResult TryChangeLock(const NodeLockWrite& write, LockChange change);
  WriteResult TryCreatePlaceholder(const PodCreation& creation);
  ConfigMapLookup FindConfigMap(const ObjectKey& key, const std::string& data_key);
  WriteResult TryPutConfigMap(const ConfigMapWrite& write);
  void KeepEvent(const EventWrite& event);
  ProvisioningList ListProvisioning();
  WriteResult TryMakeProvisioning(const ProvisioningWrite& write);
  WriteResult PutProvisioning(const ObjectKey& key, std::string_view json);

  // Disruption budgets. One applied without a status gets one, which then follows the pods.
  void DeriveBudget(const ManifestObject& object, JsonPatch& patch);
  void FollowPod(const PodFacts& pod, wire::Element element);
  // Stores what followed and tells the engine; ends a batch as SettlePolicyObjects does.
  void SettleBudgets();
  void SaveBudget(const ObjectKey& key, JsonPatch& patch);
  // Takes one eviction off the budget over the pod; kDone when nothing stands against it.
  WriteResult ChargeBudget(const PodName& pod, const Labels& labels, Instant now);

  std::string NewUid(const ObjectKey& key, Instant now);
  wire::Element ElementOf(const StoredObject& stored);
  absl::StatusOr<PodFacts> ReadPod(const StoredObject& stored, wire::Element& element);
  // The text of `stored` becomes `element` with changes, a new version.
  void Render(StoredObject& stored, wire::Element element, JsonPatch& patch);
  // Renders and stores.
  void Save(const ObjectKey& key, StoredObject stored, wire::Element element, JsonPatch& patch);
  // Same with a pod, and tells the engine. Stores nothing that could not be read again.
  absl::Status SavePod(const ObjectKey& key, StoredObject stored, wire::Element element,
                       JsonPatch& patch);
  // Same with a node.
  WriteResult SaveNode(const ObjectKey& key, StoredObject stored, wire::Element element,
                       JsonPatch& patch);

  const Clock& clock;
  EventQueue& queue;
  const GpuPolicy& defaults;

  ObjectStore store;
  std::map<ObjectKey, DerivedBudget> derived;  // budgets without a status of their own
  wire::NodeSlices slices;
  std::map<ObjectKey, std::string> placeholder_cards;  // given to placeholders, some of them gone
  std::map<ObjectKey, wire::GangSize> gangs;           // of PodGroups
  bool policy_objects_changed = false;                 // queued since the last settlement
  std::deque<ObjectKey> events;                        // oldest first
  uint64_t event_serial = 0;
  wire::Parser parser;  // of single stored objects
  uint64_t made_uids = 0;
};

struct Cluster::Impl {
  Impl(const Clock& the_clock, ClusterEvents& receiver, GpuPolicy the_defaults)
      : clock(the_clock),
        queue(receiver),
        defaults(std::move(the_defaults)),
        state(clock, queue, defaults) {}

  absl::StatusOr<ApplyReport> Apply(std::string_view text, wire::Padding padding);

  // What `call` makes of the state.
  template <typename Call>
  auto Locked(Call call) {
    const absl::MutexLock lock(&mutex);
    return call(state);
  }
  // As Locked, and the result goes to `done` behind the events that `change` has queued, so that
  // the engine has seen them first.
  template <typename Result, typename Change>
  void Do(Change change, std::function<void(Result)> done) {
    {
      const absl::MutexLock lock(&mutex);
      Result result = change(state);
      state.SettleBudgets();
      queue.Push([done = std::move(done), result = std::move(result)] { done(result); });
    }
    queue.Start();
  }

  const Clock& clock;
  EventQueue queue;
  const GpuPolicy defaults;

  absl::Mutex mutex;
  State state ABSL_GUARDED_BY(mutex);
};

}  // namespace tranche::embedded
