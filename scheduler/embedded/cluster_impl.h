// The embedded cluster behind its lock. Events are queued while the lock is held and delivered
// after it is released.
//
// Thread rule: every function but Apply and ChangeLock requires `mutex`.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct Cluster::Impl {
  static constexpr std::size_t kKeptEvents = 1000;

  Impl(const Clock& the_clock, ClusterEvents& receiver, GpuPolicy the_defaults)
      : clock(the_clock), queue(receiver), defaults(std::move(the_defaults)) {}

  // Objects that people apply and delete.
  absl::StatusOr<ApplyReport> Apply(std::string_view text, bool padded);
  absl::Status CheckUids(const std::vector<ManifestObject>& objects) const;
  void Store(ManifestObject& object, Instant now);
  void StorePod(PodFacts pod, const ManifestObject& object, const StoredObject& stored,
                JsonPatch& patch, Instant now);
  void ContinueOurs(const ManifestObject& object, const StoredObject* prior, StoredObject& stored,
                    JsonPatch& patch);
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
  void PushDra(dra::Object object);
  void PushGang(const wire::GangSize& gang);
  void PushPod(PodFacts pod);
  void PushPolicyObject(const ObjectKey& key, const StoredObject& stored);
  // Ends a batch of policy objects, if there was one.
  void SettlePolicyObjects();
  void PushHeard();

  // What we write.
  WriteResult TryBind(const BindingWrite& write);
  WriteResult TryWrite(const ObjectWrite& write);
  WriteResult TrySetWaiting(const WaitingWrite& write);
  WriteResult TryEvict(const EvictionWrite& write);
  WriteResult TryNominate(const PodName& pod, const PodUid& uid, const NodeName& node);
  // kDone when there is a pod of that name and uid.
  WriteResult CheckPod(const PodName& pod, const PodUid& uid) const;
  WriteResult TryLabelNode(const NodeLabelWrite& write);
  NodeLockResult TryLockNode(const NodeLockWrite& write, bool take);
  // TryLockNode, and its answer when the engine has seen the node.
  void ChangeLock(const NodeLockWrite& write, bool take, std::function<void(NodeLockResult)> done);
  WriteResult TryRemoveGate(const GateWrite& write);
  WriteResult TryCreatePlaceholder(const PodCreation& creation);
  WriteResult TryAnnotatePod(const PodAnnotationWrite& write);
  ConfigMapLookup FindConfigMap(const ObjectKey& key, const std::string& data_key);
  WriteResult TryPutConfigMap(const ConfigMapWrite& write);
  void KeepEvent(const EventWrite& event);

  // Disruption budgets. One applied without a status gets one, which then follows the pods.
  void DeriveBudget(const ManifestObject& object, JsonPatch& patch);
  void FollowPod(const PodFacts& pod, wire::Element element);
  // Stores what followed and tells the engine; ends a batch as SettlePolicyObjects does.
  void SettleBudgets();
  void SaveBudget(const ObjectKey& key, JsonPatch& patch);
  // Takes one eviction off the budget over the pod; kDone when nothing stands against it.
  WriteResult ChargeBudget(const PodName& pod, const Labels& labels, Instant now);

  std::string NewUid(const ObjectKey& key, Instant now);
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
  EventQueue queue;
  const GpuPolicy defaults;

  std::mutex mutex;
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

}  // namespace tranche::embedded
