#include "scheduler/cli/replay/recorded_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "policy/decode.h"
#include "policy/policy_store.h"
#include "scheduler/foresight/runtimes.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/text_fields.h"
#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/records/allocation_json.h"
#include "topology/base/status.h"

namespace tranche::replay {
namespace {

using ledger::RecordedChange;
using ledger::RecordedPast;
using ledger::RecordedPod;

constexpr std::string_view kNode = "Node";
// A controller makes a pod anew at most so long before or after the evicted one is gone.
constexpr std::chrono::minutes kMadeAnewWithin{10};

absl::Status Unreadable(const std::string& what, const absl::Status& why) {
  return absl::DataLossError(
      fmt::format("{} as the ledger recorded it: {}", what, std::string(why.message())));
}

// The policies and nodes of the span, moment by moment.
class TurnReader {
 public:
  TurnReader(const RecordedPast& recorded, const WorkQuery& query)
      : recorded_(recorded), query_(query) {
    for (const ObjectEdit& edit : query.edits) edited_.insert({edit.kind, edit.name});
  }

  absl::StatusOr<std::vector<PastTurn>> Read() {
    TRANCHE_RETURN_IF_ERROR(ReadDefaults());
    store_.emplace(defaults_);
    std::vector<PastTurn> turns;
    turns.push_back({query_.from, nullptr, {}, {}, {}, {}});
    for (const ObjectEdit& edit : query_.edits) TRANCHE_RETURN_IF_ERROR(Make(edit, turns.back()));
    for (const RecordedChange& change : recorded_.changes) {
      const Instant at = std::max(change.at, query_.from);
      if (at != turns.back().at) {
        Finish(turns.back());
        turns.push_back({at, nullptr, {}, {}, {}, {}});
      }
      TRANCHE_RETURN_IF_ERROR(Take(change, turns.back()));
    }
    Finish(turns.back());
    TRANCHE_RETURN_IF_ERROR(CheckEdits());
    std::erase_if(turns, [this](const PastTurn& turn) {
      return turn.at != query_.from && turn.set == nullptr && turn.nodes.empty() &&
             turn.gone.empty() && turn.gangs.empty();
    });
    return turns;
  }

 private:
  const std::string& TextOf(const RecordedChange& change) const {
    return recorded_.texts.at(*change.text);
  }

  // What the server's own settings said; the first that is known where they changed.
  absl::Status ReadDefaults() {
    for (const RecordedChange& change : recorded_.changes) {
      if (change.kind != kServerPolicyKind || !change.text) continue;
      const absl::StatusOr<GpuPolicy> policy = DecodeGpuPolicy(TextOf(change), defaults_);
      if (!policy.ok()) return Unreadable("the server's policy", policy.status());
      defaults_ = *policy;
      defaults_.name = GpuPolicy().name;
      break;
    }
    if (query_.strategy) defaults_.strategy = *query_.strategy;
    return absl::OkStatus();
  }

  absl::Status Make(const ObjectEdit& edit, PastTurn& turn) {
    if (edit.kind != kNode) {
      edit.json.empty() ? store_->Remove(edit.kind, edit.name)
                        : store_->Upsert(edit.kind, edit.name, edit.json);
      changed_ = true;
      return absl::OkStatus();
    }
    if (edit.json.empty()) return absl::OkStatus();
    absl::StatusOr<NodeFacts> node = NodeOf(edit.json);
    if (!node.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", edit.where, std::string(node.status().message())));
    }
    turn.nodes.push_back(*std::move(node));
    return absl::OkStatus();
  }

  absl::StatusOr<NodeFacts> NodeOf(std::string_view json) {
    TRANCHE_ASSIGN_OR_RETURN(const wire::Element element, parser_.Parse(json));
    return wire::DecodeNode(element);
  }

