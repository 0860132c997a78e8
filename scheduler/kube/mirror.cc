#include "scheduler/kube/mirror.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

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

void Mirror::NoteProblem(const Identity& identity, const Decoded& decoded, ObjectVersion& version) {
  if (decoded.problem.empty()) {
    version.complained = false;
    return;
  }
  ++undecodable_;
  if (version.complained) return;
  version.complained = true;
  spdlog::error("cannot read {} {} ({}), taking it as still there: {}", resource_, identity.key,
                identity.uid, decoded.problem);
}

absl::Status Mirror::Changed(wire::Element object) {
  TRANCHE_ASSIGN_OR_RETURN(const auto meta, DecodeMeta(object));
  const Identity& identity = meta.identity;
  if (touching_) touched_.insert(identity.key);
  ObjectVersion& version = known_[identity.key];
  if (version.uid != identity.uid) {
    if (!version.uid.empty()) sink_.Gone({identity.key, version.uid});
    version = ObjectVersion{identity.uid, {}, false, false};
  }
  version.resource_version = meta.resource_version;
  const Decoded decoded = sink_.Decode(object, identity, version.delivered);
  NoteProblem(identity, decoded, version);
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
  known_.erase(found);
  sink_.Gone(identity);
  sink_.Commit();
  return absl::OkStatus();
}

absl::Status Mirror::Collect(List& list, wire::Element object) {
  TRANCHE_ASSIGN_OR_RETURN(auto meta, DecodeMeta(object));
  const Identity& identity = meta.identity;
  List::Item item;
  item.version.uid = identity.uid;
  item.version.resource_version = meta.resource_version;
  const auto found = known_.find(identity.key);
  if (found != known_.end() && found->second.uid == identity.uid) {
    item.version.delivered = found->second.delivered;
    item.version.complained = found->second.complained;
    item.unchanged = found->second.resource_version == meta.resource_version;
  }
  if (!item.unchanged) {
    item.decoded = sink_.Decode(object, identity, item.version.delivered);
    NoteProblem(identity, item.decoded, item.version);
  }
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
    if (item.decoded.deliver) {
      item.decoded.deliver();
      item.version.delivered = true;
    }
    if (touching_) touched_.insert(key);
    next.emplace_hint(next.end(), key, std::move(item.version));
  }
  for (const auto& [key, version] : known_) {
    if (!next.contains(key)) sink_.Gone({key, version.uid});
  }
  known_ = std::move(next);
  sink_.Commit();
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
