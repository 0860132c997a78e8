// Placeholder pods in the embedded cluster, which is the kubelet and the device plugin to them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/facts/placeholder.h"

namespace tranche::embedded {
namespace {

// The name a plugin could give to the card: nobody here has any.
std::string CardName(const NodeName& node, int number) {
  std::string name = fmt::format("GPU-{}-{}", node.str(), number);
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

}  // namespace

WriteResult Cluster::State::TryCreatePlaceholder(const PodCreation& creation) {
  const ObjectKey key = KeyOf(creation.pod);
  if (store.Find(key) != nullptr) {
    return Rejected(409, fmt::format("{} exists already", creation.pod.str()));
  }
  std::erase_if(placeholder_cards, [this](const auto& kept) { return !store.Find(kept.first); });
  std::set<std::string> taken;
  for (const auto& [other, card] : placeholder_cards) taken.insert(card);
  int number = 0;
  while (taken.contains(CardName(creation.node, number))) ++number;
  const std::string card = CardName(creation.node, number);
  std::string text = creation.json;
  text.pop_back();
  text += fmt::format(R"(,"status":{{"phase":"Running","initContainerStatuses":[{{"name":"{}",)"
                      R"("state":{{"terminated":{{"exitCode":0,"message":"{}"}}}}}}]}}}})",
                      kPlaceholderTeller, card);
  const absl::StatusOr<Document> document = Document::Parse(text);
  if (!document.ok()) return Rejected(422, std::string(document.status().message()));
  absl::StatusOr<Manifest> manifest = ReadManifest(*document, defaults);
  if (!manifest.ok()) return Rejected(422, std::string(manifest.status().message()));
  for (ManifestObject& object : manifest->objects) Store(object, clock.Now());
  placeholder_cards[key] = card;
  return Done(201);
}

void Cluster::CreatePod(PodCreation creation, std::function<void(WriteResult)> done) {
  impl_->Do([&](State& state) { return state.TryCreatePlaceholder(creation); }, std::move(done));
}

void Cluster::DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) {
  const ObjectKey key = KeyOf(pod);
  impl_->Do(
      [&](State& state) {
        const StoredObject* stored = state.store.Find(key);
        const bool same = stored != nullptr && (uid.empty() || stored->uid == uid.str());
        if (same) state.DeletePod(key, 0, std::nullopt, state.clock.Now());
        return Done(200);
      },
      std::move(done));
}

}  // namespace tranche::embedded
