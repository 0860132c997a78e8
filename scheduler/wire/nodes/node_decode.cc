#include "scheduler/wire/nodes/node_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/resource_amount.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "scheduler/wire/nodes/node_agent.h"
#include "scheduler/wire/nodes/node_links.h"
#include "topology/base/status.h"
#include "topology/gpu_model.h"
#include "topology/machine/machine_catalog.h"
#include "topology/machine/machine_parse.h"
#include "topology/mig.h"
#include "topology/vgpu.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kCordonKey = "hami.io/device-cordon";
constexpr std::string_view kTopologyKey = "tranche.dev/topology";
constexpr std::string_view kScoreKey = "hami.io/node-nvidia-score";
constexpr std::string_view kVgpuManagerTopologyKey = "nvidia.com/node-device-topology";
constexpr int kPointsOfNvlink = 100;
constexpr std::string_view kProbeKey = "tranche.dev/probe";
constexpr int64_t kMaxSlices = 64;
constexpr std::size_t kMostMatrixProblems = 8;

// Collects the facts of one node; what cannot be read becomes a problem, not an error.
class NodeReader {
 public:
  absl::StatusOr<NodeFacts> Read(Element node) {
    const std::optional<Object> object = reader_.AsObject(node, "node");
    if (!object) return reader_.status();
    const std::optional<Object> metadata = reader_.ReadObject(*object, "metadata", "node");
    if (!metadata) reader_.Fail("expected object, found nothing, in node.metadata");
    if (!reader_.ok()) return reader_.status();
    ReadMetadata(*metadata);
    if (const std::optional<Object> spec = reader_.ReadObject(*object, "spec", "node")) {
      facts_.cordoned = reader_.ReadBool(*spec, "unschedulable", "spec").value_or(false);
      ReadTaints(*spec);
    }
    if (const std::optional<Object> status = reader_.ReadObject(*object, "status", "node")) {
      ReadStatus(*status);
    }
    if (!reader_.ok()) return reader_.status();
    ReadLabels();
    ReadMigLabels();
    ReadOperatorState();
    ReadAnnotations();
    return std::move(facts_);
  }

 private:
  void ReadMetadata(Object metadata) {
    facts_.name = NodeName(reader_.ReadText(metadata, "name", "metadata"));
    if (facts_.name.empty()) reader_.Fail("expected a name, found none, in metadata.name");
    facts_.uid = NodeUid(reader_.ReadText(metadata, "uid", "metadata"));
    labels_ = reader_.ReadTexts(metadata, "labels", "metadata");
    facts_.labels = LabelText(labels_);
    annotations_ = reader_.ReadTexts(metadata, "annotations", "metadata");
  }

  // Only those that keep pods away: PreferNoSchedule is a wish.
  void ReadTaints(Object spec) {
    constexpr std::string_view kWhere = "spec.taints";
    for (const Object taint : reader_.Objects(reader_.ReadArray(spec, "taints", "spec"), kWhere)) {
      const std::string_view effect = reader_.ReadText(taint, "effect", kWhere);
      if (effect != "NoSchedule" && effect != "NoExecute") continue;
      facts_.taints.push_back({std::string(reader_.ReadText(taint, "key", kWhere)),
                               std::string(reader_.ReadText(taint, "value", kWhere)),
                               std::string(effect)});
    }
  }

  void ReadStatus(Object status) {
    for (const Object condition :
         reader_.Objects(reader_.ReadArray(status, "conditions", "status"), "status.conditions")) {
      if (reader_.ReadText(condition, "type", "status.conditions") != "Ready") continue;
      ReadReady(condition);
    }
    std::map<std::string_view, ResourceCount> counts;
    ReadCounts(status, "capacity", &ResourceCount::capacity, counts);
    ReadCounts(status, "allocatable", &ResourceCount::allocatable, counts);
    for (const auto& [key, count] : counts) SetCount(key, count);
  }

  void ReadReady(Object condition) {
    constexpr std::string_view kWhere = "status.conditions";
    const std::string_view status = reader_.ReadText(condition, "status", kWhere);
    facts_.ready = status == "True";
    facts_.lost_since = std::nullopt;
    if (status != "Unknown") return;
    facts_.lost_since = ParseTime(reader_.ReadText(condition, "lastHeartbeatTime", kWhere));
    if (!facts_.lost_since) {
      facts_.lost_since = ParseTime(reader_.ReadText(condition, "lastTransitionTime", kWhere));
    }
  }

  void ReadCounts(Object status, std::string_view list, int64_t ResourceCount::*member,
                  std::map<std::string_view, ResourceCount>& counts) {
    const std::optional<Object> quantities = reader_.ReadObject(status, list, "status");
    if (!quantities) return;
    for (const auto field : *quantities) {
      if (field.key == "cpu" && list == "allocatable") facts_.cpu = CpuAmount(field.value);
      const bool ours = field.key == kGpuKey || field.key == kGpuSharedKey ||
                        field.key.starts_with(kMigKeyPrefix) || IsAgentResource(field.key);
      if (!IsQuantityType(field.value)) {
        reader_.Fail(fmt::format("expected quantity, found {}, in status.{} {}",
                                 DescribeElement(field.value), list, Quoted(field.key)));
      }
      if (!ours || field.value.is_null()) continue;
      const std::optional<int64_t> amount = WholeAmount(field.value);
      if (!amount) {
        Problem(fmt::format("whole number from 0 to {}", kMaxAmount), DescribeElement(field.value),
                fmt::format("status.{} {}", list, field.key));
      }
      counts[field.key].*member = amount.value_or(0);
    }
  }

