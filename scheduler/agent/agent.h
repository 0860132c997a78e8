// The agent as it runs: serves the device plugin, registers it with the kubelet whenever the
// kubelet is new, and keeps an eye on the GPUs.
//
// Thread rule: one thread. gRPC's threads come on top.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/agent/cards.h"
#include "scheduler/agent/config.h"
#include "scheduler/agent/plugin.h"
#include "scheduler/kube/transport/credentials.h"

namespace grpc {
class Server;
}

namespace tranche::agent {

class Agent {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `looks`: how often it looks before what cannot be told is refused, 200 ms apart.
  Agent(Config config, kube::Credentials credentials, int looks = 15);
  ~Agent();

  // Does what is due: looks at the GPUs, tells of them, serves anew and registers where the
  // kubelet's socket is another one or its stream has been closed for long. Called about once a
  // second. Error: what could not be done and is tried again.
  absl::Status Step(Time now);
  // Of a kubelet that follows what GPUs there are.
  bool connected() const { return plugin_.streams() > 0; }

 private:
  // Tells one socket from its successor of the same name.
  struct SocketFile {
    uint64_t device = 0, inode = 0;
    int64_t made_ns = 0;
    friend bool operator==(const SocketFile&, const SocketFile&) = default;
  };
  static std::optional<SocketFile> SocketAt(const std::string& path);

  absl::Status LookAndTell(Time now);
  absl::Status Register(Time now);
  absl::Status Serve();
  void EndServing();
  bool IsDeaf(Time now);

  const Config config_;
  const kube::Credentials credentials_;
  const std::string kubelet_socket_;
  const std::string own_socket_;
  CardList cards_;
  Plugin plugin_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<SocketFile> registered_with_;  // the kubelet's, when the plugin was registered
  std::optional<SocketFile> serving_on_;
  std::optional<Time> looked_at_;
  std::string written_;  // the register, as the API server has taken it
  Time heard_;           // the last moment with an open stream
};

}  // namespace tranche::agent
