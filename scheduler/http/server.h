// An HTTP/1.1 server with hard limits, for kube-scheduler, the API server, Prometheus and browsers;
// in plain text or over TLS.
//
// Answers carry Content-Length, end without a newline, and leave in one write. Limits and their
// answers: header bytes over the limit 431; body over it 413; no Content-Length on POST 411;
// Transfer-Encoding chunked 411, any other 400, both close; not exactly one Host 400; header not
// complete in time 408 and close; body not complete in time 408 and close; a reply of which the
// peer reads nothing for reply_time, or less than slowest_reader a second, drops the connection. A
// body or a reply that has no room in its budget of bytes is answered 503 with Retry-After. A
// handler that throws is answered 500. After "Connection: close" nothing more is read.
//
// Options::admit decides from the head alone who is answered, before a body is read.
//
// At the connection cap, in this order: the longest-idle connection gives way; then one of the
// address that has most of them, if it has more than the newcomer's; else the new one is refused
// with 503, except that GET /healthz, /livez and /readyz are always answered. No connection gives
// way to an address that has more of them. One that has shown a good client certificate gives way
// to nobody who has not, and takes the place of one that has not. A TLS handshake has the time of a
// header; at most a quarter of the places are in one.
//
// Thread rule: Start and Stop from one thread; handlers are called on the server's threads, several
// at once, and must not block. A Responder may be called from any thread, once.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tranche::http {

class ByteBudget;

// Header for what belongs into Authorization, of callers behind a proxy that takes that one for
// itself and away, as API servers do before they pass a request on to a Service.
inline constexpr const char* kOwnAuthorization = "Tranche-Authorization";

// Bytes that may be read behind the end of Request::body (simdjson reads whole vectors).
inline constexpr std::size_t kBodyPadding = 64;

struct Request {
  std::string method;
  std::string path;  // decoded, without the query
  std::map<std::string, std::string> query;
  std::string body;  // capacity() >= size() + kBodyPadding
  // Header Authorization or kOwnAuthorization, verbatim; never logged.
  std::string authorization;
  std::string if_none_match;    // header, verbatim; several are joined by commas
  std::string accept_encoding;  // likewise
  std::string host;             // header, verbatim
  std::string peer;             // the address it came from, as text; empty: it was gone already
  // A browser says that a page of another site asks (Sec-Fetch-Site, else Origin beside Host).
  bool cross_site = false;
  // Over TLS, of the client certificate that was shown and is signed by the configured CA: its DNS
  // names and URIs, or its common name where it states no alternative names at all. Null: none was
  // shown.
  std::shared_ptr<const std::vector<std::string>> client_names;
  bool verified = false;  // as Terms::verified
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::map<std::string, std::string> headers;  // extra ones
  // Not null: the body instead of `body`, one text in memory for all who are sent it.
  std::shared_ptr<const std::string> shared = nullptr;

  const std::string& text() const { return shared ? *shared : body; }
};

using Responder = std::function<void(Response)>;
using Handler = std::function<void(Request, Responder)>;

// What the head of a request settles.
struct Terms {
  std::optional<Response> refusal = std::nullopt;  // set: this is the answer, and no body is read
  std::optional<std::size_t> body_bytes = std::nullopt;  // nullopt: Limits::body_bytes
  bool verified = false;          // the caller has proved who it is, by certificate or token
  ByteBudget* bodies = nullptr;   // null: not counted; outlives the server
  ByteBudget* answers = nullptr;  // likewise
};
// Of a request without its body.
using Admit = std::function<Terms(const Request& head)>;

struct Limits {
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::chrono::milliseconds header_time{10'000};   // from the first byte of a request
  std::chrono::milliseconds request_time{30'000};  // header and body
  std::chrono::milliseconds idle_time{120'000};  // between requests; never under 95 s in production
  std::chrono::milliseconds reply_time{10'000};  // the peer reads nothing of a reply
  std::size_t slowest_reader = 32 * 1024;        // bytes a second, over the whole of a reply
  // More than binds that may wait at once for their turn at an agent, up to four seconds each.
  int connections = 2048;
};

// PEM files. They are read again when they change.
struct TlsOptions {
  std::string certificate_file;  // the server's own first, then what leads to the CA
  std::string key_file;
  // Not empty: clients must show a certificate these have signed, or may do without where
  // `client_optional` says so; one that is shown must be good in any case.
  std::string client_ca_file;
  bool client_optional = false;
  std::chrono::milliseconds look_every{10'000};
  std::string settings = "tls";  // what errors name the files by: "tls.certFile"
};

struct Options {
  std::string address = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  int threads = 2;
  Limits limits;
  std::optional<TlsOptions> tls = std::nullopt;  // nullopt: plain text
  // Of files that cannot be taken up, and of handlers that throw.
  std::function<void(const std::string&)> warn = nullptr;
  Admit admit = nullptr;  // null: everybody is answered
};

struct Statistics {
  int64_t connections_open = 0;
  int64_t connections_total = 0;
  int64_t connections_evicted = 0;
  int64_t handshakes_failed = 0;
  std::map<int, int64_t> refusals_by_status;  // answered by the server itself: 400, 408, 411, ...
  // Over TLS: until when the certificate that is shown is good.
  std::optional<std::chrono::system_clock::time_point> certificate_end = std::nullopt;
};

class Server {
 public:
  Server(Options options, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds, listens and starts the threads.
  // Errors: Unavailable with address, port and the system's words when binding fails,
  // InvalidArgument when the files of TLS cannot be used.
  absl::Status Start();
  uint16_t port() const;
  // Stops accepting, closes idle connections, lets requests in flight finish for up to `grace`,
  // then closes the rest and joins the threads. Idempotent.
  void Stop(std::chrono::milliseconds grace);
  Statistics statistics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::http