  absl::Status Take(const RecordedChange& change, PastTurn& turn) {
    if (change.kind == kServerPolicyKind || edited_.contains({change.kind, change.name})) {
      return absl::OkStatus();
    }
    if (change.kind == kGangSizeKind) {
      const std::size_t slash = change.name.find('/');
      const std::optional<int64_t> size =
          change.text ? wire::ParsePlainInteger(TextOf(change)) : std::optional<int64_t>(0);
      if (slash == std::string::npos || !size) return absl::OkStatus();
      turn.gangs.push_back({change.name.substr(0, slash), change.name.substr(slash + 1),
                            static_cast<int>(std::clamp<int64_t>(*size, 0, 1'000'000))});
      return absl::OkStatus();
    }
    if (change.kind != kNode) {
      change.text ? store_->Upsert(change.kind, change.name, TextOf(change))
                  : store_->Remove(change.kind, change.name);
      changed_ = true;
      return absl::OkStatus();
    }
    // The last of a moment counts.
    const NodeName name(change.name);
    std::erase_if(turn.nodes, [&name](const NodeFacts& node) { return node.name == name; });
    std::erase(turn.gone, name);
    if (!change.text) {
      turn.gone.push_back(name);
      return absl::OkStatus();
    }
    absl::StatusOr<NodeFacts> node = NodeOf(TextOf(change));
    if (!node.ok()) return Unreadable("node " + change.name, node.status());
    turn.nodes.push_back(*std::move(node));
    return absl::OkStatus();
  }

  void Finish(PastTurn& turn) {
    if (!std::exchange(changed_, false)) return;
    store_->Commit();
    auto set = std::make_shared<PolicySet>(store_->set());
    if (query_.strategy) {
      for (GpuPolicy& policy : set->policies) policy.strategy = *query_.strategy;
    }
    turn.set = std::move(set);
    turn.defaults = defaults_;
  }

  absl::Status CheckEdits() const {
    for (const Finding& finding : store_->findings()) {
      if (finding.type != "Ready" || finding.status) continue;
      if (!edited_.contains({finding.kind, finding.name})) continue;
      return absl::InvalidArgumentError(fmt::format("{} {} would not be in force: {}: {}",
                                                    finding.kind, finding.name, finding.reason,
                                                    finding.message));
    }
    return absl::OkStatus();
  }

