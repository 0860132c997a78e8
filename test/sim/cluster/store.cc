#include "test/sim/cluster/store.h"

#include <fmt/format.h>

#include <algorithm>

#include "test/sim/base/wall.h"

namespace tranche::sim {
namespace {

const std::string& TextAt(const Json& object, const char* key) {
  static const std::string kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : found->get_ref<const std::string&>();
}

// Everything but metadata and status, which have generations of no one.
bool SameDesire(const Json& one, const Json& other) {
  const auto covers = [](const Json& left, const Json& right) {
    for (auto it = left.begin(); it != left.end(); ++it) {
      if (it.key() == "metadata" || it.key() == "status") continue;
      const auto found = right.find(it.key());
      if (found == right.end() || *found != it.value()) return false;
    }
    return true;
  };
  return covers(one, other) && covers(other, one);
}

}  // namespace

Stored::Stored(Json object, std::string key, uint64_t version)
    : document_(std::move(object)), key_(std::move(key)), version_(version) {}

std::string_view Stored::uid() const { return TextAt(object().at("metadata"), "uid"); }
std::string_view Stored::ns() const { return TextAt(object().at("metadata"), "namespace"); }
std::string_view Stored::name() const { return TextAt(object().at("metadata"), "name"); }

const std::string& Change::frame() const {
  if (frame_.empty()) {
    constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED"};
    frame_ = fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", kNames[static_cast<int>(type)],
                         object->text());
  }
  return frame_;
}

std::string KeyOf(const Json& object) {
  const Json& metadata = object.at("metadata");
  const std::string& ns = TextAt(metadata, "namespace");
  return ns.empty() ? TextAt(metadata, "name") : ns + "/" + TextAt(metadata, "name");
}

std::string TimeText(SimTime since_begin) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(WallOf(since_begin));
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(seconds - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

StoredPtr Store::Find(std::string_view resource, const std::string& key) const {
  const Objects& all = All(resource);
  const auto found = all.find(key);
  return found == all.end() ? nullptr : found->second;
}

const Store::Objects& Store::All(std::string_view resource) const {
  static const Objects kNone;
  const auto found = objects_.find(resource);
  return found == objects_.end() ? kNone : found->second;
}

const Store::Log& Store::LogOf(std::string_view resource) const {
  static const Log kNone;
  const auto found = logs_.find(resource);
  return found == logs_.end() ? kNone : found->second;
}

StoredPtr Store::Put(std::string_view resource, Json object, const std::string& who) {
  std::string key = KeyOf(object);
  const StoredPtr before = Find(resource, key);
  Json& metadata = object["metadata"];
  const bool made = before == nullptr;
  if (made) {
    ++uids_;
    metadata["uid"] =
        fmt::format("{:08x}-0000-4000-8000-{:012x}", uids_ * 2654435761U & 0xffffffff, uids_);
    metadata["creationTimestamp"] = TimeText(loop_.now());
    metadata["generation"] = 1;
  } else {
    const Json& old = before->object().at("metadata");
    metadata["uid"] = old.at("uid");
    metadata["creationTimestamp"] = old.at("creationTimestamp");
    const int64_t generation = old.at("generation").get<int64_t>();
    metadata["generation"] = SameDesire(before->object(), object) ? generation : generation + 1;
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  auto stored = std::make_shared<const Stored>(std::move(object), std::move(key), version_);
  objects_[std::string(resource)][stored->key()] = stored;
  Record(resource,
         {made ? Change::Type::kAdded : Change::Type::kModified, loop_.now(), stored, before}, who);
  return stored;
}

void Store::Remove(std::string_view resource, const std::string& key, const std::string& who) {
  const StoredPtr before = Find(resource, key);
  if (before == nullptr) return;
  objects_.find(resource)->second.erase(key);
  Json last = before->object();
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  auto stored = std::make_shared<const Stored>(std::move(last), key, version_);
  Record(resource, {Change::Type::kDeleted, loop_.now(), std::move(stored), before}, who);
}

void Store::Record(std::string_view resource, Change change, const std::string& who) {
  Happening happening{Happening::Kind::kWritten};
  happening.number = change.object->version();
  happening.who = who;
  happening.resource = resource;
  happening.key = change.object->key();
  if (change.before != nullptr) happening.before = change.before->document();
  if (change.type != Change::Type::kDeleted) happening.after = change.object->document();
  history_.Add(std::move(happening));
  std::deque<Change>& changes = logs_[std::string(resource)].changes;
  changes.push_back(std::move(change));
  const Change told = changes.back();
  for (const Listener& listener : listeners_) listener(resource, told);
}

void Store::Compact(uint64_t version) {
  compacted_ = std::max(compacted_, version);
  for (auto& [resource, log] : logs_) {
    while (!log.changes.empty() && log.changes.front().object->version() <= compacted_) {
      log.changes.pop_front();
      ++log.first;
    }
  }
}

}  // namespace tranche::sim
