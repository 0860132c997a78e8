// Questions to the world of a scenario; world.cc has its facts and steps.
#include <algorithm>

#include "test/scenarios/runner/world.h"
#include "test/scenarios/runner/world_facts.h"

namespace tranche::scenario {
namespace {

int64_t MilliOf(const ChargeLimit& amount) {
  return MilliGpuRoundedUp(std::max<int64_t>(0, amount.Larger().saturated())).count();
}

int64_t MilliHours(Int128 amount) { return static_cast<int64_t>(amount * 1000 / kGpuHour); }

std::string TextOf(const Device& device) {
  if (device.mig) {
    return fmt::format("{}/{}@{}", device.card, device.mig->profile, device.mig->start);
  }
  return fmt::format("{}:{}", device.card, device.milli.count());
}

}  // namespace

bool IsReason(const std::string& code) {
  for (int i = 0; i < static_cast<int>(Reason::kCount); ++i) {
    if (Describe(static_cast<Reason>(i)).code == code) return true;
  }
  return false;
}

std::string World::NameOf(const PodName& name) {
  return name.ns == kPlainNamespace ? name.name : name.str();
}

std::string World::CodeOf(Reason reason) { return std::string(Describe(reason).code); }

Millis World::now() const { return now_ - kBeginning; }

Result World::FindFit(const std::string& name, Fit& fit) {
  Result problem;
  const Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  if (!pod->asked) return Problem{"a step `filter " + name + "` before", "none"};
  fit = pod->fit;
  return std::nullopt;
}

Result World::Ranks(const std::string& name, std::vector<std::string>& nodes) {
  Result problem;
  const Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  if (!pod->asked) return Problem{"a step `filter " + name + "` before", "none"};
  const std::vector<std::string_view> candidates(pod->fit.nodes.rbegin(), pod->fit.nodes.rend());
  std::vector<int> ranks;
  engine_->Prioritize(pod->facts.request, candidates, now_, ranks);
  std::vector<std::pair<int, std::string>> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    order.emplace_back(-ranks[i], std::string(candidates[i]));
  }
  std::ranges::stable_sort(order, {}, &std::pair<int, std::string>::first);
  nodes.clear();
  for (const auto& [rank, node] : order) nodes.push_back(node);
  return std::nullopt;
}

std::optional<PodView> World::View(const std::string& name, Result& problem) {
  const Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return std::nullopt;
  std::optional<PodView> view = engine_->Pod(pod->facts.request.uid);
  if (!view) problem = Problem{"a pod the cluster shows", name + ", which has not arrived"};
  return view;
}

Result World::State(const std::string& name, std::string& state) {
  Result problem;
  const std::optional<PodView> view = View(name, problem);
  if (!view) return problem;
  static constexpr const char* kNames[] = {"pending", "claimed", "reserved", "bound"};
  state = kNames[static_cast<int>(view->state)];
  if (!view->node.empty()) state += " on " + view->node.str();
  return std::nullopt;
}

Result World::Devices(const std::string& name, std::vector<std::string>& devices) {
  Result problem;
  const std::optional<PodView> view = View(name, problem);
  if (!view) return problem;
  devices.clear();
  if (!view->allocation) return std::nullopt;
  for (const ContainerDevices& container : view->allocation->containers) {
    for (const Device& device : container.devices) devices.push_back(TextOf(device));
  }
  return std::nullopt;
}

Result World::QuotaState(const std::string& name, std::string& state) {
  Result problem;
  const std::optional<PodView> view = View(name, problem);
  if (!view) return problem;
  static constexpr const char* kNames[] = {"in-quota", "borrowed", "scavenging"};
  state = view->quota_state ? kNames[static_cast<int>(*view->quota_state)] : "nothing";
  return std::nullopt;
}

Result World::EligibleAt(const std::string& name, std::optional<Millis>& at) {
  Result problem;
  const std::optional<PodView> view = View(name, problem);
  if (!view) return problem;
  at = std::nullopt;
  if (view->eligible_at) at = *view->eligible_at - kBeginning;
  return std::nullopt;
}

