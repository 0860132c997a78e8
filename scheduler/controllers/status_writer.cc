#include "scheduler/controllers/status_writer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <set>
#include <vector>

#include "scheduler/facts/reason_words.h"

namespace tranche {
namespace {

constexpr Millis kObjectGap{1'000};
constexpr Millis kDriftGap{30'000};
constexpr Millis kRetryGap{10'000};
constexpr Millis kPodGap{10'000};
constexpr int kMostPodWrites = 50;  // a round
constexpr int kIdleTurns = 3;       // without a round, after one that had nothing to write
constexpr const char* kViewName = "view";

// Reasons about nodes and devices are one to the outside: which node lacks what changes with every
// attempt.
std::string_view WaitingCode(Reason reason) {
  const bool team = reason >= Reason::kNoLeaf && reason <= Reason::kNamespaceQuota;
  const bool request = reason > Reason::kNone && reason < Reason::kNoLeaf;
  const bool reclaim = reason >= Reason::kPdbBlocked && reason <= Reason::kPreemptionInProgress;
  const bool others = reason == Reason::kYieldingTo || reason == Reason::kNoNodeOffered;
  return team || request || reclaim || others ? tranche::Describe(reason).code : "NoDeviceFit";
}

// The object alone, which is made once.
class Creation : public wire::ObjectStatus {
 public:
  std::string Text(wire::StatusMembers members) const override {
    return members == wire::StatusMembers::kAll ? "" : "made";
  }
  std::string Values(wire::StatusMembers /*members*/) const override { return "made"; }
};

// What administrators declare; what we write ourselves has its status from elsewhere.
bool HasStatus(std::string_view kind) {
  return kind == "GPUQuota" || kind == "GPUBudget" || kind == "GPUClass" || kind == "GPUPolicy" ||
         kind == "GPUPool" || kind == "GPUPrice";
}

}  // namespace

StatusWriter::StatusWriter(Host& host, ObjectWrites& objects, Checkpointer& checkpointer,
                           Sources sources)
    : host_(host),
      objects_(objects),
      checkpointer_(checkpointer),
      sources_(std::move(sources)),
      failures_(std::make_shared<std::atomic<int64_t>>(0)) {}

StatusWriter::~StatusWriter() = default;

StatusSnapshot::Parts StatusWriter::Gather() {
  StatusSnapshot::Parts parts;
  // Each by itself, so that others come between: no two of them have to be of one moment.
  const auto ask = [this](const auto& question) {
    host_.engine.With(EngineCaller::kStatus, question);
  };
  if (host_.engine.AskReach(EngineCaller::kStatus)) idle_ = false;
  WaitingWalk waiting = host_.engine.Waiting(EngineCaller::kStatus);
  parts.quotas = host_.engine.Quotas(EngineCaller::kStatus, waiting.Rows());
  parts.waiting = waiting.TakeRefused();
  ask([&](Engine& engine, Instant when) { parts.budgets = engine.Budgets(when); });
  ask([&](Engine& engine, Instant) { parts.pods_by_class = engine.PodsByClass(); });
  parts.policy_objects = host_.policies.objects();
  parts.history = checkpointer_.Findings(parts.budgets);
  if (sources_.right_sizes) parts.right_sizes = sources_.right_sizes();
  if (sources_.forecasts) parts.forecasts = sources_.forecasts();
  return parts;
}

void StatusWriter::Turn(Instant now) {
  if (idle_ && ++left_out_ <= kIdleTurns) return;
  left_out_ = 0;
  Tick(now);
}

void StatusWriter::Tick(Instant now) {
  idle_ = false;
  if (host_.cluster.readiness() != Readiness::kReady) return;
  idle_ = true;
  ++rounds_;
  checkpointer_.TellFound();
  const StatusSnapshot snapshot(Gather());
  WriteObjects(snapshot, now);
  WriteViews(snapshot, now);
  WriteWaiting(snapshot, now);
  Notify(snapshot, now);
  TellHistory(snapshot, now);
}

bool StatusWriter::Renews(Made& made, const wire::ObjectStatus& status,
                          wire::StatusMembers members) {
  std::string values = status.Values(members);
  if (made.values == values) return false;
  std::string text = status.Text(members);
  ++renderings_;
  made.values = std::move(values);
  // Amounts are rounded where they are shown.
  if (made.text == text) return false;
  made.text = std::move(text);
  return true;
}

void StatusWriter::Write(Written& written, ObjectWrite write, const wire::ObjectStatus& status,
                         Instant now, const View* view) {
  if (written.lost->exchange(false)) written.prompt = {};
  if (now - written.at < kObjectGap) {
    idle_ = false;  // it may have changed again
    return;
  }
  const bool changed = Renews(written.prompt, status, wire::StatusMembers::kPrompt);
  const bool drifts = now - written.at >= kDriftGap && now - written.looked >= kObjectGap;
  if (!changed && !drifts) return;
  written.looked = now;
  if (!Renews(written.all, status, wire::StatusMembers::kAll) && !changed) return;
  written.at = now;
  idle_ = false;
  write.fields = written.all.text;
  const std::string what = fmt::format("{} {}", write.kind, write.name);
  const Flag made = view == nullptr ? nullptr : view->made;
  const Flag object_lost = view == nullptr ? nullptr : view->object.lost;
  objects_.Write(std::move(write), [failures = failures_, lost = written.lost, made, object_lost,
                                    what](const WriteResult& result) {
    if (result.kind == WriteResult::Kind::kDone) {
      if (made != nullptr) *made = true;
      return;
    }
    // Somebody deleted the view: it is made again.
    if (made != nullptr && result.http_code == 404) {
      *made = false;
      *object_lost = true;
    }
    ++*failures;
    // The object may have gone meanwhile; then nobody writes it again.
    *lost = true;
    spdlog::warn("status of {} could not be written: code {}: {}", what, result.http_code,
                 result.message);
  });
}

wire::StatusHead StatusWriter::HeadOf(Object& object, const std::string& kind,
                                      const std::string& name, int64_t generation,
                                      const StatusSnapshot& snapshot, Instant now) {
  wire::StatusHead head{{}, generation};
  for (const Finding* const finding : snapshot.FindingsOf(kind, name)) {
    auto [at, fresh] = object.since.try_emplace(finding->type, finding->status, now);
    if (!fresh && at->second.first != finding->status) at->second = {finding->status, now};
    head.conditions.push_back({finding->type, finding->status, finding->reason, finding->message,
                               at->second.second, generation});
  }
  return head;
}

void StatusWriter::ForgetGone(const PolicyIntake::Objects& there) {
  std::erase_if(known_, [&there](const auto& entry) {
    const auto found = there.objects.find(entry.first);
    return found == there.objects.end() || found->second.first != entry.second.uid;
  });
}

void StatusWriter::WriteObjects(const StatusSnapshot& snapshot, Instant now) {
  const auto& there = snapshot.parts().policy_objects;
  if (std::exchange(seen_, there) != there) ForgetGone(*there);
  for (const auto& [key, identity] : there->objects) {
    const auto& [kind, name] = key;
    if (!HasStatus(kind)) continue;
    Object& object = known_[key];
    object.uid = identity.first;
    wire::StatusHead head = HeadOf(object, kind, name, identity.second, snapshot, now);
    const auto write = [&, &kind = kind, &name = name](const wire::ObjectStatus& status) {
      Write(object.status, {kind, "", name, true, ""}, status, now, nullptr);
    };
    const QuotaView* const quota = kind == "GPUQuota" ? snapshot.Quota(name) : nullptr;
    const BudgetReport* const budget = kind == "GPUBudget" ? snapshot.Budget(name) : nullptr;
    if (quota != nullptr) {
      const std::vector<const BudgetReport*> budgets = snapshot.BudgetsOf(*quota, "");
      const auto checkpoint = [this, quota] { return checkpointer_.OfLeaf(quota->report.name); };
      write(wire::QuotaStatus(*quota, budgets, now, std::move(head), checkpoint));
    } else if (budget != nullptr) {
      const auto checkpoint = [this, budget] { return checkpointer_.OfBudget(budget->spec.uid); };
      write(wire::BudgetStatus(*budget, now, std::move(head), checkpoint));
    } else if (kind == "GPUClass") {
      const std::map<std::string, int64_t>& by_class = snapshot.parts().pods_by_class;
      const auto pods = by_class.find(name);
      write(wire::ClassStatus(pods == by_class.end() ? 0 : pods->second, std::move(head)));
    } else {
      write(wire::PolicyStatus(std::move(head)));
    }
  }
}

void StatusWriter::WriteViews(const StatusSnapshot& snapshot, Instant now) {
  const PolicyIntake::Objects& there = *snapshot.parts().policy_objects;
  std::set<std::string> wanted;
  for (const QuotaView& quota : snapshot.parts().quotas) {
    if (!quota.report.leaf) continue;
    for (const std::string& ns : quota.report.namespaces) {
      wanted.insert(ns);
      View& view = views_[ns];
      if (!*view.made && !there.views.contains({ns, kViewName})) {
        // The object first, its status in the next round.
        Write(view.object, {"GPUQuotaView", ns, kViewName, false, ""}, Creation(), now, &view);
        continue;
      }
      const std::vector<const BudgetReport*> budgets = snapshot.BudgetsOf(quota, ns);
      const auto starts = [&snapshot, &ns, now] {
        return snapshot.StartsOf(ns, wire::TeamViewStatus::kMostPods, now);
      };
      Write(view.status, {"GPUQuotaView", ns, kViewName, true, ""},
            wire::TeamViewStatus(quota, budgets, now, snapshot.RightSizesOf(ns), starts), now,
            &view);
    }
  }
  DeleteViews(there, wanted, now);
}

void StatusWriter::DeleteViews(const PolicyIntake::Objects& there,
                               const std::set<std::string>& wanted, Instant now) {
  std::set<std::string> surplus;
  for (const auto& [ns, name] : there.views) {
    if (name == kViewName && !wanted.contains(ns)) surplus.insert(ns);
  }
  for (const auto& [ns, view] : views_) {
    if (*view.made && !wanted.contains(ns)) surplus.insert(ns);
  }
  for (const std::string& ns : surplus) {
    View& view = views_[ns];
    const Instant deleted = view.deleted;
    view = {};
    view.deleted = deleted;
    if (now - deleted < kRetryGap) continue;
    view.deleted = now;
    objects_.DeleteView({ns, kViewName}, [](const WriteResult&) {});
  }
}

void StatusWriter::WriteWaiting(const StatusSnapshot& snapshot, Instant now) {
  const auto log = [](const WriteResult& result) {
    if (result.kind != WriteResult::Kind::kDone) {
      spdlog::debug("a waiting pod could not be told why: code {}: {}", result.http_code,
                    result.message);
    }
  };
  int writes = 0;
  std::set<PodUid> still;
  for (const auto& [uid, reason] : snapshot.parts().waiting) {
    still.insert(uid);
    const std::string code(WaitingCode(reason));
    const auto told = told_.find(uid);
    const bool known = told != told_.end();
    if (known && (told->second.reason == code || now - told->second.at < kPodGap)) continue;
    if (writes == kMostPodWrites) continue;
    const std::optional<PodView> pod = host_.engine.With(
        EngineCaller::kStatus, [&uid = uid](Engine& engine, Instant) { return engine.Pod(uid); });
    if (!pod || pod->state == PodState::kBound) continue;
    ++writes;
    idle_ = false;
    told_[uid] = {pod->name, code, now};
    const std::string message = fmt::format("{}{}{}", TextOf(reason, SaidOf::kPod),
                                            pod->detail.empty() ? "" : ": ", pod->detail);
    objects_.SetWaiting({pod->name, uid, true, code, message, now}, log);
    objects_.Emit(
        {"Pod", pod->name.ns, pod->name.name, uid.str(), true, code, "Scheduling", message, now},
        log);
  }
  for (auto told = told_.begin(); told != told_.end();) {
    if (still.contains(told->first)) {
      ++told;
      continue;
    }
    const std::optional<PodView> pod =
        host_.engine.With(EngineCaller::kStatus,
                          [&told](Engine& engine, Instant) { return engine.Pod(told->first); });
    // Between its reservation and its binding it is neither: how that ends is still to come.
    if (pod && pod->state == PodState::kReserved) {
      ++told;
      continue;
    }
    if (pod && pod->state == PodState::kBound) {
      objects_.SetWaiting({told->second.pod, told->first, false, "Placed", "", now}, log);
    }
    told = told_.erase(told);
  }
}

// Once in this process's life.
void StatusWriter::TellHistory(const StatusSnapshot& snapshot, Instant now) {
  const std::vector<Finding> news = checkpointer_.news();
  if (news.empty() || std::exchange(history_told_, true)) return;
  for (const Finding& finding : news) {
    const auto object = snapshot.parts().policy_objects->objects.find({finding.kind, finding.name});
    if (object == snapshot.parts().policy_objects->objects.end()) continue;
    objects_.Emit({finding.kind, "", finding.name, object->second.first, true, finding.reason,
                   "Restoring", finding.message, now},
                  [](const WriteResult&) {});
  }
}

void StatusWriter::Notify(const StatusSnapshot& snapshot, Instant now) {
  for (const BudgetReport& report : snapshot.parts().budgets) {
    const bool rolling = report.spec.window.type == BudgetWindow::Type::kRolling;
    const std::string key =
        fmt::format("{}/{}", report.spec.uid,
                    rolling ? 0 : report.view.window.start.time_since_epoch().count());
    int& told = notified_[key];
    const int level = report.view.notified_percent;
    if (level <= told) {
      if (rolling) told = level;
      continue;
    }
    told = level;
    objects_.Emit(
        {"GPUBudget", "", report.spec.name, report.spec.uid, level >= 100, "BudgetLevel",
         "Metering",
         fmt::format("{} of {} GPU-hours are used, {} %", FormatGpuHours(report.view.used),
                     FormatGpuHours(report.view.effective), report.view.percent),
         now},
        [](const WriteResult&) {});
  }
}

}  // namespace tranche
