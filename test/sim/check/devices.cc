#include "test/sim/check/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace tranche::sim::check {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kMig = "nvidia.com/mig-";
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t NumberIn(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return 0;
  const std::string text = value.get<std::string>();
  if (text.empty() || text.size() > 9) return 0;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::ranges::all_of(text, is_digit) ? std::stoll(text) : 0;
}

// What kubelets count of GPUs, by resource.
using Counts = std::map<std::string, int64_t>;

// What the pod's containers ask for; those that only initialise are not added up.
Counts CountsAsked(const Json& pod) {
  Counts asked;
  const Json& containers = At(pod, {"spec", "containers"});
  if (!containers.is_array()) return asked;
  for (const Json& container : containers) {
    const Json& limits = At(container, {"resources", "limits"});
    if (!limits.is_object()) continue;
    for (const auto& [resource, amount] : limits.items()) {
      if (resource == kGpu || resource.starts_with(kMig)) asked[resource] += NumberIn(amount);
    }
  }
  return asked;
}

// Of equal ids the first counts.
std::map<std::string, int64_t> CardsIn(const std::string& text) {
  std::map<std::string, int64_t> memory;
  const Json cards = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!cards.is_array()) return memory;
  for (const Json& card : cards) {
    memory.try_emplace(TextAt(card, {"id"}), NumberIn(At(card, {"devmem"})));
  }
  return memory;
}

std::vector<RecordDevice> DevicesIn(const Json& after) {
  std::vector<RecordDevice> devices;
  const Json& list = At(after, {"devices"});
  if (!list.is_array()) return devices;
  for (const Json& item : list) {
    RecordDevice& device = devices.emplace_back();
    device.id = item.is_string() ? item.get<std::string>() : TextAt(item, {"uuid"});
    if (device.id.empty()) device.id = "#" + std::to_string(NumberIn(At(item, {"index"})));
    if (item.is_string()) {
      device.milli = 1000;
      continue;
    }
    device.milli = NumberIn(At(item, {"milli"}));
    device.mib = NumberIn(At(item, {"mib"}));
    const Json& mig = At(item, {"mig"});
    device.profile = TextAt(mig, {"profile"});
    device.start = NumberIn(At(mig, {"start"}));
    device.size = NumberIn(At(mig, {"size"}));
  }
  return devices;
}

// Its record is not the one of its Binding any more.
bool IsEdited(const PodLife& pod) {
  return Annotation(pod.object, "tranche.dev/allocation") != pod.recorded;
}

}  // namespace

void DeviceChecker::Hear(const Happening& happening) {
  if (happening.kind == Happening::Kind::kGranted) return Granted(happening);
  if (happening.kind == Happening::Kind::kReleased) {
    given_.erase(happening.key);
    return;
  }
  if (happening.kind == Happening::Kind::kLeads) {
    if (!happening.text.empty()) {
      unmetered_until_ = SimTime::max();
    } else if (unmetered_until_ == SimTime::max()) {
      unmetered_until_ = happening.at;
    }
    // No ledger tells the first of what was there before it.
    if (!std::exchange(led_, true)) unmetered_until_ = std::max(unmetered_until_, happening.at);
  }
  if (happening.kind != Happening::Kind::kWritten) return;
  const bool made = happening.resource == "nodes" && happening.before.is_null();
  if (made) made_[happening.key] = happening.at;
  if (happening.resource != "pods") return;
  if (happening.after.is_null()) return;
  if (happening.who.starts_with("kubelet/")) return NotStarted(happening);
  if (!IsTranche(happening.who)) return;
  const PodLife* const pod = truth_.pod(TextAt(happening.after, {"metadata", "uid"}));
  if (pod == nullptr || pod->bound != happening.at || !pod->holds()) return;
  Bound(*pod, happening.at);
  Counted(*pod, happening.at);
}

std::string DeviceChecker::Add(Card& card, const RecordDevice& device, int64_t memory) {
  if (!device.profile.empty()) {
    card.cut = true;
    if (card.whole) return "a share and a MIG instance";
    const int64_t end = device.start + device.size;
    for (const auto& [start, before] : card.ranges) {
      if (start < end && device.start < before) {
        return fmt::format("MIG units {}..{} and {}..{}", start, before - 1, device.start, end - 1);
      }
    }
    card.ranges[device.start] = end;
    return "";
  }
  card.whole = true;
  if (card.cut) return "a share and a MIG instance";
  card.milli += device.milli;
  card.mib += device.mib;
  if (card.milli > 1000) return fmt::format("{} milli", card.milli);
  if (card.mib > memory) return fmt::format("{} MiB of {}", card.mib, memory);
  return "";
}

DeviceChecker::Memory DeviceChecker::MemoryOf(const std::string& node, SimTime now) {
  Memory memory;
  Register& read = registers_[node];
  for (const Json& version : truth_.Lately("nodes", node, now, options_.lag)) {
    const std::string text = Annotation(version, "hami.io/node-nvidia-register");
    if (text != read.text) read = {text, CardsIn(text)};
    for (const auto& [device, size] : read.cards) {
      int64_t& most = memory.registered[device];
      most = std::max(most, size);
    }
    const Json& label = At(version, {"metadata", "labels", "nvidia.com/gpu.memory"});
    memory.labelled = std::max(memory.labelled, NumberIn(label));
  }
  return memory;
}

int64_t DeviceChecker::Memory::Of(const std::string& device) const {
  const auto found = registered.find(device);
  const int64_t most = std::max(labelled, found == registered.end() ? 0 : found->second);
  return most == 0 ? kUnknown : most;
}

