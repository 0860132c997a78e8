#include "scheduler/kube/watch/mirror.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::kube {

absl::StatusOr<ObjectMeta> DecodeMeta(wire::Element object) {
  wire::Object root;
  if (object.get(root) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected an object, found another JSON value");
  }
  const auto metadata = wire::FindObject(root, "metadata");
  const auto name = metadata ? wire::FindText(*metadata, "name") : std::nullopt;
  const auto uid = metadata ? wire::FindText(*metadata, "uid") : std::nullopt;
  const auto version = metadata ? wire::FindText(*metadata, "resourceVersion") : std::nullopt;
  if (!name || name->empty() || !uid || uid->empty() || !version || version->empty()) {
    return absl::InvalidArgumentError(
        "expected name, uid and resourceVersion in metadata, found one missing");
  }
  const auto ns = wire::FindText(*metadata, "namespace").value_or("");
  ObjectMeta out;
  out.identity.key = ns.empty() ? std::string(*name) : fmt::format("{}/{}", ns, *name);
  out.identity.uid = *uid;
  out.resource_version = *version;
  return out;
}

Mirror::Mirror(std::string resource, ObjectSink& sink)
    : resource_(std::move(resource)), sink_(sink) {}

Decoded Mirror::Decode(const ReadObject& read, const Identity& identity, bool known) {
  if (!read.problem.empty()) return sink_.DecodeOutline(read.object, identity, read.problem);
  return sink_.Decode(read.object, identity, known);
}

void Mirror::NoteProblem(const std::string& key, const std::string& problem,
                         ObjectVersion& version) {
  version.unreadable = !problem.empty();
  if (!version.unreadable) return;
  ++undecodable_;
  spdlog::error("cannot read {} {} ({}) at version {}, taking it as still there: {}", resource_,
                key, version.uid, version.resource_version, problem);
}

absl::Status Mirror::Changed(const ReadObject& read) {
  TRANCHE_ASSIGN_OR_RETURN(const auto meta, DecodeMeta(read.object));
  const Identity& identity = meta.identity;
  if (touching_) touched_.insert(identity.key);
  ObjectVersion& version = known_[identity.key];
  unreadable_ -= version.unreadable ? 1 : 0;
  if (version.uid != identity.uid) {
    if (!version.uid.empty() && !TRANCHE_PLANTED(replaced_pod_stays)) {
      sink_.Gone({identity.key, version.uid});
    }
    version = ObjectVersion{identity.uid, {}, false, false};
  }
  version.resource_version = meta.resource_version;
  const Decoded decoded = Decode(read, identity, version.delivered);
  NoteProblem(identity.key, decoded.problem, version);
  unreadable_ += version.unreadable ? 1 : 0;
  if (decoded.deliver) {
    version.delivered = true;
    decoded.deliver();
  }
  sink_.Commit();
  return absl::OkStatus();
}

absl::Status Mirror::Deleted(wire::Element object) {
  TRANCHE_ASSIGN_OR_RETURN(const auto meta, DecodeMeta(object));
  const Identity& identity = meta.identity;
  if (touching_) touched_.insert(identity.key);
  const auto found = known_.find(identity.key);
  // A namesake of what is known is not the object that went.
  if (found == known_.end() || found->second.uid != identity.uid) return absl::OkStatus();
  unreadable_ -= found->second.unreadable ? 1 : 0;
  known_.erase(found);
  sink_.Gone(identity);
  sink_.Commit();
  return absl::OkStatus();
}

absl::Status Mirror::Collect(List& list, const ReadObject& read) {
  TRANCHE_ASSIGN_OR_RETURN(auto meta, DecodeMeta(read.object));
  const Identity& identity = meta.identity;
  List::Item item;
  item.version.uid = identity.uid;
  item.version.resource_version = meta.resource_version;
  const auto found = known_.find(identity.key);
  if (found != known_.end() && found->second.uid == identity.uid) {
    item.version.delivered = found->second.delivered;
    item.version.unreadable = found->second.unreadable;
    item.unchanged = found->second.resource_version == meta.resource_version;
  }
  if (!item.unchanged) item.decoded = Decode(read, identity, item.version.delivered);
  list.items[identity.key] = std::move(item);
  return absl::OkStatus();
}

void Mirror::Replace(List list) {
  ObjectVersions next;
  for (auto& [key, item] : list.items) {
    const auto before = known_.find(key);
    if (before != known_.end() && before->second.uid != item.version.uid) {
      sink_.Gone({key, before->second.uid});
    }
    if (!item.unchanged) NoteProblem(key, item.decoded.problem, item.version);
    if (item.decoded.deliver) {
      item.decoded.deliver();
      item.version.delivered = true;
    }
    if (touching_) touched_.insert(key);
    next.emplace_hint(next.end(), key, std::move(item.version));
  }
  for (const auto& [key, version] : known_) {
    if (next.contains(key)) continue;
    if (list.incomplete || TRANCHE_PLANTED(gone_by_a_list_stays)) {
      next.emplace(key, version);
    } else {
      sink_.Gone({key, version.uid});
    }
  }
  known_ = std::move(next);
  unreadable_ = std::count_if(known_.begin(), known_.end(),
                              [](const auto& known) { return known.second.unreadable; });
  sink_.Commit();
  sink_.Listed();
}

void Mirror::StartTouching() {
  touching_ = true;
  touched_.clear();
}

void Mirror::StopTouching() {
  touching_ = false;
  touched_.clear();
}

std::vector<std::string> Mirror::Differences(const ObjectVersions& fresh) const {
  std::vector<std::string> out;
  const auto same = [](const ObjectVersion& left, const ObjectVersion& right) {
    return left.uid == right.uid && left.resource_version == right.resource_version;
  };
  for (const auto& [key, version] : fresh) {
    const auto found = known_.find(key);
    const bool differs = found == known_.end() || !same(found->second, version);
    if (differs && !touched_.contains(key)) out.push_back(key);
  }
  for (const auto& [key, version] : known_) {
    if (!fresh.contains(key) && !touched_.contains(key)) out.push_back(key);
  }
  return out;
}

}  // namespace tranche::kube
