// What administrators declared (tranche.dev/v1alpha1), as plain values, defaults filled in.
// Immutable once handed to the engine.
//
// Decimal fields are kept as thousandths ("0.15" is 150); a fourth decimal is a validation error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/selector.h"
#include "policy/time_zone.h"
#include "topology/base/units.h"

namespace tranche {

// ---- GPUPolicy ----------------------------------------------------------------------------------

enum class Strategy : uint8_t { kFragmentation, kBestFit, kSpread };
enum class Permission : uint8_t { kAllow, kRefuse };
enum class PreemptionActor : uint8_t { kPlanner, kScheduler, kOff };

// How pods may share one GPU of a model (a GPU model name, or "any").
struct SharingLimit {
  std::string model;
  int max_pods_per_gpu = 0;  // 0: no limit
  // What the CUDA context of a container takes beside the memory it asks for in bytes.
  Mebibytes context_memory = {};
  friend bool operator==(const SharingLimit&, const SharingLimit&) = default;
};

// Pods that ask no GPU and are sent to us: passed by, or ranked so that the CPU they take strands
// no GPU (never refused, never narrowed).
enum class PlainPods : uint8_t { kIgnore, kRank };

// Changing MIG layouts for what waits: never, as advice, or carried out where it disturbs nobody.
enum class MigMode : uint8_t { kOff, kAdvise, kApply };

// How the GPUs of one pod must be connected (tranche.dev/topology). Required: every pair by NVLink,
// directly or through a switch; of a gang over several nodes, one NVLink clique.
enum class TopologyWish : uint8_t { kNone, kPreferred, kRequired };

// Domains of nodes, narrowest first. A clique is one NVLink fabric of several nodes.
enum class GangLevel : uint8_t { kClique, kRack, kBlock, kZone };
inline constexpr int kGangLevels = 4;

// Node labels that name the domain of each level; of several the first a node has counts.
struct DomainLabels {
  std::vector<std::string> of_level[kGangLevels] = {
      {"nvidia.com/gpu.clique"},
      {"topology.kubernetes.io/rack", "cloud.google.com/gce-topology-subblock",
       "topology.k8s.aws/network-node-layer-3", "oci.oraclecloud.com/rdma.local_block_id"},
      {"topology.kubernetes.io/block", "cloud.google.com/gce-topology-block",
       "topology.k8s.aws/network-node-layer-2", "oci.oraclecloud.com/rdma.network_block_id"},
      {"topology.kubernetes.io/zone"},
  };
  friend bool operator==(const DomainLabels&, const DomainLabels&) = default;
};

// What becomes of a pod on a GPU that its node's agent calls unhealthy.
enum class OnUnhealthy : uint8_t { kKeep, kDrain };
// What becomes of a pod whose node is about to be taken away, as a taint of it says.
enum class OnInterruption : uint8_t { kKeep, kDrain };
// What becomes of a pod whose GPUs have done nothing for the idleAfter of its class.
enum class OnIdle : uint8_t { kEvict, kKeep };
// What becomes of an edit by which pods of the policy's namespaces would be evicted at once.
enum class EvictingEdits : uint8_t { kWarn, kRefuse };
// Whether nodes with little work that may be moved are emptied.
enum class Consolidate : uint8_t { kOff, kOn };
// Whether ReplicaSets are told which of their pods free the most when they go (annotation
// controller.kubernetes.io/pod-deletion-cost).
enum class DeletionCost : uint8_t { kOff, kOn };
// What an autoscaler is asked for gangs that wait for room (ProvisioningRequest): nothing, whether
// there is room for all of a gang, or to raise nodes for all of it or none.
enum class Provisioning : uint8_t { kOff, kCheckCapacity, kAtomicScaleUp };
// Whether nodes are told to kube-scheduler before it asks: for backlogs in large fleets, always, or
// never.
enum class Nominate : uint8_t { kAuto, kOn, kOff };

// When nodes may be emptied for another MIG layout (mig.window).
struct MigWindow {
  WeekHours hours;
  TimeZone zone;
  friend bool operator==(const MigWindow&, const MigWindow&) = default;
};

// What a GPUPolicy with spec.selector.nodes says of its nodes, whoever asks; absent: as the policy
// of the pod's namespace says.
struct NodeRules {
  std::optional<Permission> unenforced_sharing;
  std::optional<std::vector<SharingLimit>> sharing_limits;
  std::optional<Permission> several_replicas;
  std::optional<OnUnhealthy> on_unhealthy;
  std::optional<OnInterruption> on_interruption;
  friend bool operator==(const NodeRules&, const NodeRules&) = default;
};

// GPUPolicy.spec, the fields this version acts on.
struct GpuPolicy {
  std::string name = "default";
  Strategy strategy = Strategy::kFragmentation;
  int filter_width = 11;  // 1..64 nodes of a filter answer; 11 is what strict ranks 10..0 can order
  PlainPods plain_pods = PlainPods::kIgnore;  // placement.plainPods
  Nominate nominate = Nominate::kAuto;        // placement.nominate
  // placement.money: milli-GPU of waste that a unit of the currency an hour counts as much as; 0:
  // money has no say; absent: a GPU at the highest price there is counts kAutoMoney.
  std::optional<int> money_rate;
  MigMode mig = MigMode::kOff;          // mig.mode
  std::optional<MigWindow> mig_window;  // absent: nodes are never emptied for their layout
  Consolidate consolidate = Consolidate::kOff;
  DeletionCost deletion_cost = DeletionCost::kOff;
  Provisioning provisioning = Provisioning::kOff;
  TopologyWish topology = TopologyWish::kPreferred;  // topology.default
  DomainLabels domains;                              // topology.labels
  // Fractions on nodes with nothing that enforces them: a packing promise only.
  Permission unenforced_sharing = Permission::kRefuse;
  std::vector<SharingLimit> sharing_limits;
  // sharing.requestsGreaterThanOne: containers that ask for several replicas of shared GPUs;
  // absent: as NVIDIA's device plugin does by itself, which refuses them under MPS alone.
  std::optional<Permission> several_replicas;
  std::vector<std::string> dialects;  // accepted request dialects; empty: all
  PreemptionActor actor = PreemptionActor::kPlanner;
  Millis wait_for_nodes{180'000};  // preemption.waitForNodes: 0 .. 1 hour; see AwaitedNodes
  OnUnhealthy on_unhealthy = OnUnhealthy::kKeep;
  OnInterruption on_interruption = OnInterruption::kKeep;
  OnIdle on_idle = OnIdle::kEvict;
  EvictingEdits evicting_edits = EvictingEdits::kWarn;
  int hami_minor = 0;  // agents.hamiVersion "2.x" as x; 0: tell from the register's form
  // Pods whose namespace no leaf owns.
  Permission unassigned = Permission::kAllow;
  // spec.selector, one of both; nullopt: everywhere.
  std::optional<LabelSelector> namespaces;
  std::optional<LabelSelector> nodes;
  NodeRules own;  // where `nodes` is set, what is written; the fields above say nothing then
  // Not of the object: places what is on a node already, whatever its rules of sharing.
  bool takes_all = false;
  friend bool operator==(const GpuPolicy&, const GpuPolicy&) = default;
};

inline constexpr int kMaxFilterWidth = 64;
inline constexpr int kMostMoneyRate = 100'000;

// ---- GPUQuota -----------------------------------------------------------------------------------

inline constexpr const char* kAnyModel = "any";

// One amount, in the form it was written in.
struct QuotaAmount {
  enum class Form : uint8_t {
    kGpus,    // gpus: "8", "7.5"
    kSlices,  // slices: {1g.18gb: 7}; profiles of the line's model
    kMemory,  // gpuMemory: 160Gi; memory of the line's model, compute unlimited
  };
  Form form = Form::kGpus;
  MilliGpu gpus;
  std::vector<std::pair<std::string, int64_t>> slices;  // canonical profile, count; ascending
  Mebibytes memory;
  friend bool operator==(const QuotaAmount&, const QuotaAmount&) = default;
};

struct QuotaLine {
  std::string model;  // lower case GPU model name, or kAnyModel
  QuotaAmount nominal;
  std::optional<QuotaAmount> borrow_limit;  // absent: no cap
  std::optional<QuotaAmount> lend_limit;    // absent: all
  // Name of a GPUPool; empty: any. GPUs of the pool are charged to the line of the model in the
  // pool, else to that of the pool, else to that of the model: to the first of these that a quota
  // of the same tree has; and to kAnyModel's as all are.
  std::string pool = {};
  friend bool operator==(const QuotaLine&, const QuotaLine&) = default;
};

enum class QuotaMode : uint8_t {
  kEnforce,
  kObserve,  // decides the same, records it, refuses nothing
  kOff,      // counts use, decides nothing
};
enum class OnShrink : uint8_t { kKeep, kReclaim, kDrain };
enum class ReleasePolicy : uint8_t { kOnTermination, kOnDeletionTimestamp };

struct GpuQuota {
  std::string name;
  std::string uid;
  std::string parent;  // empty: a root
  QuotaMode mode = QuotaMode::kEnforce;
  std::optional<LabelSelector> namespaces;  // set: a leaf
  std::vector<QuotaLine> lines;             // ascending model and pool, each once
  int64_t weight = 1;                       // 0..1,000,000, of fair share
  ReleasePolicy release = ReleasePolicy::kOnTermination;
  OnShrink on_shrink = OnShrink::kKeep;
  std::optional<Millis> min_runtime;
  // The nearest quota from the common ancestor upwards that says so decides; nobody: off.
  std::optional<bool> cross_leaf_preemption;
  int cross_leaf_min_rank = 3;
  std::optional<bool> fair_share_preemption;  // likewise
  int max_evictions_per_hour = 20;
  friend bool operator==(const GpuQuota&, const GpuQuota&) = default;
};

// ---- GPUBudget ----------------------------------------------------------------------------------

struct BudgetWindow {
  enum class Type : uint8_t { kDay, kWeek, kMonth, kRolling };  // weeks start on Monday 00:00
  Type type = Type::kMonth;
  TimeZone zone;
  Millis duration{0};  // kRolling: 1 hour .. 31 days
  friend bool operator==(const BudgetWindow&, const BudgetWindow&) = default;
};

enum class OnExhaustion : uint8_t { kWarn, kDemote, kBlock, kDrain };
enum class MeterFrom : uint8_t { kBind, kRunning };

struct GpuBudget {
  std::string name;
  std::string uid;
  // One of the two.
  std::string quota_ref;        // a GPUQuota, leaf or inner
  std::string ns;               // a namespace
  int64_t milli_gpu_hours = 0;  // per window
  BudgetWindow window;
  // Thousandths by line_name.h, kAnyModel in pools alone; of several the most exact as of quota
  // lines; others 1000.
  std::vector<std::pair<std::string, int64_t>> rates;
  int rollover_max_percent = 0;        // 0..1000 of the base
  int rollover_max_windows = 0;        // 0..12
  int max_debt_percent = 20;           // 0..100 of the base
  std::vector<int> notify_at_percent;  // ascending
  MeterFrom meter_from = MeterFrom::kBind;
  OnExhaustion on_exhaustion = OnExhaustion::kDemote;
  friend bool operator==(const GpuBudget&, const GpuBudget&) = default;
};

inline constexpr int64_t kUsualRate = 1000;
// What an hour of a charge of that name costs of the budget, in thousandths.
int64_t RateOf(const GpuBudget& budget, std::string_view charged);

// ---- GPUClass -----------------------------------------------------------------------------------

// How a machine is paid for: at the list's price, at a price that lets it be taken away, or ahead.
enum class CapacityType : uint8_t { kOnDemand, kReserved, kSpot };
inline constexpr int kCapacityTypes = 3;

// As objects spell it: "OnDemand", "Reserved", "Spot".
std::string_view CapacityTypeName(CapacityType type);

enum class SharingMode : uint8_t { kExclusive, kMig, kMps, kTimeSliced };

enum class Preemptible : uint8_t { kNever, kAlways, kOverQuota, kOverNominal };

// The highest rank that the CRDs of classes and quotas accept.
inline constexpr int kMostRank = 1000;
// That of work without a class, and of a class that names none.
inline constexpr int kRankWithoutClass = 2;

struct GpuClass {
  std::string name;
  std::vector<std::string> priority_classes;  // names; one class at most has each
  int rank = kRankWithoutClass;               // 0..kMostRank; 0 never counts as nominal
  Preemptible preemptible = Preemptible::kAlways;
  std::vector<SharingMode> sharing;  // in order of preference, not empty, each once
  Millis min_runtime{0};
  std::optional<Millis> grace_period;
  Millis cooldown{600'000};
  Millis patience{1'800'000};  // of its pods, until those who go for them write a checkpoint
  std::optional<int> max_evictions_per_day;  // absent: no limit
  Millis lost_work_cap{3'600'000};
  Millis restart_overhead{0};
  int assumed_loss_percentile = 50;
  std::optional<Millis> idle_after;
  std::optional<Millis> max_runtime;
  int64_t charge_factor = 1000;        // thousandths; 0: free
  std::vector<CapacityType> capacity;  // what it runs on, the preferred first; empty: all, no order
  bool interruptible = true;           // false: never on spot
  friend bool operator==(const GpuClass&, const GpuClass&) = default;
};

// The rank of the class, or that of work without one (nullptr).
inline int RankOf(const GpuClass* gpu_class) {
  return gpu_class == nullptr ? kRankWithoutClass : gpu_class->rank;
}

// How far down its list the class has machines that are paid for so, 0 where it has no list;
// nullopt: its pods do not run there. A class that is not there (nullptr) bears everything.
std::optional<int> CapacityChoice(const GpuClass* gpu_class, CapacityType capacity);

// What a class is before an object says otherwise: by its name, one of inference-prod, training,
// notebook, scavenger (quota-model section 4), else the values above with every sharing mode in the
// order Exclusive, MIG, MPS, TimeSliced.
GpuClass DefaultClass(const std::string& name);

// ---- GPUPool ------------------------------------------------------------------------------------

// A time of maintenance, from (inclusive) to (exclusive).
struct PoolWindow {
  Instant from;
  Instant to;
  bool drain = false;  // pods are to be gone by `from`
  friend bool operator==(const PoolWindow&, const PoolWindow&) = default;
};

// GPUPool.spec.
struct GpuPool {
  std::string name;
  LabelSelector nodes;
  std::optional<CapacityType> capacity;  // absent: what the cloud's labels of a node say
  std::vector<PoolWindow> windows;       // as written
  friend bool operator==(const GpuPool&, const GpuPool&) = default;
};

// ---- GPUPrice -----------------------------------------------------------------------------------

// GPUPrice.spec; money in millionths of the currency. An absent field holds for everything.
struct GpuPrice {
  std::string name;
  int64_t micros_per_gpu_hour = 0;  // millionths of the currency for a GPU and an hour
  std::string currency;             // three capitals, as "USD"
  std::string pool;                 // name of a GPUPool; empty: any
  std::string instance_type;        // label node.kubernetes.io/instance-type; empty: any
  std::optional<CapacityType> capacity;
  std::string model;             // lower case GPU model name; empty: any
  std::vector<WeekHours> hours;  // empty: always
  TimeZone zone;                 // of `hours`
  friend bool operator==(const GpuPrice&, const GpuPrice&) = default;
};

}  // namespace tranche
