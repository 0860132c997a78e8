// A real cluster: lists and watches pods, nodes, policy objects and those that tell more
// of nodes and gangs at an API server, and writes. Follows kube-client-protocol section by section.
//
// Two threads of its own: one reads (lists and watches) and calls ClusterEvents, one writes and
// calls the callbacks, so that a bind never waits behind a large list. Bind, Evict and GetPod have
// connections of their own there, so that they do not wait behind events and statuses either.
//
// Thread rule: Start and Stop from one thread, not from a callback; the rest from any. Before Start
// and after Stop, writes answer kNotSent and reads kFailed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/timing.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

// Where the API server is and who we are. Tokens and keys are read from files again when those
// change; they are never logged.
struct Credentials {
  std::string host;  // name or address
  uint16_t port = 443;
  std::string path_prefix;  // of server URLs with a path
  bool tls = true;
  std::string tls_server_name;  // empty: host
  bool insecure_skip_verify = false;
  std::string ca_file, ca_pem;  // one of them, or neither without TLS
  bool system_roots = false;    // neither: the CAs this machine trusts
  std::string client_cert_file, client_cert_pem;
  std::string client_key_file, client_key_pem;
  std::string token_file, token;
  bool token_in_clear = false;  // without TLS too: the server is on this machine
};

// $KUBERNETES_SERVICE_HOST and the service account files under `root`.
// Errors: FailedPrecondition naming what is missing.
absl::StatusOr<Credentials> InClusterCredentials(
    const std::string& root = "/var/run/secrets/kubernetes.io/serviceaccount");
// That context of a kubeconfig file; empty: its current one. Errors: NotFound; InvalidArgument
// naming field and value; Unimplemented for exec, auth-provider, username/password, impersonation
// and proxy-url.
absl::StatusOr<Credentials> LoadKubeconfig(const std::string& path,
                                           const std::string& context = "");

class Platform;
class ServerClock;

struct Options {
  Credentials credentials;
  std::string user_agent = "tranche";
  std::chrono::milliseconds bind_timeout{4'000};  // of one call; below kube-scheduler's 5 s
  bool resource_quotas = false;                   // watch ResourceQuotas too
  // Asked right before a write is sent; false: it is not (kNotSent). Null: always true. With it the
  // server gives up at the call's deadline, and what a connection has not delivered when
  // it ends is thrown away: no write of ours arrives long after we were allowed to make it.
  std::function<bool()> may_write;
  // Begin as one who follows what another Tranche writes, until Refresh.
  bool follow = false;
  std::shared_ptr<ServerClock> server_clock = nullptr;  // told of every answer; null: nobody is
  Timing timing;
  Platform* platform = nullptr;  // outlives the client; null: sockets and threads
};

struct ResourceStatus {
  bool synced = false;  // a complete list was handed over
  bool absent = false;  // the last list was refused: not installed (404) or not ours to read (403)
  std::chrono::steady_clock::time_point heard;  // last event, bookmark, list or reconnect
  int64_t relists = 0;
  int64_t reconnects = 0;
  int64_t failures = 0;
  int64_t undecodable = 0;  // versions of objects that could not be read
  int64_t unreadable = 0;   // objects whose newest version could not be read
  int64_t drifted = 0;      // objects that differed from a fresh list; any is a missed event
};

class Cluster : public ClusterApi {
 public:
  Cluster(Options options, ClusterEvents& events);
  ~Cluster() override;
  void Start();
  // Ends watches and requests under way (a bind already sent answers kUnknown), calls every
  // outstanding callback, joins the threads. Idempotent.
  void Stop();
  // By plural name: "pods", "nodes", "gpuquotas", "namespaces", ...; with the group where two have
  // the same.
  std::map<std::string, ResourceStatus> status() const;
  // Lists pods and what we write ourselves (GPUReclaims) anew and calls `done` once lists that
  // began after this call are handed over, on the reading thread; not at all where Stop comes
  // first. Until then every version of what we write ourselves is handed over, as somebody else
  // may be writing it; then only that it is there. Once.
  void Refresh(std::function<void()> done);

  void Bind(BindingWrite write, std::function<void(WriteResult)> done) override;
  // Sent again for Timing::write_patience while no server takes it, as is a nomination.
  void Requeue(PodName pod, PodUid uid, Instant when,
               std::function<void(WriteResult)> done) override;
  void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) override;
  void Write(ObjectWrite write, std::function<void(WriteResult)> done) override;
  void DeleteView(NamespacedName view, std::function<void(WriteResult)> done) override;
  void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) override;
  // Sent again only when throttled, see ApiCalls::Evict. A budget's no, or several budgets over one
  // pod (kRejected with 500), will be the same a moment later: whoever asked waits before it asks
  // again.
  void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) override;
  void Nominate(PodName pod, PodUid uid, NodeName node,
                std::function<void(WriteResult)> done) override;
  void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) override;
  // A lost answer is settled by reading the node again.
  void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void RemoveGate(GateWrite write, std::function<void(WriteResult)> done) override;
  void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) override;
  void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) override;
  void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) override;
  void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) override;
  void ReadConfigMap(NamespacedName map, std::string key,
                     std::function<void(ConfigMapLookup)> done) override;
  void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) override;
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::kube
