#include "scheduler/embedded/cluster.h"

#include <fmt/core.h>

#include <utility>

#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/text_file.h"
#include "topology/base/status.h"

namespace tranche::embedded {
namespace {

ObjectKey QueriedKey(std::string_view kind, std::string_view ns, std::string_view name) {
  ObjectKey key{KindFromQuery(kind), std::string(ns), std::string(name)};
  const Scope scope = ScopeOf(key.kind);
  if (scope == Scope::kCluster) key.ns.clear();
  if (scope == Scope::kNamespace && key.ns.empty()) key.ns = kDefaultNamespace;
  return key;
}

}  // namespace

Cluster::Cluster(const Clock& clock, ClusterEvents& events, GpuPolicy defaults)
    : impl_(std::make_unique<Impl>(clock, events, std::move(defaults))) {}

Cluster::~Cluster() = default;

absl::StatusOr<ApplyReport> Cluster::Apply(std::string_view text) {
  return impl_->Apply(text, false);
}

absl::StatusOr<ApplyReport> Cluster::LoadFile(const std::string& path) {
  TRANCHE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTextFile(path, wire::kMaxDocumentBytes, simdjson::SIMDJSON_PADDING));
  absl::StatusOr<ApplyReport> report = impl_->Apply(text, true);
  if (report.ok()) return report;
  return absl::Status(report.status().code(),
                      fmt::format("{}: {}", path, std::string(report.status().message())));
}

absl::Status Cluster::Delete(std::string_view text) {
  TRANCHE_ASSIGN_OR_RETURN(const Document document, Document::Parse(text, false));
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<DeleteRequest> requests, ReadDeleteRequests(document));
  {
    const std::lock_guard lock(impl_->mutex);
    const Instant now = impl_->clock.Now();
    for (const DeleteRequest& request : requests) {
      const StoredObject* stored = impl_->store.Find(request.key);
      if (stored == nullptr || (!request.uid.empty() && request.uid != stored->uid)) {
        return absl::NotFoundError(fmt::format(
            "expected {}{}{}, found {}", request.key.str(), request.uid.empty() ? "" : " of uid ",
            request.uid, stored == nullptr ? "no such object" : "uid " + stored->uid));
      }
    }
    for (const DeleteRequest& request : requests) impl_->DeleteOne(request, now);
    impl_->SettleBudgets();
  }
  impl_->queue.Flush();
  return absl::OkStatus();
}

std::optional<std::string> Cluster::Get(std::string_view kind, std::string_view ns,
                                        std::string_view name) const {
  const ObjectKey key = QueriedKey(kind, ns, name);
  const std::lock_guard lock(impl_->mutex);
  const StoredObject* stored = impl_->store.Find(key);
  if (stored == nullptr) return std::nullopt;
  return stored->text;
}

std::string Cluster::List(std::string_view kind, std::string_view ns) const {
  const std::string exact = KindFromQuery(kind);
  const std::lock_guard lock(impl_->mutex);
  return impl_->store.List(exact, ScopeOf(exact) == Scope::kCluster ? std::string_view() : ns);
}

std::optional<Instant> Cluster::Tick(Instant now) {
  std::optional<Instant> next;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const ObjectKey& key : impl_->store.Due(now)) impl_->Forget(key);
    impl_->SettleBudgets();
    next = impl_->store.NextDue();
    impl_->PushHeard();
  }
  impl_->queue.Flush();
  return next;
}

void Cluster::FinishLoading() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->PushHeard();
    impl_->queue.Push([](ClusterEvents& events) { events.Synced(); });
  }
  impl_->queue.Flush();
}

}  // namespace tranche::embedded
