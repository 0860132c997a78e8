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
  return impl_->Apply(text, wire::Padding::kNone);
}

absl::StatusOr<ApplyReport> Cluster::LoadFile(const std::string& path) {
  TRANCHE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTextFile(path, wire::kMaxDocumentBytes, simdjson::SIMDJSON_PADDING));
  absl::StatusOr<ApplyReport> report = impl_->Apply(text, wire::Padding::kThere);
  if (report.ok()) return report;
  return absl::Status(report.status().code(),
                      fmt::format("{}: {}", path, std::string(report.status().message())));
}

absl::Status Cluster::State::DeleteAll(const std::vector<DeleteRequest>& requests) {
  const Instant now = clock.Now();
  for (const DeleteRequest& request : requests) {
    const StoredObject* stored = store.Find(request.key);
    if (stored == nullptr || (!request.uid.empty() && request.uid != stored->uid)) {
      return absl::NotFoundError(fmt::format(
          "expected {}{}{}, found {}", request.key.str(), request.uid.empty() ? "" : " of uid ",
          request.uid, stored == nullptr ? "no such object" : "uid " + stored->uid));
    }
  }
  for (const DeleteRequest& request : requests) DeleteOne(request, now);
  SettleBudgets();
  return absl::OkStatus();
}

absl::Status Cluster::Delete(std::string_view text) {
  TRANCHE_ASSIGN_OR_RETURN(const Document document, Document::Parse(text));
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<DeleteRequest> requests, ReadDeleteRequests(document));
  TRANCHE_RETURN_IF_ERROR(impl_->Locked([&](State& state) { return state.DeleteAll(requests); }));
  impl_->queue.Flush();
  return absl::OkStatus();
}

std::optional<std::string> Cluster::Get(std::string_view kind, std::string_view ns,
                                        std::string_view name) const {
  return impl_->Locked([key = QueriedKey(kind, ns, name)](const State& state) {
    const StoredObject* stored = state.store.Find(key);
    return stored == nullptr ? std::nullopt : std::optional(stored->text);
  });
}

std::string Cluster::List(std::string_view kind, std::string_view ns) const {
  const std::string exact = KindFromQuery(kind);
  if (ScopeOf(exact) == Scope::kCluster) ns = {};
  return impl_->Locked([&](const State& state) { return state.store.List(exact, ns); });
}

std::optional<Instant> Cluster::Tick(Instant now) {
  const std::optional<Instant> next = impl_->Locked([now](State& state) {
    for (const ObjectKey& key : state.store.Due(now)) state.Forget(key);
    state.SettleBudgets();
    state.PushHeard();
    return state.store.NextDue();
  });
  impl_->queue.Flush();
  return next;
}

void Cluster::FinishLoading() {
  impl_->Locked([](State& state) {
    state.PushHeard();
    state.queue.Push(Synced());
  });
  impl_->queue.Flush();
}

}  // namespace tranche::embedded
