#include "scheduler/controllers/mig_controller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "quota/tree/limits.h"
#include "scheduler/advice/emptying.h"
#include "scheduler/controllers/mig_config_map.h"

namespace tranche {
namespace {

using metrics::MigOutcome;

constexpr const char* kLabel = "nvidia.com/mig.config";
// Until a file that could not be read is asked for again.
constexpr Millis kPostponed{270'000};
constexpr const char* kHeld = "its MIG layout is being changed";
constexpr const char* kEmptied = "it is being emptied for another MIG layout";
// Busy nodes looked at for one that would serve who waits.
constexpr std::size_t kMostBusy = 8;

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

bool IsBusy(const std::string& state) { return state == "pending" || state == "rebooting"; }

std::string StepsText(const NodeRepartition& plan) {
  std::string text;
  for (const RepartitionStep& step : plan.steps) {
    text += fmt::format("{}GPU {}: {} -> {}", text.empty() ? "" : ", ", step.gpu,
                        GeometryText(step.from), GeometryText(step.to));
  }
  return text;
}

}  // namespace

template <typename Answer>
struct MigController::Inbox {
  void Put(Answer answer) {
    const absl::MutexLock lock(&mutex);
    given = std::move(answer);
  }
  std::optional<Answer> answer() {
    const absl::MutexLock lock(&mutex);
    return given;
  }

