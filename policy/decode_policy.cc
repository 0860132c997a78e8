#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/decode_selector.h"
#include "topology/base/quantity.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr int kMaxPodsPerGpu = 1000;  // a milli-GPU each
constexpr Mebibytes kMostContextMemory = Mebibytes::Of(16 * 1024);
constexpr int kMaxHamiMinor = 99;
constexpr Millis kMostWaitForNodes = std::chrono::hours(1);
constexpr size_t kMostLimits = 64;
constexpr size_t kMostDomainLabels = 8;
constexpr size_t kMaxLabelKey = 317;  // a prefix of 253 bytes, a slash, a name of 63

constexpr std::array kStrategies = {Choice<Strategy>{"Fragmentation", Strategy::kFragmentation},
                                    Choice<Strategy>{"BestFit", Strategy::kBestFit},
                                    Choice<Strategy>{"Spread", Strategy::kSpread}};
constexpr std::array kPermissions = {Choice<Permission>{"Allow", Permission::kAllow},
                                     Choice<Permission>{"Refuse", Permission::kRefuse}};
constexpr std::array kActors = {Choice<PreemptionActor>{"Planner", PreemptionActor::kPlanner},
                                Choice<PreemptionActor>{"Scheduler", PreemptionActor::kScheduler},
                                Choice<PreemptionActor>{"Off", PreemptionActor::kOff}};

constexpr std::array kPlainPods = {Choice<PlainPods>{"Ignore", PlainPods::kIgnore},
                                   Choice<PlainPods>{"Rank", PlainPods::kRank}};
constexpr std::array kNominate = {Choice<Nominate>{"Auto", Nominate::kAuto},
                                  Choice<Nominate>{"On", Nominate::kOn},
                                  Choice<Nominate>{"Off", Nominate::kOff}};
constexpr std::array kMigModes = {Choice<MigMode>{"Off", MigMode::kOff},
                                  Choice<MigMode>{"Advise", MigMode::kAdvise},
                                  Choice<MigMode>{"Apply", MigMode::kApply}};

// Where only the word counts.
constexpr Choice<std::string_view> Word(std::string_view text) { return {text, text}; }
// Every DialectName of the scheduler but "none".
constexpr std::array kDialects = {
    Word("native"),   Word("tranche"),          Word("hami"),
    Word("volcano"),  Word("volcano-gpushare"), Word("gpushare"),
    Word("tkestack"), Word("elastic-gpu"),      Word("vgpu-manager"),
    Word("kai"),      Word("koordinator"),      Word("open-gpu-share"),
    Word("hived")};
constexpr std::array kTopologies = {Choice<TopologyWish>{"Required", TopologyWish::kRequired},
                                    Choice<TopologyWish>{"Preferred", TopologyWish::kPreferred},
                                    Choice<TopologyWish>{"None", TopologyWish::kNone}};

constexpr std::array kOnUnhealthy = {Choice<OnUnhealthy>{"Keep", OnUnhealthy::kKeep},
                                     Choice<OnUnhealthy>{"Drain", OnUnhealthy::kDrain}};
constexpr std::array kOnInterruption = {Choice<OnInterruption>{"Keep", OnInterruption::kKeep},
                                        Choice<OnInterruption>{"Drain", OnInterruption::kDrain}};
constexpr std::array kEvictingEdits = {Choice<EvictingEdits>{"Warn", EvictingEdits::kWarn},
                                       Choice<EvictingEdits>{"Refuse", EvictingEdits::kRefuse}};
constexpr std::array kConsolidate = {Choice<Consolidate>{"Off", Consolidate::kOff},
                                     Choice<Consolidate>{"On", Consolidate::kOn}};
constexpr std::array kDeletionCost = {Choice<DeletionCost>{"Off", DeletionCost::kOff},
                                      Choice<DeletionCost>{"On", DeletionCost::kOn}};
