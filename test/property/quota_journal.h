// What the tests of teams compare the engine with: a ledger's rows, checked as they come, and sums
// made again from them and from the pods.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/limits.h"
#include "quota/tree/quota_tree.h"
#include "scheduler/engine/engine.h"

namespace tranche {

inline Charge Plus(const Charge& left, const Charge& right) {
  return {left.compute + right.compute, left.memory + right.memory};
}

// By definition, without the engine: what the request holds wherever it is put.
inline Charge Recount(const PodRequest& request) {
  const Ask& ask = request.asks[0];
  Charge unit{kQuantaPerGpu, kQuantaPerGpu};
  if (ask.resource == Resource::kShare) {
    unit.compute = unit.memory = kQuantaPerGpu / 1000 * ask.compute.count();
  } else if (ask.resource == Resource::kGpuShared) {
    unit.compute = unit.memory = kQuantaPerGpu / 4;
  } else if (ask.resource == Resource::kMig) {
    const int64_t slices = ask.mig.profile[0] - '0';
    unit = {kQuantaPerGpu * slices / 7, kQuantaPerGpu * (slices == 3 ? 4 : slices) / 8};
  }
  return {unit.compute * ask.count, unit.memory * ask.count};
}

// The rows a ledger keeps, checked as they come.
class Journal {
 public:
  struct Row {
    MeterEvent opened;
    std::optional<Instant> running;
  };

  void Take(Engine& engine) {
    std::vector<WindowClosing> closings = std::exchange(engine.effects().closings, {});
    for (MeterEvent& event : std::exchange(engine.effects().metering, {})) {
      Note(event);
      events_.push_back(std::move(event));
    }
    for (WindowClosing& closing : closings) {
      closings_[{closing.budget_uid, closing.span.start}] = std::move(closing);
    }
  }
  // Budgets of which the engine tells a window anew that has been closed already.
  std::set<std::string> CorrectedBy(Engine& engine) const {
    std::set<std::string> uids;
    for (const WindowClosing& closing : engine.effects().closings) {
      if (closings_.contains({closing.budget_uid, closing.span.start})) {
        uids.insert(closing.budget_uid);
      }
    }
    return uids;
  }
  std::vector<std::string> TakeFaults() { return std::exchange(faults_, {}); }
  const std::map<PodUid, Row>& open() const { return open_; }
  std::size_t size() const { return events_.size(); }

  MeterHistory History(Instant now) const {
    MeterHistory history;
    history.heartbeat = now;
    history.events = events_;
    std::ranges::stable_sort(history.events, {}, &MeterEvent::at);
    for (const auto& [uid, row] : open_) {
      const MeterEvent& open = row.opened;
      history.open.push_back({uid, open.interval, open.pod, open.node, open.leaf,
                              open.workload_class, open.parts, open.at, row.running});
    }
    for (const auto& [key, closing] : closings_) history.closings.push_back(closing);
    return history;
  }

 private:
  void Note(const MeterEvent& event) {
    const auto fault = [&](const char* what) {
      faults_.push_back(fmt::format("journal: {} of {}.{}", what, event.uid.str(), event.interval));
    };
    const auto row = open_.find(event.uid);
    if (event.kind == MeterKind::kOpen) {
      if (row != open_.end()) fault("(5) second open row");
      if (!seen_.insert({event.uid, event.interval}).second) fault("(13) row opened again");
      open_[event.uid] = {event, std::nullopt};
      return;
    }
    if (row == open_.end() || row->second.opened.interval != event.interval) {
      return fault("(13) change of a row that is not open");
    }
    if (event.at < row->second.opened.at) fault("(14) moment before the start");
    if (event.kind == MeterKind::kRunning) row->second.running = event.at;
    if (event.kind == MeterKind::kRefund && event.until <= event.at) fault("(14) empty refund");
    if (event.kind == MeterKind::kClose || event.kind == MeterKind::kVoid) open_.erase(row);
  }

