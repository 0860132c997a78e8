// Carries out what PlanRepartition plans, where GPUPolicy.mig is Apply: one node at a time, GPUs
// nobody uses, through mig-manager. Where there are none that would serve who waits, and while
// mig.window lasts, a node is emptied first: of work that may be moved and has room elsewhere.
//
//   write the layout into mig-parted's file -> wait until the node's kubelet has it -> plan again;
//   [keep new pods off a busy node, have its work leave, until nobody is there]
//   hold the node -> look again: still idle? -> set its label -> watch until mig-manager is done
//   and the node advertises what was planned -> let go of the node
//
// The node is held from the last look until mig-manager answers: an answer that does not come is
// busy, not free. After a restart nobody is held by us, and the node's own label
// nvidia.com/mig.config.state keeps pods away while a change is under way (wire/nodes/node_decode).
// A layout that a node refused, failed or did not show is not tried there again for an hour.
//
// Everything happens in Tick: answers from the API server are only queued here, and handled on the
// next tick.
// Thread rule: Tick by one thread at a time; pending from any. Answers may come after this is gone.
// Source: mig-geometry section 7, guards 1-6.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/advice/case.h"
#include "scheduler/advice/repartition.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/config_maps.h"
#include "scheduler/ports/node_writes.h"
#include "scheduler/ports/object_writes.h"

namespace tranche {

// Where mig-manager's file is; the key is the one its ConfigMap is mounted by.
struct MigConfigMap {
  std::string ns = "tranche-system";
  std::string name = "tranche-mig-parted-config";
  static constexpr const char* kKey = "config.yaml";
};

class MigController {
 public:
  static constexpr Millis kPlanEvery{30'000};
  static constexpr Millis kWatchEvery{5'000};
  // A kubelet shows a changed ConfigMap to its pods after its sync period, a minute, and some more.
  static constexpr Millis kSpread{90'000};
  // After this an event reports a change without an answer, and one with an answer is judged.
  static constexpr Millis kPatience{600'000};
  static constexpr Millis kNotAgain{3'600'000};
  // From the choice of a busy node until it is empty.
  static constexpr Millis kMostEmptying{3'600'000};

  // What it needs of the rest; all are called without locks.
  struct Hooks {
    // The cluster was heard of lately: nothing is begun or judged on old knowledge.
    std::function<bool()> fresh;
    std::function<MigMode()> mode;
    std::function<AdviceCase()> look;
    std::function<RepartitionPlan(const AdviceCase&)> plan;
    // Engine::SetHeld; `why` empty: no longer.
    std::function<void(const NodeName& node, const std::string& why)> hold;
    std::function<bool(Instant now)> may_empty;  // GPUPolicy.mig.window is open
    // Engine::SetEmptied by rule MigLayout; and no longer.
    std::function<bool(const NodeName& node)> empty;
    std::function<void(const NodeName& node)> spare;
  };

  // All must outlive this; the cluster its last answer.
  MigController(NodeWrites& nodes, ConfigMaps& config_maps, ObjectWrites& objects,
                metrics::Metrics& metrics, MigConfigMap where, Hooks hooks);
  ~MigController();
  MigController(const MigController&) = delete;
  MigController& operator=(const MigController&) = delete;

  // `now` does not go back.
  void Tick(Instant now);
  // Nodes whose change is not over: held by us.
  int64_t pending() const { return pending_; }
  // Nodes that are being emptied for a change, held by us as well.
  int64_t emptying() const { return emptying_nodes_; }

 private:
  // What a node advertises: profile -> instances, and whole GPUs under "".
  using Layout = std::map<std::string, int64_t>;
  template <typename Answer>
  struct Inbox;
  struct Change;

  static Layout LayoutOf(const Inventory& inventory);
  static Layout LayoutAfter(Layout layout, const NodeRepartition& plan);
  static bool IsIdle(const AdviceCase& fleet, const AdviceNode& node, const NodeRepartition& plan);
  static const AdviceNode* Find(const AdviceCase& fleet, const NodeName& name);

  void LookForWork(Instant now);
  void TakeUp(const AdviceCase& fleet, const NodeRepartition& node, Instant now);
  // A busy node to empty, for which somebody waits.
  void LookForBusy(const AdviceCase& fleet, Instant now);
  bool WouldServe(const AdviceCase& fleet, const AdviceNode& node) const;
  void GoOnEmptying(Instant now);
  void StopEmptying(const std::string& why, Instant now);
  bool MayTry(const AdviceCase& fleet, const NodeRepartition& node) const;
  void ReadFile(const NodeRepartition& node);
  void FileRead(Instant now);
  void FileWritten(Instant now);
  void Begin(const NodeRepartition& plan, const AdviceNode& before, Instant now);
  void SetLabel(Instant now);
  void LabelAnswered(Instant now);
  void Watch(Instant now);
  void WatchAnotherLabel(const AdviceNode& node, Instant now);
  void WatchOurLabel(const AdviceNode& node, Instant now);
  void Settle(metrics::MigOutcome outcome, const std::string& detail, Instant now);
  void LetGo();
  // Not there again for an hour.
  void Abandon(const NodeName& node, const std::string& config, const std::string& why,
               Instant now);
  enum class Gravity : uint8_t { kNormal, kWarning };
  void Tell(const NodeName& node, Gravity gravity, const std::string& note, Instant now);

  NodeWrites& nodes_;
  ConfigMaps& config_maps_;
  ObjectWrites& objects_;
  metrics::Metrics& metrics_;
  const MigConfigMap where_;
  const Hooks hooks_;

  std::optional<Instant> looked_;           // for work, or at the node that is changed
  std::map<std::string, Instant> in_file_;  // layouts by name, since when they are there
  std::map<std::pair<NodeName, std::string>, Instant> refused_;  // node, layout
  std::optional<NodeRepartition> writing_;        // its layout is being put into the file
  std::shared_ptr<Inbox<ConfigMapLookup>> read_;  // set: asked for
  std::shared_ptr<Inbox<WriteResult>> written_;   // set: asked for, file or label
  struct Emptying {
    NodeName node;
    Instant begun;
  };
  std::optional<Emptying> emptying_;     // its node is held, and asked to be left
  std::map<NodeName, Instant> emptied_;  // when that ended, or was not begun
  std::unique_ptr<Change> change_;       // its node is held
  std::atomic<int64_t> pending_ = 0;
  std::atomic<int64_t> emptying_nodes_ = 0;
};

}  // namespace tranche