constexpr std::array kProvisioning = {
    Choice<Provisioning>{"Off", Provisioning::kOff},
    Choice<Provisioning>{"CheckCapacity", Provisioning::kCheckCapacity},
    Choice<Provisioning>{"AtomicScaleUp", Provisioning::kAtomicScaleUp}};
constexpr std::array kOnIdle = {Choice<OnIdle>{"Evict", OnIdle::kEvict},
                                Choice<OnIdle>{"Keep", OnIdle::kKeep}};

// "Auto", "Off", or a whole number, as text or as one.
void ReadMoney(const Field& field, std::optional<int>& rate) {
  const auto text = field.Text();
  if (text == "Auto") {
    rate.reset();
    return;
  }
  std::optional<int64_t> number = field.Integer();
  if (text == "Off") number = 0;
  if (text && !number) {
    std::string_view rest = *text;
    number = TakeDigits(rest, 6);
    if (!rest.empty()) number.reset();
  }
  if (number && *number >= 0 && *number <= kMostMoneyRate) {
    rate = static_cast<int>(*number);
  } else {
    field.Fail(fmt::format("\"Auto\", \"Off\" or a whole number of 0..{}", kMostMoneyRate));
  }
}

void ReadPlacement(const Field& field, GpuPolicy& policy) {
  field.ReadMembers(
      {{"strategy",
        [&](const Field& strategy) { ReadChoice(strategy, kStrategies, policy.strategy); }},
       {"filterWidth",
        [&](const Field& width) { ReadInteger(width, 1, kMaxFilterWidth, policy.filter_width); }},
       {"plainPods", [&](const Field& plain) { ReadChoice(plain, kPlainPods, policy.plain_pods); }},
       {"nominate",
        [&](const Field& nominate) { ReadChoice(nominate, kNominate, policy.nominate); }},
       {"money", [&](const Field& money) { ReadMoney(money, policy.money_rate); }}});
}

void ReadContextMemory(const Field& field, Mebibytes& memory) {
  const std::optional<Mebibytes> read = MemoryOf(field);
  if (!read) return;
  memory = *read;
  if (memory > kMostContextMemory) field.Fail("an amount of memory of at most 16Gi");
}

void ReadLimit(const Field& field, std::vector<SharingLimit>& limits) {
  SharingLimit limit;
  bool limits_something = false;
  const auto read_model = [&](const Field& model) {
    Assign(limit.model, ModelOf(model));
    const bool again = std::any_of(limits.begin(), limits.end(), [&](const SharingLimit& earlier) {
      return !limit.model.empty() && earlier.model == limit.model;
    });
    if (again) model.Fail("every model once");
  };
  const bool read =
      field.ReadMembers({{"model", read_model, "a GPU model name or \"any\""},
                         {"maxPodsPerGpu",
                          [&](const Field& max) {
                            limits_something = true;
                            ReadInteger(max, 1, kMaxPodsPerGpu, limit.max_pods_per_gpu);
                          }},
                         {"contextMemory", [&](const Field& memory) {
                            limits_something = true;
                            ReadContextMemory(memory, limit.context_memory);
                          }}});
  if (read && !limits_something) field.Fail("maxPodsPerGpu or contextMemory");
  limits.push_back(std::move(limit));
}

void ReadSharing(const Field& field, GpuPolicy& policy) {
  field.ReadMembers({{"unenforced",
                      [&](const Field& unenforced) {
                        ReadChoice(unenforced, kPermissions, policy.unenforced_sharing);
                        policy.own.unenforced_sharing = policy.unenforced_sharing;
                      }},
                     {"requestsGreaterThanOne",
                      [&](const Field& several) {
                        Permission permission = Permission::kAllow;
                        if (!ReadChoice(several, kPermissions, permission)) return;
                        policy.several_replicas = permission;
                        policy.own.several_replicas = permission;
                      }},
                     {"limits", [&](const Field& limits) {
                        policy.sharing_limits.clear();
                        for (const Field& limit : limits.Items(0, kMostLimits)) {
                          ReadLimit(limit, policy.sharing_limits);
                        }
                        policy.own.sharing_limits = policy.sharing_limits;
                      }}});
}

