// ProvisioningRequests: kept and shown. No autoscaler runs here; who applies a request with
// conditions plays one.
#include <chrono>
#include <utility>
#include <vector>

#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_edits.h"
#include "scheduler/wire/workloads/provisioning.h"
#include "topology/base/check.h"

namespace tranche::embedded {

ProvisioningList Cluster::State::ListProvisioning() {
  ProvisioningList list;
  list.kind = ProvisioningList::Kind::kListed;
  for (const ObjectKey& key : store.Keys(kProvisioningKind, "")) {
    const wire::Element element = ElementOf(*store.Find(key));
    if (!wire::IsOurProvisioning(element)) continue;
    absl::StatusOr<ProvisioningFound> found = wire::DecodeProvisioning(element);
    if (found.ok()) list.found.push_back(*std::move(found));
  }
  return list;
}

WriteResult Cluster::State::PutProvisioning(const ObjectKey& key, std::string_view json) {
  wire::Parser parser_of_new;
  const absl::StatusOr<wire::Element> element = parser_of_new.Parse(json);
  TRANCHE_CHECK(element.ok());
  const Instant now = clock.Now();
  StoredObject stored;
  stored.uid = NewUid(key, now);
  stored.created = std::chrono::floor<std::chrono::seconds>(now);
  JsonPatch patch;
  SetIdentity(patch, stored);
  store.Erase(key);
  Save(key, std::move(stored), *element, patch);
  return Done(201);
}

WriteResult Cluster::State::TryMakeProvisioning(const ProvisioningWrite& write) {
  const ObjectKey key{std::string(kProvisioningKind), write.name.ns, write.name.name};
  std::vector<wire::TemplateSet> sets;
  for (const ProvisioningSet& set : write.sets) {
    const WriteResult checked = CheckPod(set.pod, set.uid);
    if (checked.kind != WriteResult::Kind::kDone) return checked;
    absl::StatusOr<std::string> made = wire::PodTemplateOf(ElementOf(*store.Find(KeyOf(set.pod))));
    if (!made.ok()) return Rejected(422, std::string(made.status().message()));
    sets.push_back({*std::move(made), set.count});
  }
  const absl::StatusOr<wire::ProvisioningObjects> objects = wire::EncodeProvisioning(write, sets);
  if (!objects.ok()) return Rejected(422, std::string(objects.status().message()));
  if (store.Find(key) != nullptr) return Rejected(409, key.str() + " is there already");
  for (const wire::ProvisioningObjects::Named& one : objects->templates) {
    PutProvisioning({std::string(kPodTemplateKind), write.name.ns, one.name}, one.json);
  }
  return PutProvisioning(key, objects->request);
}

void Cluster::ListProvisioning(std::function<void(ProvisioningList)> done) {
  done(impl_->Locked([](State& state) { return state.ListProvisioning(); }));
}

void Cluster::Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) {
  done(impl_->Locked([&](State& state) { return state.TryMakeProvisioning(write); }));
}

void Cluster::Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) {
  impl_->Locked([&](State& state) {
    state.store.Erase({std::string(kProvisioningKind), request.name.ns, request.name.name});
    for (const std::string& name : request.templates) {
      state.store.Erase({std::string(kPodTemplateKind), request.name.ns, name});
    }
  });
  done(Done(200));
}

}  // namespace tranche::embedded
