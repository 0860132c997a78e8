#include "scheduler/controllers/scaling/provisioner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

using State = ProvisioningState;

std::string WhyNot(const ProvisioningList& list) {
  switch (list.kind) {
    case ProvisioningList::Kind::kNoSuchKind:
      return "the cluster has no definition of them";
    case ProvisioningList::Kind::kForbidden:
      return "they may not be listed; the ClusterRole tranche-provisioning allows it";
    default:
      return list.message;
  }
}

void LogFailure(const char* what, const NamespacedName& name, const WriteResult& result) {
  if (result.kind == WriteResult::Kind::kDone) return;
  spdlog::warn("ProvisioningRequest {}/{} could not be {}: code {}: {}{}", name.ns, name.name, what,
               result.http_code, result.message,
               result.http_code == 403 ? " (the ClusterRole tranche-provisioning allows it)" : "");
}

}  // namespace

Provisioner::Provisioner(ProvisioningRequests& requests, PodMarks& pods, ObjectWrites& objects,
                         Hooks hooks)
    : requests_(requests), pods_(pods), objects_(objects), hooks_(std::move(hooks)) {
  Count({});
}

void Provisioner::Tick(Instant now) {
  const Provisioning mode = hooks_.mode();
  if (mode == Provisioning::kOff && nothing_left_) return;
  if (!hooks_.fresh()) return;
  if (!looked_ || now - *looked_ >= kLookEvery) {
    const bool waits = listing_ != nullptr && now - *looked_ < kMostListing;
    if (!waits) List(now);
  }
  if (listing_ == nullptr) return;
  std::optional<ProvisioningList> list;
  {
    const absl::MutexLock lock(&listing_->mutex);
    list = std::exchange(listing_->list, std::nullopt);
  }
  if (!list) return;
  listing_.reset();
  Act(*list, mode, now);
}

void Provisioner::List(Instant now) {
  looked_ = now;
  listing_ = std::make_shared<Mailbox>();
  requests_.ListProvisioning([box = listing_](ProvisioningList list) {
    const absl::MutexLock lock(&box->mutex);
    box->list = std::move(list);
  });
}

void Provisioner::Act(const ProvisioningList& list, Provisioning mode, Instant now) {
  using Kind = ProvisioningList::Kind;
  Count(list);
  if (list.kind == Kind::kListed) {
    said_why_not_ = false;
  } else if (mode != Provisioning::kOff && !std::exchange(said_why_not_, true)) {
    spdlog::warn("no gang is asked for by ProvisioningRequest: {}", WhyNot(list));
  }
  if (list.kind == Kind::kForbidden && mode == Provisioning::kOff) nothing_left_ = true;
  // What may not be seen any more is not told on.
  if (list.kind == Kind::kForbidden) Keep({}, {});
  if (list.kind == Kind::kForbidden || list.kind == Kind::kFailed) return;
  // Where the cluster has no definition of them none of ours can be there, and no pod is to say so.
  const ProvisioningPlan plan = PlanProvisioning(mode, hooks_.look(), list.found, asked_);
  nothing_left_ = mode == Provisioning::kOff && list.found.empty() && plan.marks.empty();
  if (list.kind == Kind::kListed) Make(plan, now);
  Keep(list, plan);
  Remove(plan);
  Mark(plan);
  if (!plan.expected.empty()) hooks_.expect(plan.expected);
  TellChanges(list, plan, now);
}

void Provisioner::Make(const ProvisioningPlan& plan, Instant now) {
  std::erase_if(asked_,
                [now](const auto& entry) { return now - entry.second >= kProvisioningRest; });
  for (const ProvisioningWrite& write : plan.make) {
    asked_[write.name] = now;
    spdlog::info("gang {}/{}: an autoscaler is asked for its nodes by ProvisioningRequest {}",
                 write.name.ns, write.gang, write.name.name);
    requests_.Provision(write, [name = write.name](const WriteResult& result) {
      LogFailure("made", name, result);
    });
  }
}

void Provisioner::Remove(const ProvisioningPlan& plan) {
  for (const ProvisioningFound& found : plan.remove) {
    requests_.Unprovision(found, [name = found.name](const WriteResult& result) {
      LogFailure("deleted", name, result);
    });
  }
}

void Provisioner::Mark(const ProvisioningPlan& plan) {
  for (const PodMarkWrite& write : plan.marks) {
    pods_.MarkPod(write, [pod = write.pod](const WriteResult& result) {
      if (result.kind == WriteResult::Kind::kDone) return;
      spdlog::debug("pod {} could not be told of its ProvisioningRequest: code {}: {}", pod.str(),
                    result.http_code, result.message);
    });
  }
}

void Provisioner::Keep(const ProvisioningList& list, const ProvisioningPlan& plan) {
  std::map<std::pair<std::string, std::string>, ProvisioningFound> standing;
  for (const ProvisioningFound& found : list.found) {
    if (plan.spokesmen.contains(found.name)) standing[{found.name.ns, found.gang}] = found;
  }
  const absl::MutexLock lock(&shown_mutex_);
  standing_ = std::move(standing);
}

std::optional<ProvisioningFound> Provisioner::StandingOf(const std::string& ns,
                                                         const std::string& gang) const {
  const absl::MutexLock lock(&shown_mutex_);
  const auto found = standing_.find({ns, gang});
  return found == standing_.end() ? std::nullopt : std::optional(found->second);
}

void Provisioner::TellChanges(const ProvisioningList& list, const ProvisioningPlan& plan,
                              Instant now) {
  std::map<NamespacedName, State> states;
  for (const ProvisioningFound& found : list.found) {
    const auto pod = plan.spokesmen.find(found.name);
    if (pod == plan.spokesmen.end()) continue;
    states[found.name] = found.state;
    if (!told_) continue;
    const auto known = told_->find(found.name);
    if (known == told_->end() || known->second != found.state) {
      Tell(pod->second, fmt::format("ProvisioningRequest {}: {}", found.name.name, SaidOf(found)),
           now);
    }
  }
  told_ = std::move(states);
}

void Provisioner::Tell(const RoomWish::Member& pod, const std::string& note, Instant now) {
  EventWrite event;
  event.kind = "Pod";
  event.ns = pod.pod.ns;
  event.name = pod.pod.name;
  event.uid = pod.uid.str();
  event.reason = "ProvisioningRequest";
  event.action = "Scheduling";
  event.note = note;
  event.when = now;
  objects_.Emit(std::move(event), [](const WriteResult& result) {
    if (result.kind == WriteResult::Kind::kDone) return;
    spdlog::debug("an event about a gang's nodes could not be written: code {}: {}",
                  result.http_code, result.message);
  });
}

void Provisioner::Count(const ProvisioningList& list) {
  std::map<std::string, int64_t> counts;
  for (int state = 0; state < kProvisioningStates; ++state) {
    counts[NameOf(static_cast<State>(state))] = 0;
  }
  for (const ProvisioningFound& found : list.found) ++counts[NameOf(found.state)];
  const absl::MutexLock lock(&shown_mutex_);
  counts_ = std::move(counts);
}

void Provisioner::AddTo(metrics::Scrape& scrape) const {
  const absl::MutexLock lock(&shown_mutex_);
  scrape.provisioning_requests = counts_;
}

}  // namespace tranche