  void SetCount(std::string_view key, const ResourceCount& count) {
    if (IsAgentResource(key)) {
      facts_.agent_amounts.push_back({std::string(key), count});
      return;
    }
    devices_ += count.allocatable;
    if (key == kGpuKey) {
      facts_.gpu = count;
    } else if (key == kGpuSharedKey) {
      facts_.gpu_shared = count;
    } else {
      std::optional<MigResourceName> name = ParseMigResourceTail(key.substr(kMigKeyPrefix.size()));
      if (!name) {
        Problem("nvidia.com/mig-<slices>g.<memory>gb", Quoted(key), "status.allocatable");
        return;
      }
      MigResourceFacts mig;
      mig.name = *std::move(name);
      mig.count = count;
      facts_.mig.push_back(std::move(mig));
    }
  }

  std::optional<std::string_view> Label(std::string_view key) const {
    const auto found = labels_.find(std::string(key));
    if (found == labels_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<int64_t> IntegerLabel(std::string_view key) {
    const std::optional<std::string_view> text = Label(key);
    if (!text || text->empty()) return std::nullopt;
    const std::optional<int64_t> value = ParsePlainInteger(*text);
    if (value && *value >= 0 && *value <= kMaxAmount) return value;
    Problem(fmt::format("whole number from 0 to {}", kMaxAmount), Quoted(*text),
            fmt::format("label {}", key));
    return std::nullopt;
  }

  // A size of 0 MiB is feature discovery's way to say that it does not know one.
  std::optional<Mebibytes> MemoryLabel(std::string_view key) {
    const std::optional<int64_t> mib = IntegerLabel(key);
    if (!mib || *mib == 0) return std::nullopt;
    return Mebibytes::Of(*mib);
  }

  void ReadLabels() {
    facts_.product = Label("nvidia.com/gpu.product").value_or("");
    facts_.machine = Label("nvidia.com/gpu.machine").value_or("");
    facts_.memory = MemoryLabel("nvidia.com/gpu.memory");
    facts_.count = IntegerLabel("nvidia.com/gpu.count");
    facts_.replicas = IntegerLabel("nvidia.com/gpu.replicas");
    constexpr std::string_view kSharing = "nvidia.com/gpu.sharing-strategy";
    const std::string_view sharing = Label(kSharing).value_or("");
    if (sharing == "time-slicing") {
      facts_.sharing = SharingMethod::kTimeSlicing;
    } else if (sharing == "mps") {
      facts_.sharing = SharingMethod::kMps;
    } else if (!sharing.empty() && sharing != "none") {
      Problem("none, time-slicing or mps", Quoted(sharing), fmt::format("label {}", kSharing));
    }
    constexpr std::string_view kStrategy = "nvidia.com/mig.strategy";
    const std::string_view strategy = Label(kStrategy).value_or("");
    if (strategy == "single") {
      facts_.mig_strategy = MigStrategy::kSingle;
    } else if (strategy == "mixed") {
      facts_.mig_strategy = MigStrategy::kMixed;
    } else if (!strategy.empty() && strategy != "none") {
      Problem("none, single or mixed", Quoted(strategy), fmt::format("label {}", kStrategy));
    }
    ReadVgpu();
    constexpr std::string_view kLayout = "tranche.dev/mig-layout";
    const std::string_view layout = Label(kLayout).value_or("");
    facts_.mig_planned = layout == "planned";
    if (!facts_.mig_planned && !layout.empty()) {
      Problem("planned", Quoted(layout), fmt::format("label {}", kLayout));
    }
  }

  // The product of a guest names its vGPU type, and with it the part of a card that it has.
  void ReadVgpu() {
    constexpr std::string_view kVgpu = "nvidia.com/vgpu.present";
    if (Label(kVgpu) != "true" || VgpuTypeOf(facts_.product)) return;
    Problem("a known vGPU type, or its GPUs are charged as whole ones", Quoted(facts_.product),
            fmt::format("label nvidia.com/gpu.product beside {}", kVgpu));
  }

  // Labels keep the profile's own key also where the resource is renamed to .shared.
  void ReadMigLabels() {
    for (MigResourceFacts& mig : facts_.mig) {
      const std::string key = FormatMigResource({mig.name.profile, false});
      mig.replicas = std::max<int64_t>(1, IntegerLabel(key + ".replicas").value_or(1));
      mig.memory = MemoryLabel(key + ".memory");
      const std::optional<int64_t> slices = IntegerLabel(key + ".slices.gi");
      if (slices && *slices > 0 && *slices <= kMaxSlices) {
        mig.gi_slices = static_cast<int>(*slices);
      }
    }
  }

  void ReadOperatorState() {
    constexpr std::string_view kMigState = "nvidia.com/mig.config.state";
    const auto busy = [this](std::string_view key, auto predicate) {
      const std::string_view value = Label(key).value_or("");
      if (facts_.operator_busy.empty() && predicate(value)) {
        facts_.operator_busy = fmt::format("{}={}", key, value);
      }
    };
    busy("nvidia.com/gpu-driver-upgrade-state",
         [](std::string_view state) { return !state.empty() && state != "upgrade-done"; });
    busy("nvidia.com/gpu.deploy.device-plugin",
         [](std::string_view state) { return state.starts_with("paused"); });
    busy("nvidia.com/gpu.workload.config",
         [](std::string_view use) { return use == "vm-passthrough" || use == "vm-vgpu"; });
    busy(kMigState,
         [](std::string_view state) { return state == "pending" || state == "rebooting"; });
    // A failed change may have left some GPUs in another layout than the labels say.
    if (Label(kMigState) == "failed" && devices_ > 0) {
      Problem("success", Quoted("failed"), fmt::format("label {}", kMigState));
    }
  }

  void ReadAnnotations() {
    NodeAgent shown = ReadNodeAgent(annotations_, facts_);
    facts_.agent = std::move(shown.agent);
    facts_.agent_unreadable = std::move(shown.unreadable);
    facts_.problems.insert(facts_.problems.end(), shown.problems.begin(), shown.problems.end());
    if (const auto found = annotations_.find(std::string(kCordonKey));
        found != annotations_.end()) {
      for (const std::string_view uuid : SplitList(found->second)) {
        if (!uuid.empty()) facts_.cordoned_devices.emplace_back(uuid);
      }
    }
    ReadLinks();
  }

  // Unreadable ones tell nothing; the next source does.
  void ReadLinks() {
    Annotation(kScoreKey, [this](std::string_view text) {
      TRANCHE_ASSIGN_OR_RETURN(facts_.scores, ParseHamiScores(text));
      return absl::OkStatus();
    });
    if (facts_.agent && facts_.agent->kind == AgentKind::kVgpuManager) ReadVgpuManagerLinks();
    Annotation(kProbeKey, [this](std::string_view text) {
      TRANCHE_ASSIGN_OR_RETURN(facts_.probe, ParseNodeProbe(text));
      return absl::OkStatus();
    });
    Annotation(kTopologyKey, [this](std::string_view text) {
      TRANCHE_ASSIGN_OR_RETURN(ParsedMachine parsed, ParseMachine(text));
      facts_.matrix = std::move(parsed.machine);
      for (std::size_t i = 0; i < std::min(parsed.problems.size(), kMostMatrixProblems); ++i) {
        facts_.problems.push_back(
            fmt::format("{}, in annotation {}", parsed.problems[i], kTopologyKey));
      }
      return absl::OkStatus();
    });
  }

  // Older agents do not see NVLinks through switches. Where it shows none, and the
  // board has some, its word would be the one that counts.
  void ReadVgpuManagerLinks() {
    Annotation(kVgpuManagerTopologyKey, [this](std::string_view text) {
      const std::vector<AgentDevice>& devices = facts_.agent->devices;
      TRANCHE_ASSIGN_OR_RETURN(std::vector<PairScore> scores, ParseVgpuManagerLinks(text, devices));
      const bool connected = std::ranges::any_of(
          scores, [](const PairScore& score) { return score.points >= kPointsOfNvlink; });
      if (!connected && HasNvlinks(static_cast<int>(devices.size()))) {
        return absl::InvalidArgumentError(
            fmt::format("expected NVLinks, which a board of {} has, found none; not used",
                        BaseProduct(facts_.product)));
      }
      facts_.scores = std::move(scores);
      return absl::OkStatus();
    });
  }

  bool HasNvlinks(int gpus) const {
    const std::shared_ptr<const Machine> board =
        CatalogueMachine(BaseProduct(facts_.product), facts_.machine, gpus);
    return board != nullptr && board->size() > 1 && board->link(0, 1).nvlinks > 0;
  }

  template <typename Read>
  void Annotation(std::string_view key, Read read) {
    const auto found = annotations_.find(std::string(key));
    if (found == annotations_.end() || found->second.empty()) return;
    const absl::Status status = read(found->second);
    if (status.ok()) return;
    const absl::string_view why = status.message();
    facts_.problems.push_back(
        fmt::format("{}, in annotation {}", std::string_view(why.data(), why.size()), key));
  }

  // `found` as it shall be shown.
  void Problem(std::string_view expected, std::string_view found, std::string_view where) {
    facts_.problems.push_back(fmt::format("expected {}, found {}, in {}", expected, found, where));
  }

  FieldReader reader_;
  NodeFacts facts_;
  Labels labels_;
  Labels annotations_;
  int64_t devices_ = 0;  // allocatable ones of every kind
};

}  // namespace

absl::StatusOr<NodeFacts> DecodeNode(Element node) { return NodeReader().Read(node); }

}  // namespace tranche::wire
