#include "test/fakes/api_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

namespace tranche::fakes {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string KeyOf(const Json& object) {
  const Json& metadata = object.at("metadata");
  const std::string name = metadata.at("name");
  return metadata.contains("namespace") ? metadata.at("namespace").get<std::string>() + "/" + name
                                        : name;
}

std::string Decode(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  });
  return text;
}

void ParseTarget(const std::string& target, ApiRequest& request) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  std::size_t at = mark;
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string pair = target.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    request.query[pair.substr(0, equals)] =
        equals < pair.size() ? Decode(pair.substr(equals + 1)) : "";
    at = end;
  }
}

ApiRequest ParseHead(const std::string& head) {
  ApiRequest request;
  const std::size_t line_end = head.find("\r\n");
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  ParseTarget(head.substr(first + 1, second - first - 1), request);
  std::size_t at = line_end + 2;
  while (at < head.size()) {
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::size_t colon = head.find(": ", at);
    if (colon < end) {
      request.headers[Lower(head.substr(at, colon - at))] = head.substr(colon + 2, end - colon - 2);
    }
    at = end + 2;
  }
  return request;
}

std::string ScriptKey(const std::string& method, const std::string& path) {
  return method + " " + path;
}

}  // namespace

Json StatusBody(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", code < 300 ? "Success" : "Failure"},
          {"reason", reason}, {"message", message}, {"code", code}};
}

struct ApiServer::Net {
  asio::io_context context;
  tcp::acceptor acceptor{context};
  std::optional<asio::ssl::context> tls;
};

struct ApiServer::Connection : public Exchange {
  Connection(ApiServer& owner, tcp::socket socket) : server(owner), raw(std::move(socket)) {
    if (server.net_->tls) secure.emplace(raw, *server.net_->tls);
  }

  bool Handshake() {
    boost::system::error_code error;
    if (secure) secure->handshake(asio::ssl::stream_base::server, error);
    return !error;
  }
  bool ReadUntil(std::size_t size) {
    while (!closed && input.size() < size) {
      boost::system::error_code error;
      std::string piece(64 * 1024, '\0');
      const std::size_t count = secure ? secure->read_some(asio::buffer(piece), error)
                                       : raw.read_some(asio::buffer(piece), error);
      if (error) return false;
      input.append(piece, 0, count);
    }
    return !closed;
  }
  std::optional<ApiRequest> Read() {
    std::size_t end = std::string::npos;
    while ((end = input.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadUntil(input.size() + 1)) return std::nullopt;
    }
    ApiRequest request = ParseHead(input.substr(0, end));
    input.erase(0, end + 4);
    const auto length = request.headers.find("content-length");
    if (length != request.headers.end()) {
      const std::size_t size = std::stoul(length->second);
      if (!ReadUntil(size)) return std::nullopt;
      request.body = input.substr(0, size);
      input.erase(0, size);
    }
    return request;
  }
  void Raw(std::string_view bytes) override {
    boost::system::error_code error;
    if (secure) {
      asio::write(*secure, asio::buffer(bytes), error);
    } else {
      asio::write(raw, asio::buffer(bytes), error);
    }
    closed = closed || error;
  }
  void Answer(int status, const std::string& body,
              const std::map<std::string, std::string>& headers) override {
    std::string text = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n", status, body.size());
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    Raw(text + "\r\n" + body);
  }
  void StartChunks() override {
    Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
  }
  void Chunk(std::string_view bytes) override {
    Raw(fmt::format("{:x}\r\n", bytes.size()) + std::string(bytes) + "\r\n");
  }
  void EndChunks() override { Raw("0\r\n\r\n"); }
  void Drop() override {
    closed = true;
    ::shutdown(raw.native_handle(), SHUT_RDWR);
  }
  void WaitUntilStopped() override {
    std::unique_lock<std::mutex> lock(server.mutex_);
    server.changed_.wait(lock, [this] { return server.stopping_; });
    closed = true;
  }

  ApiServer& server;
  tcp::socket raw;
  std::optional<asio::ssl::stream<tcp::socket&>> secure;
  std::string input;
  bool closed = false;
  std::thread thread;
};