 private:
  absl::Mutex mutex;
  std::optional<Answer> given ABSL_GUARDED_BY(mutex);
};

struct MigController::Change {
  NodeRepartition plan;
  std::string config_before;
  std::string state_before;
  Layout layout_before;
  Layout layout_after;
  Instant begun;
  bool sure = false;          // the server said that it has the label
  bool seen_ours = false;     // the node had our label
  bool seen_working = false;  // mig-manager was at it
  bool told = false;          // people, that no answer comes
};

MigController::MigController(NodeWrites& nodes, ConfigMaps& config_maps, ObjectWrites& objects,
                             metrics::Metrics& metrics, MigConfigMap where, Hooks hooks)
    : nodes_(nodes),
      config_maps_(config_maps),
      objects_(objects),
      metrics_(metrics),
      where_(std::move(where)),
      hooks_(std::move(hooks)) {}

MigController::~MigController() = default;

void MigController::Tick(Instant now) {
  if (!hooks_.fresh()) return;
  if (read_) return FileRead(now);
  if (written_) return change_ ? LabelAnswered(now) : FileWritten(now);
  if (change_) {
    if (now - *looked_ >= kWatchEvery) Watch(now);
    return;
  }
  if (looked_ && now - *looked_ < kPlanEvery) return;
  if (emptying_) return GoOnEmptying(now);
  if (hooks_.mode() == MigMode::kApply) LookForWork(now);
}

void MigController::LookForWork(Instant now) {
  looked_ = now;
  std::erase_if(refused_, [now](const auto& entry) { return now - entry.second >= kNotAgain; });
  const AdviceCase fleet = hooks_.look();
  // One node at a time; after a restart it may be one that was ours.
  const bool busy = std::ranges::any_of(
      fleet.nodes, [](const AdviceNode& node) { return IsBusy(node.mig_config_state); });
  if (busy) return;
  const RepartitionPlan plan = hooks_.plan(fleet);
  const auto chosen = std::ranges::find_if(
      plan.nodes, [&](const NodeRepartition& node) { return MayTry(fleet, node); });
  if (chosen != plan.nodes.end()) return TakeUp(fleet, *chosen, now);
  if (hooks_.may_empty(now)) LookForBusy(fleet, now);
}

void MigController::TakeUp(const AdviceCase& fleet, const NodeRepartition& node, Instant now) {
  const auto written = in_file_.find(node.config_name);
  if (written == in_file_.end()) {
    ReadFile(node);
  } else if (now - written->second >= kSpread) {
    Begin(node, *Find(fleet, node.node), now);
  }
}

void MigController::LookForBusy(const AdviceCase& fleet, Instant now) {
  std::erase_if(emptied_, [now](const auto& entry) { return now - entry.second >= kNotAgain; });
  std::vector<std::pair<int64_t, const AdviceNode*>> busy;  // lost, node
  for (const AdviceNode& node : fleet.nodes) {
    const bool cut = node.has_mig_manager && node.open && node.mig_strategy == MigStrategy::kMixed;
    if (!cut || emptied_.contains(node.name) || NobodyHolds(fleet, node)) continue;
    int64_t lost = 0;
    bool moves = true;
    const auto here = static_cast<std::size_t>(&node - fleet.nodes.data());
    for (auto pod = std::ranges::lower_bound(fleet.pods, here, {}, &AdvicePod::node);
         pod != fleet.pods.end() && pod->node == here; ++pod) {
      lost = AddSaturating(lost, pod->lost_gpu_ms);
      moves = moves && (pod->moves_for_layout || pod->leaves);
    }
    if (moves) busy.emplace_back(lost, &node);
  }
  std::ranges::stable_sort(busy, {}, [](const auto& entry) { return entry.first; });
  std::size_t looked_at = 0;
  for (const auto& [lost, node] : busy) {
    if (++looked_at > kMostBusy) return;
    const auto moved = PlanEmptying(fleet, node->name, EmptyFor::kLayout, {});
    if (!moved || !WouldServe(fleet, *node)) continue;
    hooks_.hold(node->name, kEmptied);
    if (!hooks_.empty(node->name)) {
      hooks_.hold(node->name, "");
      emptied_[node->name] = now;
      continue;
    }
    emptying_ = Emptying{node->name, now};
    emptying_nodes_ = 1;
    const std::string what = fmt::format(
        "it is emptied for another MIG layout: {} pod{} may be moved and have room "
        "elsewhere",
        moved->moves.size(), moved->moves.size() == 1 ? "" : "s");
    spdlog::info("node {}: {}", node->name.str(), what);
    return Tell(node->name, Gravity::kNormal, what, now);
  }
}

bool MigController::WouldServe(const AdviceCase& fleet, const AdviceNode& node) const {
  const RepartitionPlan plan = hooks_.plan(WithoutWorkOn(fleet, node.name));
  return plan.waiting_served > 0 &&
         std::ranges::any_of(plan.nodes, [&](const NodeRepartition& changed) {
           return changed.node == node.name && changed.guards.empty() &&
                  changed.config_name != node.mig_config &&
                  !refused_.contains({changed.node, changed.config_name});
         });
}

void MigController::GoOnEmptying(Instant now) {
  looked_ = now;
  AdviceCase fleet = hooks_.look();
  const NodeName name = emptying_->node;
  const AdviceNode* const node = Find(fleet, name);
  if (node == nullptr) return StopEmptying("the node is gone, or has no GPUs", now);
  if (hooks_.mode() != MigMode::kApply || !hooks_.may_empty(now)) {
    return StopEmptying("mig.window of the GPUPolicy is over", now);
  }
  if (now - emptying_->begun >= kMostEmptying) return StopEmptying("it took too long", now);
  if (!NobodyHolds(fleet, *node)) {
    if (!PlanEmptying(fleet, name, EmptyFor::kLayout, {})) {
      return StopEmptying("not all of its work may be moved and has room elsewhere any more", now);
    }
    // What is borrowed may be other work by now.
    hooks_.empty(name);
    return;
  }
  // Held by us alone: others may come as soon as its layout is another.
  fleet.nodes[static_cast<std::size_t>(node - fleet.nodes.data())].open = true;
  const RepartitionPlan plan = hooks_.plan(fleet);
  const auto changed = std::ranges::find(plan.nodes, name, &NodeRepartition::node);
  if (changed == plan.nodes.end() || !MayTry(fleet, *changed)) {
    return StopEmptying("no other layout of it is to be made now", now);
  }
  TakeUp(fleet, *changed, now);
}

void MigController::StopEmptying(const std::string& why, Instant now) {
  const NodeName node = std::exchange(emptying_, std::nullopt)->node;
  hooks_.spare(node);
  hooks_.hold(node, "");
  emptying_nodes_ = 0;
  emptied_[node] = now;
  const std::string what = "it takes GPU pods again, with the layout it has: " + why;
  spdlog::info("node {}: {}", node.str(), what);
  Tell(node, Gravity::kNormal, what, now);
}

bool MigController::MayTry(const AdviceCase& fleet, const NodeRepartition& node) const {
  if (!node.guards.empty() || refused_.contains({node.node, node.config_name})) return false;
  const AdviceNode* const found = Find(fleet, node.node);
  // mig-manager acts on a label that changes.
  return found != nullptr && found->has_mig_manager && found->mig_config != node.config_name &&
         IsIdle(fleet, *found, node);
}

const AdviceNode* MigController::Find(const AdviceCase& fleet, const NodeName& name) {
  const auto found = std::ranges::find(fleet.nodes, name, &AdviceNode::name);
  return found == fleet.nodes.end() ? nullptr : &*found;
}

// Nobody uses the GPUs of the plan, as far as anybody can know: a pod on the node whose devices are
// a guess, or the device plugin's secret, may be on any of them.
bool MigController::IsIdle(const AdviceCase& fleet, const AdviceNode& node,
                           const NodeRepartition& plan) {
  if (node.load.devices_unknown) return false;
  const auto here = static_cast<std::size_t>(&node - fleet.nodes.data());
  const Inventory& inventory = node.inventory;
  const bool secret = inventory.knowledge == Knowledge::kCounts;
  const bool guessed = std::ranges::any_of(
      fleet.pods, [&](const AdvicePod& pod) { return pod.node == here && (secret || !pod.known); });
  if (guessed) return false;
  for (const RepartitionStep& step : plan.steps) {
    const auto card = std::ranges::find(inventory.cards, step.gpu, &Card::index);
    if (card == inventory.cards.end()) return false;
    const auto position = card - inventory.cards.begin();
    if (node.load.cards[static_cast<std::size_t>(position)] != CardLoad{}) return false;
    for (std::size_t pool = 0; pool < inventory.pools.size(); ++pool) {
      const std::vector<MigSlot>& slots = inventory.pools[pool].slots;
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        if (slots[slot].card == position && node.load.slots[pool][slot] != 0) return false;
      }
    }
  }
  return true;
}

MigController::Layout MigController::LayoutOf(const Inventory& inventory) {
  Layout layout;
  for (const Card& card : inventory.cards) {
    if (card.mode != CardMode::kMig) ++layout[""];
  }
  for (const MigPool& pool : inventory.pools) {
    layout[pool.profile] += static_cast<int64_t>(pool.slots.size());
  }
  std::erase_if(layout, [](const auto& entry) { return entry.second == 0; });
  return layout;
}

MigController::Layout MigController::LayoutAfter(Layout layout, const NodeRepartition& plan) {
  const auto add = [&layout](const Geometry& geometry, int64_t sign) {
    if (geometry.profiles.empty()) layout[""] += sign;
    for (const auto& [profile, count] : geometry.profiles) layout[profile] += sign * count;
  };
  for (const RepartitionStep& step : plan.steps) {
    add(step.from, -1);
    add(step.to, 1);
  }
  std::erase_if(layout, [](const auto& entry) { return entry.second == 0; });
  return layout;
}

void MigController::ReadFile(const NodeRepartition& node) {
  writing_ = node;
  read_ = std::make_shared<Inbox<ConfigMapLookup>>();
  config_maps_.ReadConfigMap(
      {where_.ns, where_.name}, MigConfigMap::kKey,
      [inbox = read_](ConfigMapLookup lookup) { inbox->Put(std::move(lookup)); });
}

void MigController::FileRead(Instant now) {
  const std::optional<ConfigMapLookup> lookup = read_->answer();
  if (!lookup) return;
  read_.reset();
  const NodeRepartition node = *std::exchange(writing_, std::nullopt);
  if (lookup->kind == ConfigMapLookup::Kind::kFailed) {
    spdlog::warn("ConfigMap {}/{} could not be read, no MIG layout is changed: {}", where_.ns,
                 where_.name, lookup->message);
    looked_ = now + kPostponed;
    return;
  }
  const absl::StatusOr<std::string> text =
      AddMigConfig(lookup->text, node.config_name, node.config_yaml);
  if (!text.ok()) {
    return Abandon(node.node, node.config_name,
                   fmt::format("ConfigMap {}/{} cannot take the layout: {}", where_.ns, where_.name,
                               std::string(text.status().message())),
                   now);
  }
  if (*text == lookup->text) {
    in_file_[node.config_name] = now;
    return;
  }
  writing_ = node;
  written_ = std::make_shared<Inbox<WriteResult>>();
  config_maps_.PutConfigMap(
      {where_.ns, where_.name, MigConfigMap::kKey, *text, lookup->version},
      [inbox = written_](WriteResult result) { inbox->Put(std::move(result)); });
}

void MigController::FileWritten(Instant now) {
  const std::optional<WriteResult> result = written_->answer();
  if (!result) return;
  written_.reset();
  const NodeRepartition node = *std::exchange(writing_, std::nullopt);
  if (result->kind == WriteResult::Kind::kDone) {
    in_file_[node.config_name] = now;
    spdlog::info("MIG layout {} written to ConfigMap {}/{}", node.config_name, where_.ns,
                 where_.name);
  } else if (result->kind == WriteResult::Kind::kRejected && result->http_code != 409) {
    Abandon(node.node, node.config_name,
            fmt::format("ConfigMap {}/{} could not be written: code {}: {}", where_.ns, where_.name,
                        result->http_code, result->message),
            now);
  }
  // Otherwise nobody knows what is there now: it is read again when its turn comes.
}

void MigController::Begin(const NodeRepartition& plan, const AdviceNode& before, Instant now) {
  change_ = std::make_unique<Change>();
  change_->plan = plan;
  change_->config_before = before.mig_config;
  change_->state_before = before.mig_config_state;
  change_->layout_before = LayoutOf(before.inventory);
  change_->layout_after = LayoutAfter(change_->layout_before, plan);
  change_->begun = now;
  pending_ = 1;
  if (emptying_) {
    hooks_.spare(plan.node);
    emptied_[plan.node] = now;
    emptying_.reset();
    emptying_nodes_ = 0;
  }
  hooks_.hold(plan.node, kHeld);
  // From here on nobody new comes; who came since the plan was made has its GPU.
  const AdviceCase fleet = hooks_.look();
  const AdviceNode* const node = Find(fleet, plan.node);
  const bool same = node != nullptr && node->mig_config == before.mig_config &&
                    LayoutOf(node->inventory) == change_->layout_before;
  if (!same || !IsIdle(fleet, *node, plan)) {
    spdlog::info("node {}: its GPUs were taken before its MIG layout could be changed",
                 plan.node.str());
    return LetGo();
  }
  const std::string what =
      fmt::format("label {} from {} to {} ({})", kLabel, OrNone(before.mig_config),
                  plan.config_name, StepsText(plan));
  spdlog::info("node {}: {}", plan.node.str(), what);
  Tell(plan.node, Gravity::kNormal, what, now);
  SetLabel(now);
}

void MigController::SetLabel(Instant now) {
  looked_ = now;
  written_ = std::make_shared<Inbox<WriteResult>>();
  nodes_.LabelNode({change_->plan.node, kLabel, change_->plan.config_name},
                   [inbox = written_](WriteResult result) { inbox->Put(std::move(result)); });
}

void MigController::LabelAnswered(Instant now) {
  const std::optional<WriteResult> result = written_->answer();
  if (!result) return;
  written_.reset();
  if (result->kind == WriteResult::Kind::kDone) {
    change_->sure = true;
  } else if (result->kind == WriteResult::Kind::kRejected) {
    Settle(MigOutcome::kRefused,
           fmt::format("the label was refused: code {}: {}", result->http_code, result->message),
           now);
  } else {
    // Whether it was set, the node will tell.
    spdlog::warn("node {}: no answer about label {}: {}", change_->plan.node.str(), kLabel,
                 result->message);
  }
}

void MigController::Watch(Instant now) {
  looked_ = now;
  const AdviceCase fleet = hooks_.look();
  const AdviceNode* const node = Find(fleet, change_->plan.node);
  if (node == nullptr) {
    // While its device plugin is stopped, a node looks like one without GPUs.
    if (now - change_->begun < kPatience) return;
    return Settle(MigOutcome::kGone, "the node is gone, or has no GPUs", now);
  }
  if (node->mig_config == change_->plan.config_name) {
    WatchOurLabel(*node, now);
  } else {
    WatchAnotherLabel(*node, now);
  }
}

void MigController::WatchAnotherLabel(const AdviceNode& node, Instant now) {
  const bool as_before = !change_->seen_ours && node.mig_config == change_->config_before;
  const bool patient = now - change_->begun < kPatience;
  // The watch may not have shown it yet, or the label is not set: setting it twice is harmless.
  if (as_before && patient && change_->sure) return;
  if (as_before && patient) return SetLabel(now);
  if (as_before && !change_->sure) {
    return Settle(MigOutcome::kRefused, "the label could not be set", now);
  }
  Settle(MigOutcome::kOverridden,
         fmt::format("somebody set label {} to {}", kLabel, OrNone(node.mig_config)), now);
}

void MigController::WatchOurLabel(const AdviceNode& node, Instant now) {
  const std::string& state = node.mig_config_state;
  change_->seen_ours = true;
  if (IsBusy(state)) change_->seen_working = true;
  const Layout layout = LayoutOf(node.inventory);
  // What the label says may still be about the layout before.
  const bool answered =
      change_->seen_working || state != change_->state_before || layout != change_->layout_before;
  if (answered && state == "failed") {
    return Settle(MigOutcome::kFailed, "mig-manager failed", now);
  }
  const bool over = answered && state == "success";
  if (over && layout == change_->layout_after) return Settle(MigOutcome::kDone, "", now);
  if (now - change_->begun < kPatience) return;
  if (over) {
    return Settle(MigOutcome::kDiffers, "the node advertises another layout than was planned", now);
  }
  if (std::exchange(change_->told, true)) return;
  const std::string what = fmt::format(
      "no end of the change to MIG layout {} after {} minutes, label {}.state is {}; the node is "
      "kept from new pods until mig-manager answers or the label is set back",
      node.mig_config, std::chrono::duration_cast<std::chrono::minutes>(kPatience).count(), kLabel,
      OrNone(state));
  spdlog::warn("node {}: {}", node.name.str(), what);
  Tell(node.name, Gravity::kWarning, what, now);
}

void MigController::Settle(MigOutcome outcome, const std::string& detail, Instant now) {
  const NodeName node = change_->plan.node;
  const std::string config = change_->plan.config_name;
  metrics_.CountMigChange(outcome);
  LetGo();
  if (outcome == MigOutcome::kDone) {
    const std::string what = fmt::format("MIG layout {} is in place", config);
    spdlog::info("node {}: {}", node.str(), what);
    return Tell(node, Gravity::kNormal, what, now);
  }
  // The file the node reads may be another one by now.
  if (outcome == MigOutcome::kFailed) in_file_.erase(config);
  Abandon(node, config, detail, now);
}

void MigController::LetGo() {
  hooks_.hold(change_->plan.node, "");
  change_.reset();
  pending_ = 0;
}

void MigController::Abandon(const NodeName& node, const std::string& config, const std::string& why,
                            Instant now) {
  refused_[{node, config}] = now;
  const std::string what =
      fmt::format("MIG layout {} given up for {} minutes: {}", config,
                  std::chrono::duration_cast<std::chrono::minutes>(kNotAgain).count(), why);
  spdlog::warn("node {}: {}", node.str(), what);
  Tell(node, Gravity::kWarning, what, now);
}

void MigController::Tell(const NodeName& node, Gravity gravity, const std::string& note,
                         Instant now) {
  EventWrite event;
  event.kind = "Node";
  event.name = node.str();
  event.uid = node.str();  // by which kubectl describe finds events of a node
  event.warning = gravity == Gravity::kWarning;
  event.reason = "MigLayout";
  event.action = "Repartitioning";
  event.note = note;
  event.when = now;
  objects_.Emit(std::move(event), [](const WriteResult& result) {
    if (result.kind == WriteResult::Kind::kDone) return;
    spdlog::debug("an event about a MIG layout could not be written: code {}: {}", result.http_code,
                  result.message);
  });
}

}  // namespace tranche
