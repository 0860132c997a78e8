#include "scheduler/controllers/status_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche {
namespace {

constexpr Millis kObjectGap{1'000};
constexpr Millis kDriftGap{30'000};
constexpr Millis kRetryGap{10'000};
constexpr Millis kPodGap{10'000};
constexpr int kMostPodWrites = 50;  // a round
constexpr const char* kViewName = "view";

// Reasons about nodes and devices are one to the outside: which node lacks what changes with every
// attempt.
std::string_view WaitingCode(Reason reason) {
  const bool team = reason >= Reason::kNoLeaf && reason <= Reason::kNamespaceQuota;
  const bool request = reason > Reason::kNone && reason < Reason::kNoLeaf;
  const bool reclaim = reason >= Reason::kPdbBlocked && reason <= Reason::kPreemptionInProgress;
  return team || request || reclaim || reason == Reason::kYieldingTo
             ? tranche::Describe(reason).code
             : "NoDeviceFit";
}

}  // namespace

struct StatusWriter::Snapshot {
  std::vector<QuotaView> quotas;
  std::vector<BudgetReport> budgets;
  std::vector<std::pair<PodUid, Reason>> waiting;
  std::map<std::string, int64_t> pods_by_class;
  PolicyIntake::Objects policy_objects;
};

struct StatusWriter::Written {
  std::string urgent;
  std::string full;
  Instant at;
  bool failed = false;
  Instant looked = {};  // when what only drifts was last compared
};

struct StatusWriter::Shared {
  absl::Mutex mutex;
  std::map<std::string, Written> objects ABSL_GUARDED_BY(mutex);  // kind/ns/name/status
  std::set<std::string> views ABSL_GUARDED_BY(mutex);  // namespaces whose view we have made
  int64_t failures ABSL_GUARDED_BY(mutex) = 0;
};

StatusWriter::StatusWriter(Host& host, ObjectWrites& objects, Checkpointer& checkpointer)
    : host_(host),
      objects_(objects),
      checkpointer_(checkpointer),
      shared_(std::make_shared<Shared>()) {}

StatusWriter::~StatusWriter() = default;

int64_t StatusWriter::failures() const {
  const absl::MutexLock lock(&shared_->mutex);
  return shared_->failures;
}

StatusWriter::Snapshot StatusWriter::Gather() {
  Snapshot snapshot;
  // Each by itself, so that others come between: no two of them have to be of one moment.
  const auto ask = [this](const auto& question) {
    host_.engine.With(EngineCaller::kStatus, question);
  };
  WaitingWalk waiting = host_.engine.Waiting(EngineCaller::kStatus);
  snapshot.quotas = host_.engine.Quotas(EngineCaller::kStatus, waiting.Rows());
  snapshot.waiting = waiting.TakeRefused();
  ask([&](Engine& engine, Instant when) { snapshot.budgets = engine.Budgets(when); });
  ask([&](Engine& engine, Instant) { snapshot.pods_by_class = engine.PodsByClass(); });
  snapshot.policy_objects = host_.policies.objects();
  return snapshot;
}

void StatusWriter::Tick(Instant now) {
  if (host_.cluster.readiness() != Readiness::kReady) return;
  checkpointer_.TellFound();
  const Snapshot snapshot = Gather();
  WriteObjects(snapshot, now);
  WriteViews(snapshot, now);
  WriteWaiting(snapshot, now);
  Notify(snapshot, now);
  TellHistory(snapshot, now);
}

void StatusWriter::Write(ObjectWrite write, std::string urgent,
                         const std::function<std::string()>& full, Instant now) {
  const std::string key =
      fmt::format("{}/{}/{}/{}", write.kind, write.ns, write.name, write.status);
  bool wanted = false;
  {
    const absl::MutexLock lock(&shared_->mutex);
    Written& written = shared_->objects[key];
    const bool changed = written.urgent != urgent && now - written.at >= kObjectGap;
    wanted = changed || (written.failed && now - written.at >= kRetryGap);
    const bool drifts = now - written.at >= kDriftGap && now - written.looked >= kObjectGap;
    if (!wanted && !drifts) return;
    written.looked = now;
  }
  write.fields = full();
  {
    const absl::MutexLock lock(&shared_->mutex);
    Written& written = shared_->objects[key];
    if (!wanted && written.full == write.fields) return;
    written = {std::move(urgent), write.fields, now};
  }
  const std::string what = fmt::format("{} {}", write.kind, write.name);
  const std::string view_of = write.kind == "GPUQuotaView" ? write.ns : "";
  objects_.Write(std::move(write),
                 [shared = shared_, key, what, view_of](const WriteResult& result) {
                   const absl::MutexLock lock(&shared->mutex);
                   if (result.kind == WriteResult::Kind::kDone) {
                     if (!view_of.empty()) shared->views.insert(view_of);
                     return;
                   }
                   // Somebody deleted the view: it is made again.
                   if (result.http_code == 404) shared->views.erase(view_of);
                   ++shared->failures;
                   // The object may have gone meanwhile; then nobody writes it again.
                   Written& written = shared->objects[key];
                   written.failed = true;
                   written.urgent.clear();
                   spdlog::warn("status of {} could not be written: code {}: {}", what,
                                result.http_code, result.message);
                 });
}

std::vector<wire::Condition> StatusWriter::ConditionsOf(const std::string& kind,
                                                        const std::string& name,
                                                        const std::vector<Finding>& findings,
                                                        int64_t generation, Instant now) {
  std::vector<wire::Condition> conditions;
  for (const Finding& finding : findings) {
    if (finding.kind != kind || finding.name != name) continue;
    auto [at, fresh] = condition_since_.try_emplace(
        fmt::format("{}/{}/{}", kind, name, finding.type), finding.status, now);
    if (!fresh && at->second.first != finding.status) at->second = {finding.status, now};
    conditions.push_back({finding.type, finding.status, finding.reason, finding.message,
                          at->second.second, generation});
  }
  return conditions;
}

namespace {

// Said at every root: of the quota that is gone nothing is left to say it at.
Finding AbandonedAt(const std::string& root, const std::vector<AbandonedWork>& abandoned) {
  std::vector<std::string> parts;
  for (const AbandonedWork& work : abandoned) {
    parts.push_back(fmt::format("{} pods of {} in {}", work.pods, work.quota,
                                fmt::join(work.namespaces, ", ")));
  }
  const bool any = !parts.empty();
  return {"GPUQuota",
          root,
          "AbandonedWork",
          any,
          any ? "QuotaGone" : "None",
          any ? fmt::format("work runs whose quota is gone, and no quota owns its namespace: {}",
                            fmt::join(parts, "; "))
              : ""};
}

// Findings about a quota that only the running cluster shows.
std::vector<Finding> LiveFindings(const std::vector<QuotaView>& quotas) {
  std::vector<Finding> findings;
  for (const QuotaView& view : quotas) {
    const std::string& name = view.report.name;
    findings.push_back({"GPUQuota", name, "OverLimit", view.over_limit,
                        view.over_limit ? "InUse" : "WithinLimit",
                        view.over_limit ? "running work holds more than the quota gives now; "
                                          "nothing new starts"
                                        : ""});
    if (!view.absent_models.empty()) {
      // Perhaps a slip of the pen, perhaps hardware that is on its way.
      findings.push_back({"GPUQuota", name, "UnknownModel", true, "NoSuchGpu",
                          fmt::format("spec.lines: expected models of the cluster's GPUs, found {}",
                                      fmt::join(view.absent_models, ", "))});
    }
    if (view.report.parent.empty()) findings.push_back(AbandonedAt(name, view.abandoned));
    const bool over = !view.oversubscribed.empty();
    findings.push_back({"GPUQuota", name, "Oversubscribed", over, over ? "Capacity" : "Fits",
                        view.oversubscribed});
  }
  return findings;
}

// Those that meter the quota's work: its own and its ancestors', and of a namespace where given.
std::vector<const BudgetReport*> BudgetsOf(const QuotaView& view,
                                           const std::vector<QuotaView>& quotas,
                                           const std::vector<BudgetReport>& budgets,
                                           const std::string& ns) {
  std::set<std::string> path;
  for (std::string name = view.report.name; !name.empty() && path.insert(name).second;) {
    const auto at = std::ranges::find_if(
        quotas, [&name](const QuotaView& quota) { return quota.report.name == name; });
    name = at == quotas.end() ? "" : at->report.parent;
  }
  std::vector<const BudgetReport*> found;
  for (const BudgetReport& budget : budgets) {
    const bool meters =
        budget.spec.ns.empty() ? path.contains(budget.spec.quota_ref) : budget.spec.ns == ns;
    if (meters) found.push_back(&budget);
  }
  return found;
}

}  // namespace

void StatusWriter::WriteObjects(const Snapshot& snapshot, Instant now) {
  std::vector<Finding> findings = snapshot.policy_objects.findings;
  const std::vector<Finding> live = LiveFindings(snapshot.quotas);
  findings.insert(findings.end(), live.begin(), live.end());
  const std::vector<Finding> history = checkpointer_.Findings(snapshot.budgets);
  findings.insert(findings.end(), history.begin(), history.end());
  for (const auto& entry : snapshot.policy_objects.objects) {
    const std::string& kind = entry.first.first;
    const std::string& name = entry.first.second;
    const int64_t generation = entry.second.second;
    if (kind != "GPUQuota" && kind != "GPUBudget" && kind != "GPUClass" && kind != "GPUPolicy") {
      continue;
    }
    const std::vector<wire::Condition> conditions =
        ConditionsOf(kind, name, findings, generation, now);
    ObjectWrite write{kind, "", name, true, ""};
    std::string urgent;
    std::function<std::string()> full;  // null: the same
    const auto named = [&name](const auto& view) { return view.spec.name == name; };
    const auto quota = std::ranges::find_if(
        snapshot.quotas, [&name](const QuotaView& view) { return view.report.name == name; });
    const auto budget = std::ranges::find_if(snapshot.budgets, named);
    if (kind == "GPUQuota" && quota != snapshot.quotas.end()) {
      const std::string column =
          wire::HoursLeft(BudgetsOf(*quota, snapshot.quotas, snapshot.budgets, ""), now);
      full = [&, column] {
        return wire::QuotaStatus(*quota, column, conditions, generation, checkpointer_.OfLeaf(name),
                                 wire::StatusMembers::kAll);
      };
      urgent = wire::QuotaStatus(*quota, column, conditions, generation, "",
                                 wire::StatusMembers::kPrompt);
    } else if (kind == "GPUBudget" && budget != snapshot.budgets.end()) {
      full = [&] {
        return wire::BudgetStatus(*budget, now, conditions, generation,
                                  checkpointer_.OfBudget(budget->spec.uid),
                                  wire::StatusMembers::kAll);
      };
      urgent = wire::BudgetStatus(*budget, now, conditions, generation, "",
                                  wire::StatusMembers::kPrompt);
    } else if (kind == "GPUClass") {
      const auto pods = snapshot.pods_by_class.find(name);
      urgent = wire::ClassStatus(pods == snapshot.pods_by_class.end() ? 0 : pods->second,
                                 conditions, generation);
    } else {
      urgent = wire::PolicyStatus(conditions, generation);
    }
    if (!full) full = [urgent] { return urgent; };
    Write(std::move(write), std::move(urgent), full, now);
  }
}

bool StatusWriter::MadeView(const std::string& ns) const {
  const absl::MutexLock lock(&shared_->mutex);
  return shared_->views.contains(ns);
}

void StatusWriter::WriteViews(const Snapshot& snapshot, Instant now) {
  std::set<std::string> wanted;
  for (const QuotaView& view : snapshot.quotas) {
    if (!view.report.leaf) continue;
    for (const std::string& ns : view.report.namespaces) {
      wanted.insert(ns);
      const bool made = snapshot.policy_objects.views.contains({ns, kViewName}) || MadeView(ns);
      if (!made) {
        // The object first, its status in the next round.
        Write(
            {"GPUQuotaView", ns, kViewName, false, ""}, "made", [] { return ""; }, now);
        continue;
      }
      const std::vector<const BudgetReport*> budgets =
          BudgetsOf(view, snapshot.quotas, snapshot.budgets, ns);
      Write(
          {"GPUQuotaView", ns, kViewName, true, ""},
          wire::TeamViewStatus(view, budgets, now, wire::StatusMembers::kPrompt),
          [&] { return wire::TeamViewStatus(view, budgets, now, wire::StatusMembers::kAll); }, now);
    }
  }
  std::set<std::string> there;
  for (const auto& [ns, name] : snapshot.policy_objects.views) {
    if (name == kViewName) there.insert(ns);
  }
  {
    const absl::MutexLock lock(&shared_->mutex);
    there.insert(shared_->views.begin(), shared_->views.end());
  }
  for (const std::string& ns : there) {
    if (wanted.contains(ns)) continue;
    {
      const absl::MutexLock lock(&shared_->mutex);
      shared_->views.erase(ns);
      shared_->objects.erase(fmt::format("GPUQuotaView/{}/{}/false", ns, kViewName));
      Written& deletion = shared_->objects[fmt::format("GPUQuotaView/{}/gone", ns)];
      if (now - deletion.at < kRetryGap) continue;
      deletion.at = now;
    }
    objects_.DeleteView({ns, kViewName}, [](const WriteResult&) {});
  }
}

void StatusWriter::WriteWaiting(const Snapshot& snapshot, Instant now) {
  const auto log = [](const WriteResult& result) {
    if (result.kind != WriteResult::Kind::kDone) {
      spdlog::debug("a waiting pod could not be told why: code {}: {}", result.http_code,
                    result.message);
    }
  };
  int writes = 0;
  std::set<PodUid> still;
  for (const auto& [uid, reason] : snapshot.waiting) {
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
    told_[uid] = {pod->name, code, now};
    const std::string message =
        pod->detail.empty() ? std::string(tranche::Describe(reason).text)
                            : fmt::format("{}: {}", tranche::Describe(reason).text, pod->detail);
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
void StatusWriter::TellHistory(const Snapshot& snapshot, Instant now) {
  const std::vector<Finding> news = checkpointer_.news();
  if (news.empty() || std::exchange(history_told_, true)) return;
  for (const Finding& finding : news) {
    const auto object = snapshot.policy_objects.objects.find({finding.kind, finding.name});
    if (object == snapshot.policy_objects.objects.end()) continue;
    objects_.Emit({finding.kind, "", finding.name, object->second.first, true, finding.reason,
                   "Restoring", finding.message, now},
                  [](const WriteResult&) {});
  }
}

void StatusWriter::Notify(const Snapshot& snapshot, Instant now) {
  for (const BudgetReport& report : snapshot.budgets) {
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
