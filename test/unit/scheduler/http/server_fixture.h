// A server whose handler tests steer, and the requests they send.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/http/server.h"
#include "test/unit/scheduler/http/raw_client.h"

namespace tranche::http {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

inline std::string Get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
inline std::string Post(std::string_view path, std::string_view body,
                        std::string_view fields = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline Response Text(std::string body) { return Response{200, "text/plain", std::move(body), {}}; }

// /echo answers the body, /size its length, /large a body larger than socket buffers, /shared the
// same in one piece of memory for all, /drop forgets its Responder, /throw throws; /hold keeps it
// until the test lets go.
class TestServer {
 public:
  explicit TestServer(Limits limits = {}, int threads = 2, Admit admit = nullptr)
      : server_(MakeOptions(limits, threads, std::move(admit)),
                [this](Request request, Responder respond) { Handle(request, respond); }) {
    EXPECT_TRUE(server_.Start().ok());
  }
  Server& operator*() { return server_; }
  Server* operator->() { return &server_; }
  uint16_t port() const { return server_.port(); }
  int handled() const { return handled_; }

  // Empty when nothing was held in time.
  Responder TakeHeld(milliseconds patience = milliseconds(5'000)) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, patience, [&] { return !held_.empty(); })) return nullptr;
    Responder held = std::move(held_.back());
    held_.pop_back();
    return held;
  }

 private:
  static Options MakeOptions(const Limits& limits, int threads, Admit admit) {
    Options options{"127.0.0.1", 0, threads, limits};
    options.admit = std::move(admit);
    return options;
  }
  void Handle(Request& request, Responder& respond) {
    ++handled_;
    EXPECT_GE(request.body.capacity(), request.body.size() + kBodyPadding);
    if (request.path == "/drop") return;
    if (request.path == "/hold") {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(respond));
      arrived_.notify_all();
      return;
    }
    if (request.path == "/size") return respond(Text(std::to_string(request.body.size())));
    if (request.path == "/large") return respond(Text(std::string(32 << 20, 'x')));
    if (request.path == "/throw") throw std::out_of_range("the handler's own");
    if (request.path == "/shared") {
      Response response;
      response.shared = shared_;
      return respond(std::move(response));
    }
    respond(Text(std::move(request.body)));
  }

  std::atomic<int> handled_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Responder> held_;
  const std::shared_ptr<const std::string> shared_ =
      std::make_shared<const std::string>(32 << 20, 'x');
  Server server_;
};

inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = steady_clock::now() + milliseconds(5'000);
  while (!holds()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

}  // namespace tranche::http
