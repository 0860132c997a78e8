// A small Kubernetes API server for tests: lists with pages, watches with a history, bindings,
// evictions, patches and events, over real sockets, plain or TLS. Whatever a test does not script
// behaves as the real one would; scripted answers go first.
//
// Thread rule: any thread. Each connection has a thread of its own; scripts run on it and may block
// (see Exchange::WaitUntilStopped).
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/fakes/certificates.h"

namespace tranche::fakes {

using Json = nlohmann::json;

struct ApiRequest {
  std::string method;
  std::string path;                            // without the query
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int64_t watch_generation = 0;  // how often watches had been ended when it came
};

// Ways to answer one request.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void Answer(int status, const std::string& body,
                      const std::map<std::string, std::string>& headers = {}) = 0;
  virtual void StartChunks() = 0;
  virtual void Chunk(std::string_view bytes) = 0;
  virtual void EndChunks() = 0;
  virtual void Raw(std::string_view bytes) = 0;  // bytes on the connection as they are
  virtual void Drop() = 0;                       // closes without an answer
  virtual void WaitUntilStopped() = 0;           // says nothing more
};

Json StatusBody(int code, const std::string& reason, const std::string& message = "");

class ApiServer {
 public:
  using Script = std::function<void(const ApiRequest&, Exchange&)>;

  // `port` 0: any free one.
  explicit ApiServer(std::optional<KeyPair> tls = std::nullopt, uint16_t port = 0);
  ~ApiServer();
  uint16_t port() const { return port_; }

  // Creates or replaces an object and tells the watches. `list_path` is that of pods, nodes,
  // namespaces, priority classes, disruption budgets, config maps or events, or one made by
  // Install.
  void Put(const std::string& list_path, Json object);
  void Delete(const std::string& list_path, const std::string& key);
  // Same without an event: what a lost event leaves behind.
  void PutSilently(const std::string& list_path, Json object);
  void DeleteSilently(const std::string& list_path, const std::string& key);
  // Makes a custom resource exist; before that its path answers 404.
  void Install(const std::string& list_path, const std::string& list_kind);
  void Bookmark(const std::string& list_path);
  // Forgets the history: watches from any version up to now get 410, open ones end.
  void Compact();
  // Ends open watches in order, as a server does at timeoutSeconds.
  void EndWatches();
  void set_page_size(std::size_t size);
  // Requests with another bearer token are answered with 401.
  void set_token(const std::string& token);

  // The next request of that method and path (watches apart from lists) is answered by `script`.
  void OnNext(const std::string& method, const std::string& path, Script script);
  void OnNextWatch(const std::string& path, Script script);
  // What the server does without a script.
  void Serve(const ApiRequest& request, Exchange& exchange);
  // Only the effect of a binding; the answer as code and body.
  std::pair<int, Json> ApplyBinding(const ApiRequest& request);

  std::vector<ApiRequest> Requests(const std::string& path) const;  // so far, watches included
  Json Object(const std::string& list_path, const std::string& key) const;  // null: none
  std::string version() const;
  int connections() const;  // opened so far

 private:
  struct Connection;
  // "/api/v1/namespaces/NS/pods/NAME/SUB" taken apart; `list_path` is "/api/v1/pods".
  struct ObjectPath {
    std::string list_path, ns, name, subresource;
    std::string key() const { return ns.empty() ? name : ns + "/" + name; }
  };
  struct Event {
    int64_t version;
    std::string list_path;
    std::string text;
  };

  void Accept();
  void Run(Connection& connection);
  void Handle(ApiRequest request, Exchange& exchange);
  void Store(const std::string& list_path, Json object, bool silent);
  void Remove(const std::string& list_path, const std::string& key, bool silent);
  void AddEvent(const std::string& list_path, const std::string& type, const Json& object);
  void ServeList(const ApiRequest& request, Exchange& exchange);
  void ServeWatch(const ApiRequest& request, Exchange& exchange);
  void ServeObject(const ApiRequest& request, Exchange& exchange);
  void ServeWrite(const ApiRequest& request, Exchange& exchange);
  std::pair<int, Json> PatchPodStatus(const ApiRequest& request);
  // As disruption budgets allow, by their status and spec.selector.matchLabels. The pod stays,
  // terminating, until the test deletes it; one without a grace goes at once.
  std::pair<int, Json> EvictPod(const ApiRequest& request);
  std::optional<std::pair<int, Json>> ChargeBudget(const Json& pod);  // nullopt: granted
  std::pair<int, Json> ApplyObject(const ApiRequest& request, const ObjectPath& path);
  // A merge patch of an object, with metadata.resourceVersion as a precondition.
  std::pair<int, Json> MergePatch(const ApiRequest& request, const ObjectPath& path);
  std::pair<int, Json> JsonPatchPod(const ApiRequest& request, const ObjectPath& path);
  // One of a namespace, which has none of that name.
  std::pair<int, Json> CreateObject(const ApiRequest& request, const ObjectPath& path);
  // A lease made (POST), or replaced where its version is still the stored one (PUT).
  std::pair<int, Json> WriteLease(const ApiRequest& request, const ObjectPath& path);
  std::pair<int, Json> CreateEvent(const ApiRequest& request, const ObjectPath& path);
  bool Serves(const std::string& list_path) const;
  static ObjectPath SplitPath(const std::string& path);

  struct Net;
  std::unique_ptr<Net> net_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  int64_t version_ = 100;
  int64_t compacted_ = 0;
  int64_t watch_generation_ = 0;
  std::size_t page_size_ = 500;
  std::string token_;
  std::mutex lease_mutex_;  // from the look at a version to the write
  std::map<std::string, std::string> kinds_;
  std::map<std::string, std::map<std::string, Json>> objects_;
  std::vector<Event> events_;
  std::map<std::string, std::deque<Script>> scripts_;
  std::vector<ApiRequest> requests_;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

}  // namespace tranche::fakes
