#include "scheduler/api/lists/pod_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <random>
#include <utility>

namespace tranche {
namespace {

// What is told of a pod, and what it may be chosen by.
uint64_t DigestOf(const std::string& text, const PodView& pod) {
  uint64_t digest = std::hash<std::string>()(text);
  if (pod.labels == nullptr) return digest;
  const auto add = [&digest](const std::string& part) {
    digest = digest * 0x9e3779b97f4a7c15ULL + std::hash<std::string>()(part);
  };
  for (const auto& [key, value] : *pod.labels) {
    add(key);
    add(value);
  }
  return digest;
}

}  // namespace

std::string NameOfProcess() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::optional<uint64_t> PodChanges::ReadVersion(std::string_view text) const {
  const std::string prefix = process_ + "-";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  uint64_t version = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, version);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (version < forgotten_ || version > version_) return std::nullopt;
  return version;
}

// Both lists ascend, so one pass over the two tells what came, went and became other.
void PodChanges::Compare(const Look& look) {
  const uint64_t next = version_ + 1;
  bool other = false;
  std::vector<Key> lost;
  std::vector<Known> now;
  now.reserve(look.pods.size());
  auto before = known_.begin();
  for (std::size_t at = 0; at < look.pods.size(); ++at) {
    const PodView& pod = look.pods[at];
    Known found = {{pod.name, pod.uid}, DigestOf(look.texts[at], pod), next};
    // Pages of a list are copied one after another: what moved meanwhile may come twice.
    if (!now.empty() && found.key <= now.back().key) continue;
    while (before != known_.end() && before->key < found.key)
      lost.push_back(std::move((before++)->key));
    const bool same = before != known_.end() && before->key == found.key;
    if (same && before->digest == found.digest) found.version = before->version;
    if (same) ++before;
    other = other || found.version == next;
    now.push_back(std::move(found));
  }
  while (before != known_.end()) lost.push_back(std::move((before++)->key));
  known_ = std::move(now);
  if (other || !lost.empty()) version_ = next;
  for (Key& key : lost) gone_.push_back({std::move(key), next});
  while (gone_.size() > kMostGone) {
    forgotten_ = gone_.front().version;
    gone_.pop_front();
  }
}

PodChanges::Look PodChanges::See(const std::function<std::vector<PodView>()>& read,
                                 const std::function<std::string(const PodView&)>& encode,
                                 const std::optional<std::string>& since) {
  const absl::MutexLock lock(&mutex_);
  Look look;
  look.pods = read();
  look.texts.reserve(look.pods.size());
  for (const PodView& pod : look.pods) look.texts.push_back(encode(pod));
  Compare(look);
  look.version = fmt::format("{}-{}", process_, version_);
  const std::optional<uint64_t> from = since ? ReadVersion(*since) : std::nullopt;
  if (!from) return look;
  look.complete = false;
  look.changed.reserve(look.pods.size());
  auto known = known_.begin();
  for (const PodView& pod : look.pods) {
    const Key key = {pod.name, pod.uid};
    while (known != known_.end() && known->key < key) ++known;
    look.changed.push_back(known != known_.end() && known->key == key && known->version > *from);
  }
  for (const Gone& one : gone_) {
    // One that went and came back is there.
    const bool back = std::ranges::binary_search(known_, one.key, {}, &Known::key);
    if (one.version > *from && !back) look.gone.push_back(one.key);
  }
  std::ranges::sort(look.gone);
  look.gone.erase(std::unique(look.gone.begin(), look.gone.end()), look.gone.end());
  return look;
}

}  // namespace tranche