ApiServer::ApiServer(std::optional<KeyPair> tls, uint16_t port) : net_(std::make_unique<Net>()) {
  kinds_ = {{"/api/v1/pods", "PodList"},
            {"/api/v1/nodes", "NodeList"},
            {"/api/v1/namespaces", "NamespaceList"},
            {"/api/v1/configmaps", "ConfigMapList"},
            {"/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClassList"},
            {"/apis/policy/v1/poddisruptionbudgets", "PodDisruptionBudgetList"},
            {"/apis/coordination.k8s.io/v1/leases", "LeaseList"},
            {"/apis/events.k8s.io/v1/events", "EventList"}};
  if (tls) {
    net_->tls.emplace(asio::ssl::context::tls_server);
    net_->tls->use_certificate_chain(asio::buffer(tls->certificate_pem));
    net_->tls->use_private_key(asio::buffer(tls->key_pem), asio::ssl::context::pem);
  }
  const tcp::endpoint here(asio::ip::address_v4::loopback(), port);
  net_->acceptor.open(here.protocol());
  net_->acceptor.set_option(tcp::acceptor::reuse_address(true));
  net_->acceptor.bind(here);
  net_->acceptor.listen();
  port_ = net_->acceptor.local_endpoint().port();
  acceptor_ = std::thread([this] { Accept(); });
}

ApiServer::~ApiServer() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (Connection& connection : connections_) {
      ::shutdown(connection.raw.native_handle(), SHUT_RDWR);
    }
  }
  changed_.notify_all();
  ::shutdown(net_->acceptor.native_handle(), SHUT_RDWR);
  acceptor_.join();
  for (Connection& connection : connections_) connection.thread.join();
}

void ApiServer::Accept() {
  for (;;) {
    boost::system::error_code error;
    tcp::socket socket = net_->acceptor.accept(error);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error || stopping_) return;
    Connection& connection = connections_.emplace_back(*this, std::move(socket));
    connection.thread = std::thread([this, &connection] { Run(connection); });
  }
}

void ApiServer::Run(Connection& connection) {
  if (connection.Handshake()) {
    while (const std::optional<ApiRequest> request = connection.Read()) {
      Handle(*request, connection);
      if (connection.closed) break;
    }
  }
  ::shutdown(connection.raw.native_handle(), SHUT_RDWR);
}

void ApiServer::Handle(ApiRequest request, Exchange& exchange) {
  Script script;
  bool authorized = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request.watch_generation = watch_generation_;
    requests_.push_back(request);
    const std::string method = request.query.contains("watch") ? "WATCH" : request.method;
    auto& queue = scripts_[ScriptKey(method, request.path)];
    if (!queue.empty()) {
      script = std::move(queue.front());
      queue.pop_front();
    }
    const auto given = request.headers.find("authorization");
    authorized =
        token_.empty() || (given != request.headers.end() && given->second == "Bearer " + token_);
  }
  changed_.notify_all();
  if (!authorized) {
    exchange.Answer(401, StatusBody(401, "Unauthorized").dump());
  } else if (script) {
    script(request, exchange);
  } else {
    Serve(request, exchange);
  }
}

void ApiServer::Serve(const ApiRequest& request, Exchange& exchange) {
  if (request.method != "GET") return ServeWrite(request, exchange);
  const bool of_one = request.path.starts_with("/api/v1/namespaces/") ||
                      request.path.starts_with("/api/v1/nodes/") ||
                      request.path.starts_with("/apis/coordination.k8s.io/v1/namespaces/");
  if (of_one) return ServeObject(request, exchange);
  if (request.query.contains("watch")) return ServeWatch(request, exchange);
  ServeList(request, exchange);
}

void ApiServer::ServeList(const ApiRequest& request, Exchange& exchange) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!kinds_.contains(request.path)) {
    lock.unlock();
    return exchange.Answer(404, "404 page not found\n");
  }
  const auto limit = request.query.find("limit");
  const std::size_t asked = limit == request.query.end() ? SIZE_MAX : std::stoul(limit->second);
  const std::size_t size = limit == request.query.end() ? SIZE_MAX : std::min(asked, page_size_);
  std::size_t start = 0;
  std::string version = std::to_string(version_);
  if (const auto token = request.query.find("continue"); token != request.query.end()) {
    const std::size_t bar = token->second.find('|');
    version = token->second.substr(0, bar);
    start = std::stoul(token->second.substr(bar + 1));
  }
  Json list = {{"kind", kinds_[request.path]},
               {"apiVersion", "v1"},
               {"metadata", {{"resourceVersion", version}}},
               {"items", Json::array()}};
  const auto& objects = objects_[request.path];
  std::size_t at = 0;
  for (const auto& [key, object] : objects) {
    if (at >= start && at - start < size) list["items"].push_back(object);
    ++at;
  }
  if (objects.size() > start && objects.size() - start > size) {
    list["metadata"]["continue"] = fmt::format("{}|{}", version, start + size);
  }
  lock.unlock();
  exchange.Answer(200, list.dump());
}