void DeviceChecker::Bound(const PodLife& pod, SimTime now) {
  std::map<std::string, Card> cards;
  // The pod of this Binding last, so that what breaks is told of it.
  std::vector<const PodLife*> pods = truth_.on(pod.node);
  std::erase(pods, &pod);
  pods.push_back(&pod);
  const Memory memory = MemoryOf(pod.node, now);
  for (const PodLife* const other : pods) {
    if (!other->record) continue;
    // A leader that begins without its ledger believes it: nothing else tells what it was given.
    const bool believed = IsOfAgent(pod.node) || *other->bound < unmetered_until_;
    if (other != &pod && believed && IsEdited(*other)) continue;
    for (const RecordDevice& device : other->record->devices) {
      // Which instance it will be the device plugin says to nobody: they are counted (Counted).
      if (!device.profile.empty() && other->record->knowledge == "counts") continue;
      // A slot is but a number in the record, no card: with the record it is taken away.
      const bool kept = !IsEdited(*other);
      // So it is when the node is made anew.
      const auto made = made_.find(pod.node);
      const bool older = made != made_.end() && other->bound && *other->bound < made->second;
      if (device.id.starts_with("slot ") && (!kept || older)) continue;
      const std::string wrong = Add(cards[device.id], device, memory.Of(device.id));
      if (wrong.empty() || other != &pod) continue;
      Found(now, pod.key,
            fmt::format("expected {} of {} to be free for it, found {} given there to its pods",
                        device.id, pod.node, wrong));
    }
  }
}

void DeviceChecker::Counted(const PodLife& pod, SimTime now) {
  const Counts asked = CountsAsked(pod.object);
  Counts taken;
  for (const PodLife* const other : truth_.on(pod.node)) {
    const bool is_news = !IsTranche(other->binder) && *other->bound > now - options_.lag;
    if (is_news) continue;
    for (const auto& [resource, count] : CountsAsked(other->object)) taken[resource] += count;
  }
  for (const auto& [resource, count] : asked) {
    if (count == 0) continue;
    int64_t most = 0;
    for (const Json& version : truth_.Lately("nodes", pod.node, now, options_.lag)) {
      most = std::max(most, NumberIn(At(version, {"status", "allocatable", resource.c_str()})));
    }
    if (taken[resource] <= most) continue;
    Found(now, pod.key,
          fmt::format("expected at most {} {} on {}, found {} with it", most, resource, pod.node,
                      taken[resource]));
  }
}

void DeviceChecker::NotStarted(const Happening& happening) {
  // Users write on pods that their agent has failed; the kubelet of a machine that came in place of
  // another begins with all its pods at once; agents fail by themselves; and other schedulers' pods
  // take turns that nobody gave them.
  for (const Fault fault : {Fault::kUsers, Fault::kNodes, Fault::kAgent, Fault::kStrangers}) {
    if (options_.faults.has(fault)) return;
  }
  const auto served_another = [](const Json& pod) {
    return TextAt(pod, {"status", "message"}).ends_with("it served another pod");
  };
  if (!served_another(happening.after) || served_another(happening.before)) return;
  const PodLife* const pod = truth_.pod_of(happening.key);
  if (pod == nullptr || !IsTranche(pod->binder)) return;
  Found(happening.at, happening.key,
        "expected the agent of " + pod->node + " to serve the pod, found it served another one");
}

bool DeviceChecker::IsOfAgent(const std::string& node) const {
  const Json* const object = truth_.object("nodes", node);
  return object != nullptr && Label(*object, "tranche.dev/agent") == "true";
}

// tranche-node gives what the record names; one that was edited since is not what was promised.
void DeviceChecker::AsRecorded(const Happening& happening) {
  const Given& given = given_.at(happening.key);
  const PodLife* const pod = truth_.pod(given.uid);
  if (pod == nullptr || !IsOfAgent(given.node) || IsEdited(*pod)) return;
  std::multiset<std::string> named, got;
  if (pod->record) {
    for (const RecordDevice& device : pod->record->devices) named.insert(device.id);
  }
  for (const RecordDevice& device : given.devices) got.insert(device.id);
  if (named == got) return;
  Found(happening.at, happening.key,
        fmt::format("expected its containers to get {} as recorded, found {}",
                    fmt::join(named, ", "), fmt::join(got, ", ")));
}

void DeviceChecker::Granted(const Happening& happening) {
  const PodLife* const pod = truth_.pod_of(happening.key);
  Given& own = given_[happening.key];
  own = {pod == nullptr ? happening.text : pod->uid,
         pod == nullptr ? TextAt(happening.after, {"node"}) : pod->node,
         DevicesIn(happening.after)};
  AsRecorded(happening);
  std::map<std::string, Card> cards;
  for (const auto& [key, given] : given_) {
    // A pod that was removed at once holds nothing, though its kubelet has yet to hear of it.
    const PodLife* const holder = truth_.pod(given.uid);
    if (given.node != own.node || holder == nullptr || holder->ended) continue;
    // An agent that has started anew knows of it what its record says by now.
    if (key != happening.key && IsOfAgent(given.node) && IsEdited(*holder)) continue;
    for (const RecordDevice& device : given.devices) {
      const std::string wrong = Add(cards[device.id], device, kUnknown);
      if (wrong.empty()) continue;
      Found(happening.at, happening.key,
            fmt::format("expected {} of {} to be handed out once, found {} given out with {}",
                        device.id, own.node, wrong, key));
    }
  }
}

}  // namespace tranche::sim::check