void ReadDialects(const Field& field, std::vector<std::string>& dialects) {
  dialects.clear();
  for (const Field& item : field.Items(0, kDialects.size())) {
    std::string_view dialect;
    if (ReadChoice(item, kDialects, dialect)) AddOnce(item, std::string(dialect), dialects);
  }
}

// Takes a decimal number of at most 999 and without leading zeros off the front.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  const std::string_view before = text;
  const std::optional<int64_t> number = TakeDigits(text, 3);
  const bool padded = before.starts_with('0') && before.size() - text.size() > 1;
  return padded ? std::nullopt : number;
}

// The x of "2.x" or "2.x.y"; nullopt for other text.
std::optional<int> ParseHamiMinor(std::string_view text) {
  if (text.substr(0, 2) != "2.") return std::nullopt;
  text.remove_prefix(2);
  const std::optional<int64_t> minor = TakeNumber(text);
  if (!minor || *minor < 1 || *minor > kMaxHamiMinor) return std::nullopt;
  if (text.empty()) return static_cast<int>(*minor);
  if (text.front() != '.') return std::nullopt;
  text.remove_prefix(1);
  if (!TakeNumber(text) || !text.empty()) return std::nullopt;
  return static_cast<int>(*minor);
}

void ReadHamiVersion(const Field& field, int& minor) {
  const auto text = field.Text();
  const std::optional<int> parsed = text ? ParseHamiMinor(*text) : std::nullopt;
  if (parsed) {
    minor = *parsed;
  } else {
    field.Fail(fmt::format("text \"2.x\" or \"2.x.y\" with x in 1..{}", kMaxHamiMinor));
  }
}

void ReadSelectors(const Field& field, GpuPolicy& policy) {
  field.ReadMembers({{"nodes", [&](const Field& nodes) { ReadSelector(nodes, policy.nodes); }},
                     {"namespaces", [&](const Field& namespaces) {
                        if (policy.nodes) return namespaces.Fail("no namespaces beside nodes");
                        ReadSelector(namespaces, policy.namespaces);
                      }}});
}

// Keys of node labels, the first that a node has counts; given ones replace those of the level.
void ReadLabelKeys(const Field& field, std::vector<std::string>& keys) {
  keys.clear();
  for (const Field& item : field.Items(0, kMostDomainLabels)) {
    const auto key = item.Text();
    if (key && !key->empty() && key->size() <= kMaxLabelKey) {
      AddOnce(item, std::string(*key), keys);
    } else {
      item.Fail(fmt::format("the key of a node label, at most {} bytes", kMaxLabelKey));
    }
  }
}

void ReadTopology(const Field& field, GpuPolicy& policy) {
  const auto level = [&policy](GangLevel of) {
    return [&policy, of](const Field& keys) {
      ReadLabelKeys(keys, policy.domains.of_level[static_cast<size_t>(of)]);
    };
  };
  field.ReadMembers(
      {{"default", [&](const Field& wish) { ReadChoice(wish, kTopologies, policy.topology); }},
       {"labels", [&](const Field& labels) {
          labels.ReadMembers({{"clique", level(GangLevel::kClique)},
                              {"rack", level(GangLevel::kRack)},
                              {"block", level(GangLevel::kBlock)},
                              {"zone", level(GangLevel::kZone)}});
        }}});
}

void ReadWait(const Field& field, GpuPolicy& policy) {
  const std::optional<Millis> time = DurationOf(field);
  if (!time) return;
  if (*time <= kMostWaitForNodes) {
    policy.wait_for_nodes = *time;
  } else {
    field.Fail("a duration of at most 1h");
  }
}