void ApiServer::ServeWatch(const ApiRequest& request, Exchange& exchange) {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t from = std::stoll(request.query.at("resourceVersion"));
  if (from < compacted_) {
    lock.unlock();
    return exchange.Answer(410, StatusBody(410, "Expired", "too old resource version").dump());
  }
  const int64_t generation = request.watch_generation;
  lock.unlock();
  exchange.StartChunks();
  lock.lock();
  int64_t told = from;
  for (;;) {
    std::string news;
    for (const Event& event : events_) {
      if (event.version > told && event.list_path == request.path) news += event.text + "\n";
    }
    told = std::max(told, version_);
    if (!news.empty()) {
      lock.unlock();
      exchange.Chunk(news);
      lock.lock();
      continue;
    }
    if (stopping_ || generation != watch_generation_) break;
    changed_.wait(lock,
                  [&] { return stopping_ || generation != watch_generation_ || version_ > told; });
  }
  lock.unlock();
  exchange.EndChunks();
}

void ApiServer::ServeObject(const ApiRequest& request, Exchange& exchange) {
  const ObjectPath path = SplitPath(request.path);
  const Json object = Object(path.list_path, path.key());
  if (object.is_null()) return exchange.Answer(404, StatusBody(404, "NotFound").dump());
  exchange.Answer(200, object.dump());
}

void ApiServer::AddEvent(const std::string& list_path, const std::string& type,
                         const Json& object) {
  events_.push_back({version_, list_path, Json({{"type", type}, {"object", object}}).dump()});
}

void ApiServer::Store(const std::string& list_path, Json object, bool silent) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    Json& place = objects_[list_path][KeyOf(object)];
    const std::string type = place.is_null() ? "ADDED" : "MODIFIED";
    place = std::move(object);
    if (!silent) AddEvent(list_path, type, place);
  }
  changed_.notify_all();
}

void ApiServer::Remove(const std::string& list_path, const std::string& key, bool silent) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Json object = objects_[list_path].at(key);
    objects_[list_path].erase(key);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    if (!silent) AddEvent(list_path, "DELETED", object);
  }
  changed_.notify_all();
}

void ApiServer::Put(const std::string& path, Json object) { Store(path, std::move(object), false); }
void ApiServer::Delete(const std::string& path, const std::string& key) {
  Remove(path, key, false);
}
void ApiServer::PutSilently(const std::string& path, Json object) {
  Store(path, std::move(object), true);
}
void ApiServer::DeleteSilently(const std::string& path, const std::string& key) {
  Remove(path, key, true);
}

void ApiServer::Install(const std::string& list_path, const std::string& list_kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kinds_[list_path] = list_kind;
}

bool ApiServer::Serves(const std::string& list_path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kinds_.contains(list_path);
}

void ApiServer::Bookmark(const std::string& list_path) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++version_;
    AddEvent(list_path, "BOOKMARK",
             {{"kind", "Pod"}, {"metadata", {{"resourceVersion", std::to_string(version_)}}}});
  }
  changed_.notify_all();
}

void ApiServer::Compact() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    compacted_ = ++version_;
    events_.clear();
    ++watch_generation_;
  }
  changed_.notify_all();
}

void ApiServer::EndWatches() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++watch_generation_;
  }
  changed_.notify_all();
}

void ApiServer::set_page_size(std::size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  page_size_ = size;
}

void ApiServer::set_token(const std::string& token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  token_ = token;
}

void ApiServer::OnNext(const std::string& method, const std::string& path, Script script) {
  const std::lock_guard<std::mutex> lock(mutex_);
  scripts_[ScriptKey(method, path)].push_back(std::move(script));
}

void ApiServer::OnNextWatch(const std::string& path, Script script) {
  OnNext("WATCH", path, std::move(script));
}

std::vector<ApiRequest> ApiServer::Requests(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ApiRequest> out;
  std::copy_if(requests_.begin(), requests_.end(), std::back_inserter(out),
               [&path](const ApiRequest& request) { return request.path == path; });
  return out;
}

Json ApiServer::Object(const std::string& list_path, const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto objects = objects_.find(list_path);
  if (objects == objects_.end()) return nullptr;
  const auto found = objects->second.find(key);
  return found == objects->second.end() ? Json(nullptr) : found->second;
}

std::string ApiServer::version() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::to_string(version_);
}

int ApiServer::connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(connections_.size());
}

}  // namespace tranche::fakes
