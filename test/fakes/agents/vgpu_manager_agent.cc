#include "test/fakes/agents/vgpu_manager_agent.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "test/fakes/agents/agent_text.h"

namespace tranche::fakes {
namespace {

constexpr const char* kNode = "nvidia.com/predicate-node";
constexpr const char* kTime = "nvidia.com/predicate-time";
constexpr const char* kPlanned = "nvidia.com/pre-allocated";
constexpr const char* kServed = "nvidia.com/real-allocated";
constexpr const char* kPhase = "nvidia.com/assigned-phase";
constexpr uint64_t kFinished = std::numeric_limits<int64_t>::max();

struct Claim {
  std::string container;
  std::string text;  // with the brackets
  std::vector<Grant> grants;
};

// "<card>_<uuid>_<cores>_<MiB>"; nullopt: not this, or no such card.
std::optional<Grant> ReadGrant(const std::string& text, const FakeNode& node) {
  constexpr std::size_t kParts = 4;
  const std::vector<std::string> parts = SplitText(text, '_');
  if (parts.size() != kParts) return std::nullopt;
  const std::optional<uint64_t> card = ReadNumber(parts[0]);
  const std::optional<uint64_t> cores = ReadNumber(parts[2]);
  const std::optional<uint64_t> memory = ReadNumber(parts[3]);
  if (!card || !cores || !memory || *card >= node.cards.size() ||
      node.cards[*card].uuid != parts[1]) {
    return std::nullopt;
  }
  return Grant{static_cast<int>(*card), static_cast<int64_t>(*memory),
               static_cast<int64_t>(*cores)};
}

// "main[...];side[...]"; nullopt: not this.
std::optional<std::vector<Claim>> ReadClaims(const std::string& text, const FakeNode& node) {
  std::vector<Claim> claims;
  if (text.empty()) return claims;
  for (const std::string& part : SplitText(text, ';')) {
    const std::size_t open = part.find('[');
    if (open == std::string::npos || open == 0 || part.back() != ']') return std::nullopt;
    Claim claim{part.substr(0, open), part, {}};
    for (const std::string& device :
         SplitText(part.substr(open + 1, part.size() - open - 2), ',')) {
      const std::optional<Grant> grant = ReadGrant(device, node);
      if (!grant) return std::nullopt;
      claim.grants.push_back(*grant);
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

}  // namespace

Service VgpuManagerAgent::Allocate(const DeviceCall& call) {
  const std::optional<FakeNode> node = pods_.Node(call.node);
  if (!node) return ServiceError("no node " + call.node);
  std::optional<FakePod> oldest;
  uint64_t least = kFinished;
  for (FakePod& pod : pods_.PodsOn(call.node)) {
    const uint64_t time = ReadNumber(pod.Note(kTime)).value_or(0);
    if (pod.ended() || pod.deleting || pod.Note(kPlanned).empty() || pod.Note(kNode) != call.node ||
        time == 0 || time >= least) {
      continue;
    }
    least = time;
    oldest = std::move(pod);
  }
  if (!oldest) return ServiceError("no pod waits on " + call.node);
  const auto planned = ReadClaims(oldest->Note(kPlanned), *node);
  const auto served = ReadClaims(oldest->Note(kServed), *node);
  if (!planned || !served) return Fail(*oldest, "cannot read its devices");
  const auto next = std::find_if(planned->begin(), planned->end(), [&](const Claim& claim) {
    return std::none_of(served->begin(), served->end(), [&claim](const Claim& earlier) {
      return earlier.container == claim.container;
    });
  });
  if (next == planned->end()) return Fail(*oldest, "every container is served");
  if (next->grants.size() != call.ids.size()) return Fail(*oldest, "another number of devices");

  Service service;
  service.believed = {oldest->uid, next->container};
  service.grants = next->grants;
  std::vector<std::string> ids = call.ids;
  std::sort(ids.begin(), ids.end());
  served_[{call.node, std::move(ids)}] = service.believed;
  const std::string before = oldest->Note(kServed);
  TextPatch patch{{kServed, before.empty() ? next->text : before + ";" + next->text}};
  const bool done = served->size() + 1 == planned->size();
  if (done) patch[kTime] = std::to_string(kFinished);
  pods_.PatchAnnotations(oldest->uid, patch);
  if (done) pods_.PatchLabels(oldest->uid, {{kPhase, "succeed"}});
  return service;
}

Service VgpuManagerAgent::PreStart(const DeviceCall& call, const ContainerId& owner) {
  std::vector<std::string> ids = call.ids;
  std::sort(ids.begin(), ids.end());
  const auto found = served_.find({call.node, std::move(ids)});
  if (found == served_.end()) return ServiceError("these devices were never given");
  if (found->second.uid != owner.uid) {
    return ServiceError("the devices of " + owner.uid + " were given to " + found->second.uid);
  }
  return {};
}

Service VgpuManagerAgent::Fail(const FakePod& pod, const std::string& why) {
  pods_.PatchLabels(pod.uid, {{kPhase, "failed"}});
  return ServiceError(pod.name + ": " + why);
}

}  // namespace tranche::fakes
