#include "test/sim/world/kube_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "test/sim/cluster/lists.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Failure = SchedulingQueue::Failure;

constexpr SimTime kHttpTimeout = seconds(5);
constexpr SimTime kMostLag = milliseconds(20);
constexpr int64_t kWeight = 20;
constexpr uint64_t kOfVolumes = 0x766f6c;  // draws of their own
constexpr int64_t kScale = 10;  // an extender's scores are 0 to 10, kube-scheduler's 0 to 100

QueueOptions QueueFor(const KubeSchedulerOptions& options) {
  QueueOptions queue;
  queue.most_backoff = options.most_backoff;
  queue.pops_early = options.pops_early;
  return queue;
}

// Go's encoder escapes what HTML knows.
std::string EscapedAsGoDoes(const std::string& json) {
  if (json.find_first_of("<>&") == std::string::npos) return json;
  std::string out;
  for (const char byte : json) {
    switch (byte) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += byte;
    }
  }
  return out;
}

bool HasNames(const Json& answer, const char* key) {
  const auto found = answer.find(key);
  return found != answer.end() && !found->is_null();
}

}  // namespace

KubeScheduler::KubeScheduler(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                             ApiServer& api, Network& network, KubeSchedulerOptions options,
                             uint64_t seed)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kScheduler)),
      api_(api),
      network_(network),
      options_(std::move(options)),
      draws_(seed),
      of_volumes_(Draws(seed).Fork(kOfVolumes)),
      fate_(loop.NewActor("fate of a kube-scheduler")),
      queue_(QueueFor(options_)),
      pods_(loop, api.store(), "pods", kMostLag, draws_.Next(),
            [this](const Change& change) { HearPod(change); }),
      nodes_(loop, api.store(), "nodes", kMostLag, draws_.Next(),
             [this](const Change& change) { HearNode(change); }) {
  if (!options_.allocates) return;
  claims_ = std::make_unique<ClaimPlugin>(loop, api, kMostLag, draws_.Fork(1).Next(), [this] {
    queue_.Happened(SchedulingQueue::Event::kNodeChanged, loop_.now());
    Pump();
  });
}

void KubeScheduler::Start(TrancheEndpoint& tranche) {
  tranche_ = &tranche;
  Begin("start");
  if (rate_ > 0) loop_.After(seconds(5), fate_, [this] { Restart(); });
}

void KubeScheduler::Begin(const std::string& what) {
  actor_ = loop_.NewActor(fmt::format("kube-{}/{}", options_.name, ++life_));
  // Nothing is tried before its informers have shown what there is.
  busy_ = true;
  cache_.Clear();
  queue_ = SchedulingQueue(QueueFor(options_));
  said_.clear();
  pods_.Start(actor_);
  nodes_.Start(actor_);
  if (claims_ != nullptr) claims_->Start(actor_);
  Happening happening{Happening::Kind::kStarted};
  happening.who = loop_.NameOf(actor_);
  happening.text = what;
  history_.Add(std::move(happening));
  loop_.After(2 * kMostLag, actor_, [this] {
    busy_ = false;
    Pump();
  });
  loop_.After(seconds(1), actor_, [this] { Tick(); });
}