  const RecordedPast& recorded_;
  const WorkQuery& query_;
  std::set<std::pair<std::string, std::string>> edited_;  // kind, name
  GpuPolicy defaults_;
  std::optional<PolicyStore> store_;
  bool changed_ = true;  // since the last Commit
  wire::Parser parser_;
};

Millis MedianOf(std::vector<Millis>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Pods as pieces of work.
class WorkReader {
 public:
  WorkReader(const RecordedPast& recorded, const WorkQuery& query, RecordedWork& out)
      : recorded_(recorded), query_(query), out_(out) {}

  absl::Status Read() {
    FindSuccessors();
    std::map<int64_t, std::vector<Millis>> ran;
    for (const RecordedPod& pod : recorded_.pods) {
      if (const std::optional<Millis> needed = RanToEnd(pod)) ran[pod.text].push_back(*needed);
    }
    for (auto& [text, runs] : ran) typical_.emplace(text, MedianOf(runs));
    for (std::size_t i = 0; i < recorded_.pods.size(); ++i) {
      if (!follows_[i]) TRANCHE_RETURN_IF_ERROR(ReadChain(i));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;

  static std::optional<Millis> RanToEnd(const RecordedPod& pod) {
    if (!pod.started || !pod.ended || pod.how == PastEnd::kDisrupted) return std::nullopt;
    return std::max(*pod.ended - *pod.started, Millis(1));
  }

  // Of each evicted pod the one that its controller made in its place.
  void FindSuccessors() {
    const std::vector<RecordedPod>& pods = recorded_.pods;
    next_.assign(pods.size(), kNobody);
    follows_.assign(pods.size(), false);
    std::map<std::pair<std::string, int64_t>, std::vector<std::size_t>> of_owner;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (!pods[i].owner.empty()) of_owner[{pods[i].owner, pods[i].text}].push_back(i);
    }
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const RecordedPod& pod = pods[i];
      if (pod.how != PastEnd::kDisrupted || !pod.ended || pod.owner.empty()) continue;
      const std::vector<std::size_t>& others = of_owner[{pod.owner, pod.text}];
      const auto first =
          std::ranges::lower_bound(others, *pod.ended - kMadeAnewWithin, {},
                                   [&pods](std::size_t other) { return pods[other].created; });
      for (auto at = first; at != others.end(); ++at) {
        const std::size_t other = *at;
        if (other <= i || follows_[other]) continue;  // it came later
        if (pods[other].created > *pod.ended + kMadeAnewWithin) break;
        next_[i] = other;
        follows_[other] = true;
        break;
      }
    }
  }

  absl::StatusOr<const PodFacts*> TemplateOf(const RecordedPod& pod) {
    const auto known = templates_.find(pod.text);
    if (known != templates_.end()) return &known->second;
    const std::string what = fmt::format("pod {}/{}", pod.name.ns, pod.name.name);
    const absl::StatusOr<wire::Element> element = parser_.Parse(recorded_.texts.at(pod.text));
    if (!element.ok()) return Unreadable(what, element.status());
    absl::StatusOr<PodFacts> facts = wire::DecodePod(*element);
    if (!facts.ok()) return Unreadable(what, facts.status());
    return &templates_.emplace(pod.text, *std::move(facts)).first->second;
  }

  std::optional<Millis> Guess(const RecordedPod& last, const PodFacts& facts, Millis ran) {
    ++out_.guesses;
    std::optional<Millis> needs = facts.request.expected_runtime;
    const auto typical = typical_.find(last.text);
    if (!needs && typical != typical_.end()) needs = typical->second;
    // It had not ended by then. Of what ran so long and nothing else is known of, as long again is
    // the best that can be said.
    if (ran > Millis(0) && needs.value_or(Millis(0)) <= ran) needs = ran * 2;
    return needs;
  }

  absl::Status ReadChain(std::size_t first) {
    const RecordedPod& pod = recorded_.pods[first];
    TRANCHE_ASSIGN_OR_RETURN(const PodFacts* const facts, TemplateOf(pod));
    PastWork work;
    work.pod = *facts;
    work.pod.request.uid = pod.uid;
    work.pod.request.name = pod.name;
    work.pod.owner = pod.owner;
    work.pod.created = work.created = pod.created;
    if (pod.started && *pod.started <= query_.from && !pod.node.empty()) {
      work.pod.node = pod.node;
      work.pod.phase = PodPhase::kRunning;
      work.pod.bound_at = work.pod.running_at = pod.started;
      absl::StatusOr<Allocation> record = wire::DecodeAllocation(pod.devices);
      if (record.ok()) work.pod.allocation = *std::move(record);
    }
    WorkLife life{pod.uid, pod.name, pod.created, GpusOf(work.pod.request), {}};
    Millis longest{0};
    const RecordedPod* last = &pod;
    for (std::size_t i = first; i != kNobody; i = next_[i]) {
      last = &recorded_.pods[i];
      if (!last->started) continue;
      life.runs.push_back(
          {last->node, *last->started, last->ended, last->how == PastEnd::kDisrupted});
      if (last->ended) longest = std::max(longest, *last->ended - *last->started);
    }
    if (const std::optional<Millis> needed = RanToEnd(*last)) {
      work.needs = needed;
    } else if (!last->started || last->ended) {
      work.needs = Guess(*last, *facts, longest);
    }
    if (!last->started && last->ended) work.left = last->ended;
    out_.past.work.push_back(std::move(work));
    out_.happened.lives.push_back(std::move(life));
    return absl::OkStatus();
  }

  const RecordedPast& recorded_;
  const WorkQuery& query_;
  RecordedWork& out_;
  std::vector<std::size_t> next_;  // parallel to the pods
  std::vector<bool> follows_;      // likewise
  std::map<int64_t, Millis> typical_;
  std::map<int64_t, PodFacts> templates_;
  wire::Parser parser_;
};

}  // namespace

absl::StatusOr<RecordedWork> MakeWork(const ledger::RecordedPast& recorded,
                                      const WorkQuery& query) {
  RecordedWork work;
  work.past.from = query.from;
  work.past.until = query.until;
  // Nobody can steer what is in a file.
  work.past.options.name_seed = 1;
  TRANCHE_ASSIGN_OR_RETURN(work.past.turns, TurnReader(recorded, query).Read());
  TRANCHE_RETURN_IF_ERROR(WorkReader(recorded, query, work).Read());
  for (const PastTurn& turn : work.past.turns) {
    if (turn.set == nullptr) continue;
    work.budgets = std::max(work.budgets, static_cast<int64_t>(turn.set->budgets.size()));
  }
  return work;
}

}  // namespace tranche::replay
