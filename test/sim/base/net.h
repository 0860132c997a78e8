// What goes between the processes of the simulated world: requests and replies as they are in HTTP,
// without sockets. Both ends may be lost, late, or done without the answer arriving.
//
// Thread rule: one thread; callbacks come in later steps of the loop, never before the call
// returns, and not at all once the asking actor has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "test/sim/base/loop.h"

namespace tranche::sim {

struct Request {
  std::string method = "GET";
  std::string target;     // path and query below the server's URL, percent-encoded
  std::string body = {};  // JSON; empty: none
  std::string content_type = "application/json";
};
struct Reply {
  int code = 0;      // 0: no answer came: it was refused, lost on its way, or lost on its way back
  bool sent = true;  // false: it is certain that nothing reached the server
  std::string body = {};
  std::optional<int> retry_after = {};  // seconds
  // The server's clock, as it answered.
  std::optional<std::chrono::sys_seconds> date = {};
};

// The API server as its clients see it.
class ApiEndpoint {
 public:
  virtual ~ApiEndpoint() = default;
  // `timeout`: after that the caller hears code 0; the request may still be done later.
  virtual void Send(Actor from, Request request, SimTime timeout,
                    std::function<void(Reply)> done) = 0;
  // Opens a watch at a target with resourceVersion, allowWatchBookmarks and timeoutSeconds. `bytes`
  // hears the body in pieces of any length, `ended` once: with the code of a refusal (410 among
  // them, which may also come as an ERROR frame in a 200), or 200 where an open one ends.
  virtual uint64_t Watch(Actor from, std::string target,
                         std::function<void(std::string_view)> bytes,
                         std::function<void(int code, std::string body)> ended) = 0;
  virtual void CloseWatch(uint64_t watch) = 0;
};

// Tranche as kube-scheduler and the API server's admission see it: the Service in front of the
// replicas, which sends to one that was Ready when it was last probed.
class TrancheEndpoint {
 public:
  virtual ~TrancheEndpoint() = default;
  // POST of /scheduler/filter, prioritize, preempt, bind, /admission/mutate, validate; GET of
  // /api/v1/...
  virtual void Send(Actor from, Request request, SimTime timeout,
                    std::function<void(Reply)> done) = 0;
};

}  // namespace tranche::sim