Result World::Explained(const std::string& name, std::string& text) {
  Result problem;
  const Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  const std::optional<Explanation> told = engine_->Explain(pod->facts.request.name, now_);
  if (!told) return Problem{"a pod the cluster shows", name + ", which has not arrived"};
  std::vector<std::string> parts = {std::string(Describe(told->pod.reason).text), told->pod.detail,
                                    told->advice};
  if (told->blocked) parts.push_back(told->blocked->detail);
  for (const NodeVerdict& node : told->nodes) {
    parts.push_back(fmt::format("{}: {}", node.node.str(), node.detail));
  }
  std::erase(parts, "");
  text = Join(parts, " | ");
  return std::nullopt;
}

Result World::Blocked(const std::string& name, std::string& text) {
  Result problem;
  const Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  const std::optional<Explanation> told = engine_->Explain(pod->facts.request.name, now_);
  text = "nothing";
  if (!told || !told->blocked) return std::nullopt;
  text = CodeOf(told->blocked->reason);
  if (told->blocked->until) text += " until " + FormatSpan(*told->blocked->until - kBeginning);
  return std::nullopt;
}

std::vector<std::string> World::Plans() const {
  std::vector<std::string> running, ended;
  for (const Reclaim& reclaim : engine_->Reclaims()) {
    std::vector<std::string> words = {std::string(ReclaimRuleName(reclaim.rule)),
                                      std::string(ReclaimPhaseName(reclaim.phase)), "for"};
    for (const ReclaimMember& member : reclaim.members) words.push_back(NameOf(member.pod));
    if (reclaim.members.empty()) words.push_back(reclaim.source);
    words.emplace_back("from");
    for (const ReclaimVictim& victim : reclaim.victims) words.push_back(NameOf(victim.pod));
    (reclaim.finished() ? ended : running).push_back(Join(words));
  }
  running.insert(running.end(), ended.begin(), ended.end());
  return running;
}

std::string World::NominatedNode(const std::string& pod) const {
  const auto found = nominated_.find(pod);
  return found == nominated_.end() ? "" : found->second;
}

std::vector<std::string> World::TakeRequeued() {
  std::vector<std::string> pods(requeued_.begin(), requeued_.end());
  requeued_.clear();
  return pods;
}

Result World::Quota(const std::string& name, const std::string& model, QuotaNumbers& numbers) {
  std::vector<std::string> lines;
  for (const QuotaView& view : engine_->Quotas(now_)) {
    if (view.report.name != name) continue;
    for (const QuotaLineReport& report : view.report.lines) {
      const QuotaLineView& line = report.line;
      if (line.name == model) {
        numbers = {MilliOf(line.used), MilliOf(line.borrowed), MilliOf(line.lent),
                   MilliOf(line.available)};
        return std::nullopt;
      }
      lines.push_back(name + " " + line.name);
    }
  }
  if (!lines.empty()) return Problem{"a line: " + Join(lines, ", "), name + " " + model};
  return Problem{"a quota: " + NamesOf(quotas_), name};
}

Result World::Budget(const std::string& name, BudgetNumbers& numbers) {
  static constexpr const char* kStates[] = {"Ok", "Warning", "Exhausted"};
  for (const BudgetReport& report : engine_->Budgets(now_)) {
    if (report.spec.name != name) continue;
    const BudgetView& view = report.view;
    numbers = {MilliHours(view.used), MilliHours(view.committed), MilliHours(view.effective),
               kStates[static_cast<int>(view.state)]};
    return std::nullopt;
  }
  return Problem{"a budget: " + NamesOf(budgets_), name};
}

Result World::FreeGpus(const std::string& node, int64_t& thousandths) {
  if (Result problem = NoNode(node)) return problem;
  thousandths = 0;
  for (const NodeView& view : engine_->Nodes(NodeName(), nodes_.size(), now_)) {
    if (view.name.str() != node) continue;
    for (const GpuView& gpu : view.gpus) thousandths += gpu.free_milli.count();
  }
  return std::nullopt;
}

std::vector<std::string> World::Audit() {
  std::vector<std::string> faults = engine_->Audit();
  for (std::string& fault : journal_.TakeFaults()) faults.push_back(std::move(fault));
  return faults;
}

std::string World::Books() const { return engine_->Digest(); }

}  // namespace tranche::scenario
