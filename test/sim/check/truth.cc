#include "test/sim/check/truth.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "scheduler/wire/json/json.h"
#include "test/sim/base/wall.h"

namespace tranche::sim::check {
namespace {

const Json kNull;

int64_t NumberAt(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string DeviceName(const Json& device) {
  const std::string uuid = TextAt(device, {"uuid"});
  if (!uuid.empty()) return uuid;
  const auto index = device.find("index");
  if (index != device.end() && index->is_number_integer()) {
    return "#" + std::to_string(index->get<int64_t>());
  }
  return "slot " + std::to_string(NumberAt(device, "slot"));
}

// When the last container of the pod ended, by its status.
std::optional<SimTime> FinishedAt(const Json& pod) {
  std::optional<SimTime> last;
  const Json& statuses = At(pod, {"status", "containerStatuses"});
  if (!statuses.is_array()) return last;
  for (const Json& status : statuses) {
    const std::optional<SimTime> at = TimeOf(TextAt(status, {"state", "terminated", "finishedAt"}));
    if (at && (!last || *at > *last)) last = at;
  }
  return last;
}

// When the first of its running containers started, by its status.
std::optional<SimTime> StartedAt(const Json& pod) {
  std::optional<SimTime> first;
  const Json& statuses = At(pod, {"status", "containerStatuses"});
  if (!statuses.is_array()) return first;
  for (const Json& status : statuses) {
    const std::optional<SimTime> at = TimeOf(TextAt(status, {"state", "running", "startedAt"}));
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

// Does more change than what a status reports?
bool SaysOtherwise(const Json& before, const Json& after) {
  if (before.is_null() || after.is_null()) return true;
  const auto differs = [&](std::initializer_list<const char*> path) {
    return At(before, path) != At(after, path);
  };
  return differs({"spec"}) || differs({"metadata", "labels"}) ||
         differs({"metadata", "annotations"}) || differs({"status", "allocatable"});
}

bool IsOver(const Json& pod) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

std::optional<SimTime> TimeOf(const std::string& text) {
  const auto time = wire::ParseTime(text);
  return time ? std::optional(SimTime(*time - kWorldBegan)) : std::nullopt;
}

const Json& At(const Json& object, std::initializer_list<const char*> path) {
  const Json* at = &object;
  for (const char* const name : path) {
    if (!at->is_object()) return kNull;
    const auto found = at->find(name);
    if (found == at->end()) return kNull;
    at = &*found;
  }
  return *at;
}

std::string TextAt(const Json& object, std::initializer_list<const char*> path) {
  const Json& at = At(object, path);
  return at.is_string() ? at.get<std::string>() : std::string();
}

std::string Annotation(const Json& object, const char* name) {
  return TextAt(object, {"metadata", "annotations", name});
}

std::string Label(const Json& object, const char* name) {
  return TextAt(object, {"metadata", "labels", name});
}

bool IsTranche(const std::string& who) { return who.starts_with("tranche-"); }

std::optional<Record> ReadRecord(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !At(json, {"containers"}).is_array()) return std::nullopt;
  Record record;
  record.epoch = NumberAt(json, "epoch");
  record.leaf = TextAt(json, {"leaf"});
  record.knowledge = TextAt(json, {"knowledge"});
  for (const Json& container : json["containers"]) {
    const Json& devices = At(container, {"devices"});
    if (!devices.is_array()) return std::nullopt;
    for (const Json& device : devices) {
      RecordDevice& read = record.devices.emplace_back();
      read.id = DeviceName(device);
      read.milli = NumberAt(device, "milli");
      read.mib = NumberAt(device, "mib");
      const Json& mig = At(device, {"mig"});
      if (!mig.is_object()) continue;
      read.profile = TextAt(mig, {"profile"});
      read.start = NumberAt(mig, "start");
      read.size = NumberAt(mig, "size");
    }
  }
  return record;
}

void Truth::Hear(const Happening& happening) {
  if (happening.kind == Happening::Kind::kAsked) return HearAnswer(happening);
  if (happening.kind == Happening::Kind::kLeads) {
    // It sees who has no node, and keeps nothing for a bind of before.
    for (auto& [uid, pod] : pods_) pod.binding = false;
  }
  if (happening.kind != Happening::Kind::kWritten) return;
  claims_.Hear(happening);
  if (happening.resource == "pods") {
    HearPod(happening);
  } else if (SaysOtherwise(happening.before, happening.after)) {
    changes_[{happening.resource, happening.key}].push_back({happening.at, happening.before});
  }
  if (happening.resource == "events" || happening.resource == "leases") return;
  Objects& stored = objects_[happening.resource];
  if (happening.after.is_null()) {
    stored.erase(happening.key);
  } else {
    stored[happening.key] = happening.after;
  }
}

void Truth::HearAnswer(const Happening& happening) {
  const PodLife* const known = pod_asked_about(happening);
  if (known == nullptr) return;
  PodLife& pod = pods_.at(known->uid);
  const std::string error = TextAt(happening.after, {"Error"});
  const bool open = happening.after.is_null() || error.find("not known yet") != std::string::npos;
  if (happening.text == "bind") pod.doubted = open;
  if (pod.bound) return;
  if (happening.text == "filter" && !pod.binding) pod.filtered = happening.at;
  // Without an answer, or with one that the outcome is open, what was reserved stays so.
  if (happening.text == "bind") pod.binding = open;
}

void Truth::HearPod(const Happening& happening) {
  const bool there = !happening.after.is_null();
  const Document& object = there ? happening.after : happening.before;
  const std::string uid = TextAt(object, {"metadata", "uid"});
  PodLife& pod = pods_[uid];
  if (pod.uid.empty()) {
    pod.uid = uid;
    pod.key = happening.key;
    pod.made = happening.at;
  }
  pod.object = object;
  if (there) {
    uids_[pod.key] = uid;
  } else {
    pod.gone = true;
    const auto held = uids_.find(pod.key);
    if (held != uids_.end() && held->second == uid) uids_.erase(held);
  }
  const std::string nominated = TextAt(object, {"status", "nominatedNodeName"});
  if (nominated != TextAt(happening.before, {"status", "nominatedNodeName"})) {
    if (!pod.kept.empty() && !pod.kept.back().to) pod.kept.back().to = happening.at;
    if (!nominated.empty() && IsTranche(happening.who)) {
      pod.kept.push_back({nominated, happening.at, {}});
    }
  }
  const std::string node = TextAt(object, {"spec", "nodeName"});
  if (!pod.bound && !node.empty()) {
    pod.bound = happening.at;
    pod.node = node;
    pod.binder = happening.who;
    const Objects& nodes = objects("nodes");
    if (const auto found = nodes.find(node); found != nodes.end()) pod.machine = found->second;
    const std::string record = Annotation(object, "tranche.dev/allocation");
    // What was there before our Binding is not ours: somebody wrote it on a pod that waits, and it
    // holds nothing by that.
    const bool is_forged =
        IsTranche(pod.binder) && Annotation(happening.before, "tranche.dev/allocation") == record;
    if (!record.empty() && !is_forged) {
      pod.record = ReadRecord(record);
      pod.recorded = record;
    }
    held_[node].insert(uid);
  }
  const bool leaves = !there || !At(object, {"metadata", "deletionTimestamp"}).is_null();
  if (!pod.leaving && leaves) {
    pod.leaving = happening.at;
    pod.evicted_by = happening.who;
  }
  // Containers that start anew in place begin no new time.
  if (!pod.started) pod.started = StartedAt(object);
  if (!pod.ended && (!there || IsOver(object))) {
    pod.ended = happening.at;
    pod.finished = FinishedAt(object);
    held_[pod.node].erase(uid);
  }
}

const PodLife* Truth::pod(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const PodLife* Truth::pod_asked_about(const Happening& happening) const {
  const std::string uid = TextAt(happening.before, {"uid"});
  return uid.empty() ? pod_of(happening.key) : pod(uid);
}

const PodLife* Truth::pod_of(const std::string& key) const {
  const auto found = uids_.find(key);
  return found == uids_.end() ? nullptr : pod(found->second);
}

std::vector<const PodLife*> Truth::on(const std::string& node) const {
  std::vector<const PodLife*> pods;
  const auto held = held_.find(node);
  if (held == held_.end()) return pods;
  for (const std::string& uid : held->second) pods.push_back(&pods_.at(uid));
  return pods;
}

const Objects& Truth::objects(const std::string& resource) const {
  static const Objects kNone;
  const auto found = objects_.find(resource);
  return found == objects_.end() ? kNone : found->second;
}

const Json* Truth::object(const std::string& resource, const std::string& key) const {
  const Objects& stored = objects(resource);
  const auto found = stored.find(key);
  return found == stored.end() ? nullptr : &found->second.json();
}

std::vector<Document> Truth::Lately(const std::string& resource, const std::string& key,
                                    SimTime now, SimTime lag) const {
  const Objects& stored = objects(resource);
  const auto now_there = stored.find(key);
  std::vector<Document> versions{now_there == stored.end() ? Document() : now_there->second};
  const auto found = changes_.find({resource, key});
  if (found == changes_.end()) return versions;
  for (auto change = found->second.rbegin(); change != found->second.rend(); ++change) {
    if (change->at < now - lag) break;
    versions.push_back(change->before);
  }
  return versions;
}

std::vector<Objects> Truth::Versions(const std::string& resource, SimTime now,
                                     SimTime since) const {
  std::vector<std::tuple<SimTime, std::string, const Document*>> undo;
  for (auto at = changes_.lower_bound({resource, ""});
       at != changes_.end() && at->first.first == resource; ++at) {
    for (auto change = at->second.rbegin(); change != at->second.rend(); ++change) {
      undo.emplace_back(change->at, at->first.second, &change->before);
    }
  }
  std::ranges::stable_sort(undo, std::greater<>(),
                           [](const auto& one) { return std::get<0>(one); });
  std::vector<Objects> versions;
  Objects then = objects(resource);
  for (const auto& [at, key, before] : undo) {
    // What was written after `now` was never there in the time asked for.
    if (at <= now) versions.push_back(then);
    if (at < since) return versions;
    if (before->is_null()) {
      then.erase(key);
    } else {
      then[key] = *before;
    }
  }
  versions.push_back(std::move(then));
  return versions;
}

}  // namespace tranche::sim::check
