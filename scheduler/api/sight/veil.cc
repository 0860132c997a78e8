#include "scheduler/api/sight/veil.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tranche {
namespace {

constexpr const char* kAnothersReclaim = "of-another-team";

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._/").find(c) != std::string_view::npos;
}

}  // namespace

Veil::Veil(Sight sight, std::span<const QuotaView> quotas) : sight_(std::move(sight)) {
  std::map<std::string, std::string> parents;
  std::set<std::string> above;
  for (const QuotaView& quota : quotas) {
    parents[quota.report.name] = quota.report.parent;
    hidden_.insert(quota.report.name);
    bool seen = false;
    for (const std::string& ns : quota.report.namespaces) {
      if (Sees(ns)) {
        seen = true;
      } else {
        hidden_.insert(ns);
      }
    }
    if (seen) teams_.insert(quota.report.name);
  }
  for (std::string name : teams_) {
    while (!name.empty() && above.insert(name).second) name = parents[name];
  }
  for (const std::string& name : above) hidden_.erase(name);
  for (const std::string& ns : sight_.namespaces) hidden_.erase(ns);
}

bool Veil::Concerns(const Reclaim& reclaim) const {
  const auto seen = [this](const auto& each) { return Sees(each.pod.ns); };
  return std::ranges::any_of(reclaim.members, seen) || std::ranges::any_of(reclaim.victims, seen);
}

std::string Veil::Word(std::string_view word) const {
  std::string_view name = word;
  while (name.ends_with('.')) name.remove_suffix(1);
  const std::string end(word.substr(name.size()));
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) {
    return (hidden_.contains(name) ? kAnotherTeam : std::string(name)) + end;
  }
  const std::string_view first = name.substr(0, slash);
  // "nvidia.com/gpu", since no namespace has a dot.
  const bool resource = first.find('.') != std::string_view::npos;
  if (resource || Sees(first)) return std::string(word);
  return kAnothersPod + end;
}

std::string Veil::Text(std::string_view text) const {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto word =
        static_cast<std::size_t>(std::ranges::find_if_not(text, IsWordCharacter) - text.begin());
    if (word > 0) shown += Word(text.substr(0, word));
    text.remove_prefix(word);
    const auto gap =
        static_cast<std::size_t>(std::ranges::find_if(text, IsWordCharacter) - text.begin());
    shown += text.substr(0, gap);
    text.remove_prefix(gap);
  }
  return shown;
}

void Veil::Draw(PodView& pod) const {
  // kube-scheduler's words count nodes ("0/5 nodes are available"), and name no pod but its own.
  const std::size_t says = pod.detail.ends_with(pod.scheduler_says) ? pod.scheduler_says.size() : 0;
  const std::size_t ours = pod.detail.size() - says;
  pod.detail = Text(std::string_view(pod.detail).substr(0, ours)) + pod.detail.substr(ours);
}

void Veil::Draw(GangView& gang) const { gang.detail = Text(gang.detail); }

void Veil::Draw(Explanation& explanation) const {
  Draw(explanation.pod);
  for (NodeVerdict& verdict : explanation.nodes) verdict.detail = Text(verdict.detail);
  for (ResourceClaimView& claim : explanation.claims) {
    claim.name = Text(claim.name);
    std::erase_if(claim.pods, [this](const PodName& pod) { return !Sees(pod.ns); });
    for (std::string& sentence : claim.sharing) sentence = Text(sentence);
  }
  explanation.advice = Text(explanation.advice);
  if (explanation.reclaim) Draw(*explanation.reclaim);
  if (explanation.blocked) explanation.blocked->detail = Text(explanation.blocked->detail);
}

void Veil::Draw(RankView& rank) const {
  for (TurnLine& line : rank.lines) {
    for (std::optional<TurnView>* const turn : {&line.before, &line.after}) {
      if (!*turn || Sees((*turn)->pod.ns)) continue;
      (*turn)->pod = {"", kAnothersPod};
      (*turn)->uid = PodUid();
      if (SeesTeam((*turn)->leaf)) continue;
      (*turn)->leaf = kAnotherTeam;
      (*turn)->share.reset();
    }
  }
}

void Veil::Draw(QuotaView& quota) const {
  std::erase_if(quota.report.namespaces, [this](const std::string& ns) { return !Sees(ns); });
  quota.abandoned.clear();
  quota.oversubscribed.clear();
  for (LineReach& reach : quota.reach) reach.why = Text(reach.why);
}

void Veil::Draw(RecentEvent& event) const {
  // They are named after the pod that they are for.
  if (event.kind == RecentKind::kEvictionAsked) event.text.clear();
  event.text = Text(event.text);
}

void Veil::Draw(NodeView& node) const {
  for (GpuView& gpu : node.gpus) {
    std::erase_if(gpu.pods, [this](const GpuPodView& held) { return !Sees(held.pod.ns); });
    for (MigView& mig : gpu.mig) {
      std::erase_if(mig.pods, [this](const std::string& pod) {
        return !Sees(std::string_view(pod).substr(0, pod.find('/')));
      });
    }
  }
  node.closed_detail.clear();
  node.problems.clear();
}

void Veil::Draw(Reclaim& reclaim) const {
  const auto seen = [this](const ReclaimMember& member) { return Sees(member.pod.ns); };
  // Its name is made of that of the pod, gang or team that it is for.
  if (reclaim.members.empty() || !std::ranges::all_of(reclaim.members, seen)) {
    reclaim.name = kAnothersReclaim;
  }
  reclaim.source = Text(reclaim.source);
  if (!SeesTeam(reclaim.leaf)) reclaim.leaf.clear();
  for (ReclaimMember& member : reclaim.members) {
    if (Sees(member.pod.ns)) continue;
    member.pod = {"", kAnothersPod};
    member.node = NodeName();
  }
  for (ReclaimVictim& victim : reclaim.victims) {
    if (Sees(victim.pod.ns)) continue;
    victim.pod = {"", kAnothersPod};
    victim.node = NodeName();
    victim.leaf.clear();
    victim.gang.clear();
    victim.owner.clear();
    victim.checkpoint.reset();
  }
}

}  // namespace tranche