void ReadPreemption(const Field& field, GpuPolicy& policy) {
  field.ReadMembers(
      {{"actor", [&](const Field& actor) { ReadChoice(actor, kActors, policy.actor); }},
       {"waitForNodes", [&](const Field& time) { ReadWait(time, policy); }}});
}

// "Apply", or {"mode":"Apply","window":{...}}.
void ReadMig(const Field& field, GpuPolicy& policy) {
  policy.mig_window.reset();
  if (field.Text()) {
    ReadChoice(field, kMigModes, policy.mig);
    return;
  }
  field.ReadMembers({{"mode", [&](const Field& mode) { ReadChoice(mode, kMigModes, policy.mig); },
                      "\"Off\", \"Advise\" or \"Apply\""},
                     {"window", [&](const Field& window) {
                        MigWindow read;
                        read.hours = WeekHoursOf(window, &read.zone);
                        policy.mig_window = std::move(read);
                      }}});
}

void ReadSpec(const Field& spec, GpuPolicy& policy) {
  // What is said of pods holds wherever they go.
  const auto of_pods = [&policy](Field::Reader read) -> Field::Reader {
    return [&policy, read = std::move(read)](const Field& field) {
      if (policy.nodes) return field.Fail("to be absent beside spec.selector.nodes");
      read(field);
    };
  };
  spec.ReadMembers(
      {{"selector", [&](const Field& selector) { ReadSelectors(selector, policy); }},
       {"placement", of_pods([&](const Field& field) { ReadPlacement(field, policy); })},
       {"topology", of_pods([&](const Field& field) { ReadTopology(field, policy); })},
       {"sharing", [&](const Field& sharing) { ReadSharing(sharing, policy); }},
       {"dialects", of_pods([&](const Field& field) { ReadDialects(field, policy.dialects); })},
       {"unassigned",
        of_pods([&](const Field& field) { ReadChoice(field, kPermissions, policy.unassigned); })},
       {"preemption", of_pods([&](const Field& field) { ReadPreemption(field, policy); })},
       {"onUnhealthy",
        [&](const Field& field) {
          ReadChoice(field, kOnUnhealthy, policy.on_unhealthy);
          policy.own.on_unhealthy = policy.on_unhealthy;
        }},
       {"onInterruption",
        [&](const Field& field) {
          ReadChoice(field, kOnInterruption, policy.on_interruption);
          policy.own.on_interruption = policy.on_interruption;
        }},
       {"onIdle", of_pods([&](const Field& field) { ReadChoice(field, kOnIdle, policy.on_idle); })},
       {"evictingEdits", of_pods([&](const Field& field) {
          ReadChoice(field, kEvictingEdits, policy.evicting_edits);
        })},
       {"mig", of_pods([&](const Field& mig) { ReadMig(mig, policy); })},
       {"consolidate",
        of_pods([&](const Field& field) { ReadChoice(field, kConsolidate, policy.consolidate); })},
       {"deletionCost", of_pods([&](const Field& field) {
          ReadChoice(field, kDeletionCost, policy.deletion_cost);
        })},
       {"provisioning", of_pods([&](const Field& field) {
          ReadChoice(field, kProvisioning, policy.provisioning);
        })},
       {"agents", of_pods([&](const Field& agents) {
          agents.ReadMembers({{"hamiVersion", [&](const Field& version) {
                                 ReadHamiVersion(version, policy.hami_minor);
                               }}});
        })}});
  if (!policy.nodes) policy.own = {};
}

}  // namespace

absl::StatusOr<GpuPolicy> DecodeGpuPolicy(std::string_view json, const GpuPolicy& defaults) {
  ObjectHead head;
  head.name = defaults.name;
  GpuPolicy policy = defaults;
  TRANCHE_RETURN_IF_ERROR(ReadDeclared("GPUPolicy", json, SpecPresence::kOptional, head,
                                       [&](const Field& spec) { ReadSpec(spec, policy); }));
  policy.name = head.name;
  return policy;
}

}  // namespace tranche