  std::vector<MeterEvent> events_;
  std::map<std::pair<std::string, Instant>, WindowClosing> closings_;
  std::map<PodUid, Row> open_;
  std::set<std::pair<PodUid, int>> seen_;
  std::vector<std::string> faults_;
};

// The tree put together anew from what is declared and what the journal has open.
inline QuotaTree TreeOf(const std::vector<GpuQuota>& quotas, const std::set<std::string>& suspended,
                        const Journal& journal) {
  std::vector<QuotaNode> nodes;
  for (const GpuQuota& quota : quotas) {
    QuotaNode node{quota.name, quota.parent, {}, suspended.contains(quota.name)};
    for (const QuotaLine& line : quota.lines) {
      node.lines.emplace_back(LineName(line.model, line.pool), *ToLimits(line));
    }
    nodes.push_back(std::move(node));
  }
  QuotaTree tree = *QuotaTree::Build(std::move(nodes));
  for (const auto& [uid, row] : journal.open()) {
    const QuotaId leaf = tree.Find(row.opened.leaf);
    for (const ModelCharge& part : row.opened.parts) {
      if (leaf != kNoQuota) tree.Add(leaf, tree.LineOf(leaf, part.model), part.charge);
    }
  }
  return tree;
}

// Would the tree refuse the request for that reason on GPUs of some model?
inline bool RefusedFor(const QuotaTree& tree, const std::string& leaf, const PodRequest& request,
                       Reason reason) {
  static const std::map<Reason, QuotaRefusal> kRefusals = {
      {Reason::kExceedsMaxQuota, QuotaRefusal::kExceedsMax},
      {Reason::kBorrowLimit, QuotaRefusal::kBorrowLimit},
      {Reason::kLenderLimit, QuotaRefusal::kLenderLimit},
      {Reason::kWaitingForQuota, QuotaRefusal::kWaiting}};
  for (const char* model : {"h100", "t4", "l40s", "a100-80gb", "h100@spot", "any@spot"}) {
    const QuotaId id = tree.Find(leaf);
    const QuotaVerdict verdict = tree.Check(id, tree.LineOf(id, model), Recount(request));
    if (verdict.refusal == kRefusals.at(reason)) return true;
  }
  return false;
}

// (1) No node holds more than its GPUs; (2) no team is charged more than the GPUs it touches.
inline std::vector<std::string> DeviceFaults(const Journal& journal,
                                             const std::map<NodeName, NodeFacts>& nodes) {
  std::map<NodeName, Charge> by_node;
  std::map<std::string, Charge> by_leaf;
  std::map<std::string, std::set<std::pair<NodeName, int>>> touched;
  for (const auto& [uid, row] : journal.open()) {
    const MeterEvent& event = row.opened;
    for (const ModelCharge& part : event.parts) {
      by_node[event.node] = Plus(by_node[event.node], part.charge);
      by_leaf[event.leaf] = Plus(by_leaf[event.leaf], part.charge);
    }
    for (const ContainerDevices& container : event.allocation->containers) {
      for (const Device& device : container.devices) {
        touched[event.leaf].insert({event.node, device.card});
      }
    }
  }
  std::vector<std::string> faults;
  for (const auto& [node, charge] : by_node) {
    if (GpuEquivalents(charge) > nodes.at(node).count.value_or(0) * kQuantaPerGpu) {
      faults.push_back(fmt::format("(1) {} holds {} quanta", node.str(), GpuEquivalents(charge)));
    }
  }
  for (const auto& [leaf, charge] : by_leaf) {
    const auto devices = static_cast<int64_t>(touched[leaf].size());
    if (GpuEquivalents(charge) > devices * kQuantaPerGpu) {
      faults.push_back(fmt::format("(2) {} is charged {} quanta for {} devices", leaf,
                                   GpuEquivalents(charge), devices));
    }
  }
  return faults;
}

// What people see of teams and budgets; of `corrected` ones not how much they have in all.
inline std::string Numbers(Engine& engine, Instant now,
                           const std::set<std::string>& corrected = {}) {
  std::string text;
  for (const QuotaView& view : engine.Quotas(now)) {
    text += fmt::format("{} {}\n", view.report.name, view.report.suspended);
    for (const QuotaLineReport& report : view.report.lines) {
      const QuotaLineView& line = report.line;
      text += fmt::format("  {} {}/{} {}/{}\n", line.name, line.used.compute, line.used.memory,
                          line.available.compute.saturated(), line.available.memory.saturated());
    }
  }
  for (const BudgetReport& budget : engine.Budgets(now)) {
    text +=
        fmt::format("{} {} of {}\n", budget.spec.name, FormatGpuHours(budget.view.used),
                    corrected.contains(budget.spec.uid) ? "what was corrected"
                                                        : FormatGpuHours(budget.view.effective));
  }
  return text;
}

// A closing does not tell the dimensions apart: after a restart a correction of it gives back the
// smaller one (BudgetMeter::Restore).
inline std::vector<std::string> RestartFaults(Engine& next, Engine& former,
                                              const std::set<std::string>& corrected, Instant now) {
  std::vector<std::string> faults;
  const std::string after = Numbers(next, now, corrected), before = Numbers(former, now, corrected);
  if (after != before) {
    faults.push_back("a restart changes numbers: expected\n" + before + "found\n" + after);
  }
  const std::vector<BudgetReport> had = former.Budgets(now), has = next.Budgets(now);
  for (std::size_t i = 0; i < std::min(had.size(), has.size()); ++i) {
    if (has[i].view.effective <= had[i].view.effective) continue;
    faults.push_back(has[i].spec.name + " has more after a restart");
  }
  return faults;
}

// What a charge counts on in the quota: the most exact line that is told.
inline std::string LineIn(const QuotaView& view, const std::string& charged) {
  const LineParts parts = PartsOf(charged);
  for (const std::string& name : {charged, LineName(kAnyModel, parts.pool)}) {
    for (const QuotaLineReport& report : view.report.lines) {
      if (!parts.pool.empty() && report.line.name == name) return name;
    }
  }
  return std::string(parts.model);
}

}  // namespace tranche
