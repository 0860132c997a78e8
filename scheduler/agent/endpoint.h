// One resource as the kubelet sees it: a socket with the device plugin behind it, which is
// registered again whenever the kubelet is new.
//
// Thread rule: one thread. gRPC's threads come on top.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "scheduler/agent/plugin.h"

namespace grpc {
class Server;
}

namespace tranche::agent {

class Endpoint {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `folder`: where the kubelet's socket is; `socket`: the name of its own there.
  Endpoint(std::string resource, std::string folder, std::string socket, PluginOptions options,
           Sources sources);
  ~Endpoint();

  Plugin& plugin() { return plugin_; }
  // Serves anew and registers where the kubelet's socket is another one or its stream has been
  // closed for long. Error: what could not be done and is tried again.
  absl::Status Step(Time now);
  // Of a kubelet that follows what devices there are.
  bool connected() const { return plugin_.streams() > 0; }

 private:
  // Tells one socket from its successor of the same name.
  struct SocketFile {
    uint64_t device = 0, inode = 0;
    int64_t made_ns = 0;
    friend bool operator==(const SocketFile&, const SocketFile&) = default;
  };
  static std::optional<SocketFile> SocketAt(const std::string& path);

  absl::Status Serve();
  void EndServing();
  bool IsDeaf(Time now);

  const std::string resource_;
  const std::string kubelet_socket_;
  const std::string name_;  // of its own socket
  const std::string own_socket_;
  Plugin plugin_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<SocketFile> registered_with_;  // the kubelet's, when the plugin was registered
  std::optional<SocketFile> serving_on_;
  Time heard_;  // the last moment with an open stream
};

}  // namespace tranche::agent