void KubeScheduler::Restart() {
  if (quiet_) return;
  loop_.After(seconds(5), fate_, [this] { Restart(); });
  std::optional<Draws> act = script_.ActByChance("scheduler-restart", rate_ * 2);
  if (!act || !loop_.lives(actor_)) return;
  Happening happening{Happening::Kind::kEnded};
  happening.who = loop_.NameOf(actor_);
  history_.Add(std::move(happening));
  loop_.End(actor_);
  pods_.Stop();
  nodes_.Stop();
  if (claims_ != nullptr) claims_->Stop();
  loop_.After(milliseconds(act->Between(100, 20'000)), fate_, [this] { Begin("restart"); });
}

void KubeScheduler::Tick() {
  loop_.After(seconds(1), actor_, [this] { Tick(); });
  queue_.Tick(loop_.now());
  Pump();
}

void KubeScheduler::HearNode(const Change& change) {
  if (change.type == Change::Type::kDeleted) {
    cache_.RemoveNode(change.object->key());
    return;
  }
  cache_.SetNode(change.object);
  queue_.Happened(SchedulingQueue::Event::kNodeChanged, loop_.now());
  Pump();
}

void KubeScheduler::HearPod(const Change& change) {
  using Event = SchedulingQueue::Event;
  const SimTime now = loop_.now();
  auto pod = std::make_shared<const PodView>(change.object);
  const std::string uid = pod->uid;
  const PodViewPtr before = cache_.Pod(uid);
  const bool was_bound = before != nullptr && !before->node.empty();
  // Those that have ended leave its informer as those that are deleted.
  if (change.type == Change::Type::kDeleted || pod->terminal()) {
    const bool held = was_bound || cache_.assumes(uid);
    cache_.RemovePod(uid);
    queue_.Remove(uid);
    said_.erase(uid);
    if (held) queue_.Happened(Event::kFreed, now);
    return Pump();
  }
  if (!pod->node.empty()) {
    cache_.SetPod(std::move(pod));
    queue_.Remove(uid);
    queue_.Happened(Event::kOther, now);
    return Pump();
  }
  const bool mine = pod->scheduler == options_.name && !pod->gated && !pod->deleting;
  const int64_t priority = pod->priority;
  cache_.SetPod(std::move(pod));
  if (!mine || cache_.assumes(uid)) return;
  if (before == nullptr || before->gated) {
    queue_.Add(uid, priority, now);
  } else {
    queue_.Update(uid, now);
  }
  Pump();
}

void KubeScheduler::Pump() {
  if (busy_ || !queue_.ready()) return;
  busy_ = true;
  loop_.After(options_.cycle, actor_, [this] { Next(); });
}

void KubeScheduler::Next() {
  busy_ = false;
  for (;;) {
    const std::optional<std::string> uid = queue_.Pop(loop_.now());
    if (!uid) return;
    const PodViewPtr pod = cache_.Pod(*uid);
    if (pod == nullptr || pod->deleting || !pod->node.empty() || cache_.assumes(*uid)) {
      queue_.Remove(*uid);
      continue;
    }
    if (claims_ != nullptr && !claims_->NotReady(*pod).empty()) {
      queue_.Failed(*uid, Failure::kExtender, loop_.now());
      continue;
    }
    busy_ = true;
    return Cycle(pod);
  }
}

void KubeScheduler::Ask(const std::string& verb, const PodView& pod, std::string body,
                        std::function<void(const Json& answer)> done) {
  Request request;
  request.method = "POST";
  request.target = "/scheduler/" + verb;
  request.body = std::move(body);
  network_.Carry(
      actor_, std::move(request), kHttpTimeout,
      [this, verb, key = pod.key, uid = pod.uid, done = std::move(done)](const Reply& reply) {
        Json parsed;
        if (reply.code == 200) {
          parsed = Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
          if (parsed.is_discarded()) parsed = nullptr;
        }
        const Document answer(std::move(parsed));
        Happening asked{Happening::Kind::kAsked};
        asked.number = static_cast<uint64_t>(reply.code);
        asked.who = loop_.NameOf(actor_);
        asked.resource = "pods";
        asked.key = key;
        asked.text = verb;
        asked.before = Document(Json{{"uid", uid}});
        asked.after = answer;
        history_.Add(std::move(asked));
        done(answer.json());
      },
      [this](Actor from, Request carried, SimTime timeout, std::function<void(Reply)> heard) {
        tranche_->Send(from, std::move(carried), timeout, std::move(heard));
      });
}

std::string KubeScheduler::Args(const PodView& pod, const std::vector<std::string>& names) {
  static const ResourceType* const kType = FindResource("pods");
  std::string list;
  for (const std::string& name : names) {
    list += list.empty() ? "\"" : ",\"";
    list += name + "\"";
  }
  return EscapedAsGoDoes(fmt::format("{{\"Pod\":{},\"Nodes\":null,\"NodeNames\":[{}]}}",
                                     BareText(*pod.stored, *kType), list));
}

std::string KubeScheduler::WhyNot(const PodView& pod, const SchedulerCache::Node& node) const {
  std::string why = cache_.WhyNot(pod, node);
  if (why.empty() && claims_ != nullptr) why = claims_->WhyNot(pod, node.view->name);
  return why;
}

void KubeScheduler::Cycle(const PodViewPtr& pod) {
  auto attempt = std::make_shared<Attempt>();
  attempt->pod = pod;
  const SchedulerCache::Node* const nominated = cache_.FindNode(pod->nominated);
  if (nominated != nullptr && WhyNot(*pod, *nominated).empty()) {
    attempt->on_nominated = true;
    attempt->names = {pod->nominated};
    return Filter(attempt);
  }
  FilterAll(attempt);
}

void KubeScheduler::FilterAll(const AttemptPtr& attempt) {
  attempt->names.clear();
  for (const auto& [name, node] : cache_.nodes()) {
    if (node.view == nullptr) continue;
    std::string why = WhyNot(*attempt->pod, node);
    if (why.empty()) {
      attempt->names.push_back(name);
    } else {
      // Evicting somebody moves no devices of claims.
      const bool of_claims = why.find("claim") != std::string::npos;
      if (of_claims || why.starts_with("node(s)")) attempt->unresolvable.insert(name);
      attempt->refused[name] = std::move(why);
    }
  }
  if (attempt->names.empty()) return Preempt(attempt);
  Filter(attempt);
}

void KubeScheduler::Filter(const AttemptPtr& attempt) {
  Ask("filter", *attempt->pod, Args(*attempt->pod, attempt->names),
      [this, attempt](const Json& answer) { Filtered(attempt, answer); });
}

void KubeScheduler::Filtered(const AttemptPtr& attempt, const Json& answer) {
  if (!answer.is_object() || !answer.value("Error", "").empty()) {
    // Of the nominated node an error counts as a refusal.
    if (attempt->on_nominated) {
      attempt->on_nominated = false;
      return FilterAll(attempt);
    }
    return Fail(attempt, Failure::kError, "failed filter with extender");
  }
  std::vector<std::string> left;
  if (HasNames(answer, "NodeNames")) {
    left = answer.at("NodeNames").get<std::vector<std::string>>();
  }
  for (const std::string& name : left) {
    if (std::find(attempt->names.begin(), attempt->names.end(), name) == attempt->names.end()) {
      return Fail(attempt, Failure::kError, "extender claims a filtered node not in the input");
    }
  }
  if (attempt->on_nominated && left.empty()) {
    attempt->on_nominated = false;
    return FilterAll(attempt);
  }
  for (const std::string& name : attempt->names) {
    if (std::find(left.begin(), left.end(), name) != left.end()) continue;
    attempt->by_extender = true;
    // One that is listed nowhere cannot be helped either, and no reason is shown.
    const bool listed = HasNames(answer, "FailedNodes") && answer.at("FailedNodes").contains(name);
    if (listed) attempt->refused[name] = answer.at("FailedNodes").at(name).get<std::string>();
    if (!listed) attempt->unresolvable.insert(name);
    if (HasNames(answer, "FailedAndUnresolvableNodes") &&
        answer.at("FailedAndUnresolvableNodes").contains(name)) {
      attempt->refused[name] = answer.at("FailedAndUnresolvableNodes").at(name).get<std::string>();
      attempt->unresolvable.insert(name);
    }
  }
  attempt->names = std::move(left);
  if (attempt->names.empty()) return Preempt(attempt);
  if (attempt->names.size() == 1) return Choose(attempt, attempt->names.front());
  Ask("prioritize", *attempt->pod, Args(*attempt->pod, attempt->names),
      [this, attempt](const Json& scores) { Prioritized(attempt, scores); });
}

void KubeScheduler::Prioritized(const AttemptPtr& attempt, const Json& answer) {
  std::map<std::string, int64_t> totals;
  for (const std::string& name : attempt->names) {
    const SchedulerCache::Node* const node = cache_.FindNode(name);
    if (node == nullptr) continue;
    const auto has = node->view->allocatable.find("cpu");
    const auto used = node->used.find("cpu");
    const int64_t all = has == node->view->allocatable.end() ? 0 : has->second;
    const int64_t left = all - (used == node->used.end() ? 0 : used->second);
    totals[name] = all > 0 ? left * 100 / all : 0;
  }
  // An error of this call is swallowed.
  for (const Json& score : answer) {
    const auto found = totals.find(score.value("Host", ""));
    if (found != totals.end()) {
      found->second += score.value("Score", int64_t{0}) * kWeight * kScale;
    }
  }
  std::vector<std::string> best;
  int64_t most = INT64_MIN;
  for (const auto& [name, total] : totals) {
    if (total > most) best.clear();
    if (total >= most) best.push_back(name);
    most = std::max(most, total);
  }
  if (best.empty()) return Fail(attempt, Failure::kError, "the nodes are gone");
  Choose(attempt, draws_.Pick(best));
}

void KubeScheduler::Choose(const AttemptPtr& attempt, const std::string& node) {
  // It may have been deleted while the extender was asked.
  const PodViewPtr now = cache_.Pod(attempt->pod->uid);
  if (now == nullptr || !now->node.empty()) {
    busy_ = false;
    return Pump();
  }
  if (claims_ != nullptr && !claims_->Reserve(*attempt->pod, node)) {
    return Fail(attempt, Failure::kError, "claims have changed");
  }
  cache_.Assume(attempt->pod, node);
  if (options_.nominates_before_bind && options_.minor >= 35) {
    Write write{loop_.NameOf(actor_), "PATCH", {FindResource("pods")}, ""};
    write.path.ns = attempt->pod->stored->ns();
    write.path.name = attempt->pod->stored->name();
    write.path.subresource = "status";
    write.content_type = "application/strategic-merge-patch+json";
    write.body = {{"metadata", {{"uid", attempt->pod->uid}}},
                  {"status", {{"nominatedNodeName", node}}}};
    api_.Do(actor_, std::move(write));
  }
  PreBind(attempt, node);
  busy_ = false;
  Pump();
}

void KubeScheduler::PreBind(const AttemptPtr& attempt, const std::string& node) {
  if (options_.has_volumes && of_volumes_.Chance(3'000)) {
    const SimTime made = milliseconds(of_volumes_.Between(100, 40'000));
    loop_.After(made, actor_, [this, attempt, node] {
      if (cache_.Pod(attempt->pod->uid) == nullptr) return NotBound(attempt);
      Bind(attempt, node);
    });
    return;
  }
  if (claims_ == nullptr) return Bind(attempt, node);
  claims_->PreBind(*attempt->pod, [this, attempt, node](bool stored) {
    if (!stored) return NotBound(attempt);
    Bind(attempt, node);
  });
}

void KubeScheduler::Bind(const AttemptPtr& attempt, const std::string& node) {
  const PodView& pod = *attempt->pod;
  Ask("bind", pod,
      Json({{"PodName", pod.stored->name()},
            {"PodNamespace", pod.stored->ns()},
            {"PodUID", pod.uid},
            {"Node", node}})
          .dump(),
      [this, attempt](const Json& answer) {
        if (answer.is_object() && answer.value("Error", "").empty()) return;
        NotBound(attempt);
      });
}

void KubeScheduler::NotBound(const AttemptPtr& attempt) {
  const std::string& uid = attempt->pod->uid;
  cache_.Forget(uid);
  if (claims_ != nullptr) claims_->Unreserve(*attempt->pod);
  queue_.Happened(SchedulingQueue::Event::kFreed, loop_.now());
  const PodViewPtr now = cache_.Pod(uid);
  if (now == nullptr || !now->node.empty()) {
    queue_.Remove(uid);  // it was bound, and the answer lost
    return Pump();
  }
  queue_.Failed(uid, Failure::kError, loop_.now());
  SayWaiting(*now, "SchedulerError", "binding rejected", "");
  Pump();
}

void KubeScheduler::Fail(const AttemptPtr& attempt, Failure why, const std::string& message) {
  const PodViewPtr now = cache_.Pod(attempt->pod->uid);
  if (now != nullptr && now->node.empty()) {
    queue_.Failed(attempt->pod->uid, why, loop_.now());
    SayWaiting(*now, why == Failure::kError ? "SchedulerError" : "Unschedulable", message,
               std::nullopt);
  } else {
    queue_.Remove(attempt->pod->uid);
  }
  busy_ = false;
  Pump();
}

void KubeScheduler::SayWaiting(const PodView& pod, const char* reason, const std::string& message,
                               const std::optional<std::string>& nominated) {
  const bool renominates = nominated && *nominated != pod.nominated;
  std::string said = reason + (": " + message);
  if (!renominates && said_[pod.uid] == said) return;
  said_[pod.uid] = std::move(said);
  Write write{loop_.NameOf(actor_), "PATCH", {FindResource("pods")}, ""};
  write.path.ns = pod.stored->ns();
  write.path.name = pod.stored->name();
  write.path.subresource = "status";
  write.content_type = "application/strategic-merge-patch+json";
  Json status = {{"conditions", Json::array({{{"type", "PodScheduled"},
                                              {"status", "False"},
                                              {"reason", reason},
                                              {"message", message}}})}};
  if (renominates) {
    status["nominatedNodeName"] = nominated->empty() ? Json(nullptr) : Json(*nominated);
  }
  write.body = {{"metadata", {{"uid", pod.uid}}}, {"status", std::move(status)}};
  api_.Do(actor_, std::move(write));
}

std::string KubeScheduler::FitMessage(const Attempt& attempt, std::size_t nodes) {
  std::map<std::string, int> counts;
  for (const auto& [name, reason] : attempt.refused) ++counts[reason];
  std::string text = fmt::format("0/{} nodes are available:", nodes);
  for (const auto& [reason, count] : counts) text += fmt::format(" {} {},", count, reason);
  text.back() = '.';
  return text;
}

}  // namespace tranche::sim
