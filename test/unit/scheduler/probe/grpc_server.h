// A gRPC server for one connection on a Unix socket, with answers a real one would not give.
#pragma once

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tranche::probe {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct GrpcAnswer {
  Headers head = {{":status", "200"}, {"content-type", "application/grpc"}};
  std::string body;
  Headers trailers = {{"grpc-status", "0"}};
  bool silent = false;  // says nothing
  std::string raw;      // instead of HTTP/2
};

inline std::string Framed(const std::string& message) {
  std::string text(5, '\0');
  for (std::size_t at = 0; at < 4; ++at) {
    text[4 - at] = static_cast<char>(message.size() >> (8 * at) & 0xFF);
  }
  return text + message;
}

class GrpcServer {
 public:
  GrpcServer(const std::string& path, GrpcAnswer answer) : answer_(std::move(answer)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_, 1) != 0) {
      std::abort();
    }
    thread_ = std::thread([this] { Serve(); });
  }
  // Waits until the client has gone, if it ever came.
  ~GrpcServer() {
    shutdown(listener_, SHUT_RDWR);
    Join();
    close(listener_);
  }
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Of the request; after Join.
  const std::map<std::string, std::string>& headers() const { return headers_; }
  const std::string& body() const { return body_; }

 private:
  static GrpcServer& Of(void* user) { return *static_cast<GrpcServer*>(user); }

  static std::vector<nghttp2_nv> Pairs(Headers& headers) {
    std::vector<nghttp2_nv> pairs;
    for (auto& [name, value] : headers) {
      pairs.push_back({reinterpret_cast<uint8_t*>(name.data()),
                       reinterpret_cast<uint8_t*>(value.data()), name.size(), value.size(), 0});
    }
    return pairs;
  }

  static ssize_t SendBody(nghttp2_session* session, int32_t stream, uint8_t* buffer,
                          std::size_t room, uint32_t* flags, nghttp2_data_source*, void* user) {
    GrpcServer& self = Of(user);
    std::string& body = self.answer_.body;
    const std::size_t size = std::min(room, body.size() - self.sent_);
    std::memcpy(buffer, body.data() + self.sent_, size);
    self.sent_ += size;
    if (self.sent_ == body.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!self.answer_.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const std::vector<nghttp2_nv> pairs = Pairs(self.answer_.trailers);
        nghttp2_submit_trailer(session, stream, pairs.data(), pairs.size());
      }
    }
    return static_cast<ssize_t>(size);
  }

  static int SeeHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t* name,
                       std::size_t name_size, const uint8_t* value, std::size_t value_size, uint8_t,
                       void* user) {
    Of(user).headers_[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  static int SeeBody(nghttp2_session*, uint8_t, int32_t, const uint8_t* data, std::size_t size,
                     void* user) {
    Of(user).body_.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int SeeFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    GrpcServer& self = Of(user);
    if (frame->hd.stream_id == 0 || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    if (self.answer_.silent) return 0;
    const std::vector<nghttp2_nv> pairs = Pairs(self.answer_.head);
    nghttp2_data_provider body{};
    body.read_callback = SendBody;
    return nghttp2_submit_response(session, frame->hd.stream_id, pairs.data(), pairs.size(), &body);
  }

  void Serve() {
    const int socket = accept(listener_, nullptr, nullptr);
    if (socket < 0) return;
    if (!answer_.raw.empty()) {
      send(socket, answer_.raw.data(), answer_.raw.size(), MSG_NOSIGNAL);
      std::array<char, 4096> unread;
      while (recv(socket, unread.data(), unread.size(), 0) > 0) {
      }
    } else {
      Speak(socket);
    }
    close(socket);
  }

  void Speak(int socket) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, SeeHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, SeeBody);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, SeeFrame);
    nghttp2_session* session = nullptr;
    nghttp2_session_server_new(&session, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, 0, nullptr, 0);
    std::array<uint8_t, 4096> piece;
    for (;;) {
      const uint8_t* bytes = nullptr;
      for (;;) {
        const ssize_t size = nghttp2_session_mem_send(session, &bytes);
        if (size <= 0) break;
        send(socket, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
      }
      const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
      if (got <= 0) break;
      if (nghttp2_session_mem_recv(session, piece.data(), static_cast<std::size_t>(got)) < 0) break;
    }
    nghttp2_session_del(session);
  }

  GrpcAnswer answer_;
  std::size_t sent_ = 0;
  std::map<std::string, std::string> headers_;
  std::string body_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace tranche::probe
