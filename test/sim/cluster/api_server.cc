#include "test/sim/cluster/api_server.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "test/sim/base/wall.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kDisturbancePeriod = seconds(5);
constexpr SimTime kCompactionPeriod = seconds(20);
constexpr SimTime kHistory = seconds(150);
constexpr SimTime kDefaultWatch = seconds(1'800);
constexpr int kHangs = 1'000;    // of 10,000 Bindings and evictions
constexpr int kDawdles = 2'500;  // of 10,000 reads of one object

std::string Decoded(std::string_view text) {
  const auto digit = [](char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    return (byte | 0x20) - 'a' + 10;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Reply ReplyOf(const Answer& answer) {
  Reply reply{answer.code, true, "", answer.retry_after};
  reply.body = answer.object != nullptr ? answer.object->text() : answer.status.dump();
  return reply;
}

const Json* AnnotationsOf(const Json& object) {
  const auto found = object.at("metadata").find("annotations");
  return found == object.at("metadata").end() ? nullptr : &*found;
}

bool SameAnnotations(const Json& one, const Json& other) {
  static const Json kNone = Json::object();
  const Json* const left = AnnotationsOf(one);
  const Json* const right = AnnotationsOf(other);
  return (left == nullptr ? kNone : *left) == (right == nullptr ? kNone : *right);
}

Happening FaultOf(std::string text) {
  Happening happening{Happening::Kind::kFault};
  happening.who = "apiserver";
  happening.text = "apiserver: " + std::move(text);
  return happening;
}

}  // namespace

std::string SplitTarget(const std::string& target, Query& query) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  std::size_t at = mark;
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string_view pair = std::string_view(target).substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    query[std::string(pair.substr(0, equals))] =
        equals < pair.size() ? Decoded(pair.substr(equals + 1)) : "";
    at = end;
  }
  return Decoded(std::string_view(target).substr(0, mark));
}

ApiServer::ApiServer(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                     Network& network, uint64_t seed)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kApiServer)),
      network_(network),
      draws_(Draws(seed).Fork(0x617069)),
      self_(loop.NewActor("apiserver")),
      store_(loop, history),
      writes_(store_),
      pods_(loop, store_, writes_),
      lists_(loop, store_),
      watches_(loop, store_, script, faults, network, seed),
      admission_(loop, store_, network) {}

void ApiServer::Start() {
  loop_.After(kCompactionPeriod, self_, [this] { Compact(); });
  if (rate_ > 0) loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
}

void ApiServer::Quiet() {
  quiet_ = true;
  away_until_ = unbindable_until_ = SimTime{0};
  watches_.Quiet();
}

void ApiServer::Compact() {
  loop_.After(kCompactionPeriod, self_, [this] { Compact(); });
  uint64_t until = store_.compacted();
  for (const ResourceType& type : kResources) {
    for (const Change& change : store_.LogOf(type.plural).changes) {
      if (change.at + kHistory > loop_.now()) break;
      until = std::max(until, change.object->version());
    }
  }
  store_.Compact(until);
}

void ApiServer::Disturb() {
  if (quiet_) return;
  loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
  RefuseBindings();
  std::optional<Draws> act = script_.ActByChance("apiserver", rate_ * 5);
  if (!act) return;
  switch (act->Below(6)) {
    case 0: {  // both stop: nobody answers
      const SimTime time = milliseconds(act->Between(500, 30'000));
      away_until_ = loop_.now() + time;
      watches_.EndAll(0);
      watches_.EndAll(1);
      history_.Add(FaultOf("away for " + std::to_string(time.count() / 1000) + " ms"));
      break;
    }
    case 1:
    case 2: {  // one stops, its clients come to the other, which is behind
      watches_.EndAll(server_);
      server_ = 1 - server_;
      const SimTime lag = milliseconds(act->Between(0, 15'000));
      watches_.set_lag(server_, lag);
      history_.Add(
          FaultOf("another server, behind by " + std::to_string(lag.count() / 1000) + " ms"));
      break;
    }
    case 3: {  // watches lag, or no longer do
      const SimTime lag = milliseconds(act->Below(2) == 0 ? 0 : act->Between(50, 10'000));
      watches_.set_lag(server_, lag);
      history_.Add(FaultOf("watches behind by " + std::to_string(lag.count() / 1000) + " ms"));
      break;
    }
    case 4:  // all history is gone
      store_.Compact(store_.version());
      watches_.EndAll(server_);
      history_.Add(FaultOf("compacted"));
      break;
    default:
      lists_.ForgetSnapshots();
      lists_.set_page_size(static_cast<std::size_t>(act->Between(1, 40)));
      history_.Add(FaultOf("small pages"));
  }
}

// As an admission webhook does whose rules change. Source: NVIDIA/KAI-Scheduler #2075.
void ApiServer::RefuseBindings() {
  std::optional<Draws> act = script_.ActByChance("bindings-refused", rate_ * 20);
  const Store::Objects& pods = store_.All("pods");
  if (!act || pods.empty()) return;
  auto at = pods.begin();
  std::advance(at, act->Below(static_cast<int64_t>(pods.size())));
  const SimTime time = milliseconds(act->Between(1'000, 15'000));
  unbindable_ = at->second->ns();
  unbindable_until_ = loop_.now() + time;
  history_.Add(FaultOf("Bindings in " + unbindable_ + " refused for " +
                       std::to_string(time.count() / 1000) + " ms"));
}

void ApiServer::Send(Actor from, Request request, SimTime timeout,
                     std::function<void(Reply)> done) {
  if (away_until_ > loop_.now()) {
    loop_.After(network_.Delay(), from, [done = std::move(done)] {
      done({0, /*sent=*/false, "", std::nullopt});
    });
    return;
  }
  network_.Carry(from, std::move(request), timeout, std::move(done),
                 [this](Actor who, const Request& carried, SimTime,
                        const std::function<void(Reply)>& heard) { Serve(who, carried, heard); });
}

void ApiServer::Serve(Actor from, const Request& request,
                      const std::function<void(Reply)>& answered) {
  const auto done = [this, answered](Reply reply) {
    reply.date = std::chrono::floor<seconds>(WallOf(loop_.now()));
    answered(std::move(reply));
  };
  bool silent = false;
  if (!quiet_ && rate_ > 0) {
    if (std::optional<Draws> act = script_.ActByChance("api-answer", rate_)) {
      switch (act->Below(5)) {
        case 0:
          return done({429, true, StatusBody(429, "TooManyRequests", "too many").dump(),
                       static_cast<int>(act->Between(1, 5))});
        case 1:
          return done({503, true, "upstream connect error", std::nullopt});
        case 2:
          return done({500, true, StatusBody(500, "InternalError", "etcd").dump(), std::nullopt});
        default:
          silent = true;
      }
    }
  }
  const auto heard = [done, silent](Reply reply) {
    // Done, and the answer says that nobody knows.
    if (silent) {
      reply = {504, true, StatusBody(504, "Timeout", "request did not complete").dump(), {}};
    }
    done(std::move(reply));
  };
  Query query;
  ApiPath path = SplitPath(SplitTarget(request.target, query));
  if (path.type == nullptr) return heard({404, true, "404 page not found\n", std::nullopt});
  if (request.method == "GET") {
    Reply reply = Read(path, query);
    const bool may_dawdle = reads_dawdle_ && !path.name.empty() && !quiet_ && rate_ > 0;
    std::optional<Draws> act;
    if (may_dawdle) act = script_.ActByChance("slow-read", kDawdles);
    if (!act) return heard(std::move(reply));
    loop_.After(milliseconds(act->Between(20, 3'000)), self_,
                [heard, reply = std::move(reply)] { heard(reply); });
    return;
  }
  Write write{loop_.NameOf(from),   request.method, std::move(path),
              request.content_type, nullptr,        query.contains("fieldManager")};
  if (!request.body.empty()) {
    write.body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
    if (write.body.is_discarded()) {
      return heard(ReplyOf(Refuse(400, "BadRequest", "the body is no JSON")));
    }
  }
  const auto perform = [this, heard](Write one) {
    Perform(std::move(one), [heard](const Answer& answer) { heard(ReplyOf(answer)); });
  };
  const std::optional<SimTime> hang = HangOf(write);
  if (!hang) return perform(std::move(write));
  write.let_pass = true;
  loop_.After(*hang, self_, [perform, write = std::move(write)] { perform(write); });
}

// A webhook has up to 30 seconds for its answer, and a proxy on the way does not tell the server
// that the client has given up. Source: kubernetes.io/docs/reference/access-authn-authz/
// extensible-admission-controllers, "Timeouts".
std::optional<SimTime> ApiServer::HangOf(const Write& write) {
  const std::string_view part = write.path.subresource;
  if (!policies_hang_ || quiet_ || rate_ == 0 || write.method != "POST") return std::nullopt;
  if (write.path.type->plural != "pods" || (part != "binding" && part != "eviction")) {
    return std::nullopt;
  }
  if (part == "binding" && write.path.ns == unbindable_ && loop_.now() < unbindable_until_) {
    return std::nullopt;
  }
  std::optional<Draws> act = script_.ActByChance("policy-hangs", kHangs);
  if (!act) return std::nullopt;
  const SimTime time = milliseconds(act->Between(100, 8'000));
  history_.Add(FaultOf("a policy keeps a " + std::string(part) + " of " + write.path.key() +
                       " for " + std::to_string(time.count() / 1000) + " ms"));
  if (part == "binding" && act->Below(2) == 0) {
    // It hangs while its rules change: those who ask anew are judged by the new ones.
    unbindable_ = write.path.ns;
    unbindable_until_ = loop_.now() + milliseconds(act->Between(1'000, 30'000));
  }
  return time;
}

Reply ApiServer::Read(const ApiPath& path, const Query& query) {
  if (path.name.empty()) return lists_.List(*path.type, path.ns, query);
  const StoredPtr object = store_.Find(path.type->plural, path.key());
  if (object == nullptr) return ReplyOf(NotFound(path.type->plural, path.key()));
  if (hear_read_ != nullptr) hear_read_(path.type->plural, path.key());
  return {200, true, object->text(), std::nullopt};
}

void ApiServer::Do(Actor from, Write write, std::function<void(const Answer&)> done) {
  loop_.After(network_.Delay(), self_, [this, from, write = std::move(write), done]() mutable {
    Perform(std::move(write), [this, from, done](const Answer& answer) {
      if (done == nullptr) return;
      loop_.After(network_.Delay(), from, [done, answer] { done(answer); });
    });
  });
}

Answer ApiServer::Put(const std::string& who, std::string_view resource, Json object) {
  return {201, store_.Put(resource, std::move(object), who)};
}

void ApiServer::Perform(Write write, Done done) {
  const auto told = [this, who = write.who, resource = std::string(write.path.type->plural),
                     key = write.path.key(), method = write.method, sub = write.path.subresource,
                     done = std::move(done)](const Answer& answer) {
    if (!answer.done()) {
      Happening refused{Happening::Kind::kRefused};
      refused.number = static_cast<uint64_t>(answer.code);
      refused.who = who;
      refused.resource = resource;
      refused.key = key;
      refused.text =
          method + (sub.empty() ? "" : " " + sub) + ": " + answer.status.value("message", "");
      history_.Add(std::move(refused));
    }
    done(answer);
  };
  if (write.path.type->plural == "pods" && write.path.subresource.empty()) {
    if (write.method == "POST") return CreatePod(std::move(write), told);
    if (write.method == "PATCH" || write.method == "PUT") return ChangePod(std::move(write), told);
  }
  told(PerformNow(write));
}

Answer ApiServer::PerformNow(const Write& write) {
  const bool named = !write.path.name.empty();
  if (write.path.type->plural == "events") {
    // They are counted by the history of requests alone; nobody reads them.
    return {201, nullptr, write.body};
  }
  if (write.path.type->plural == "pods") {
    if (write.path.subresource == "binding" && write.method == "POST") {
      if (!write.let_pass && write.path.ns == unbindable_ && loop_.now() < unbindable_until_) {
        return Refuse(403, "Forbidden", "admission webhook \"policy.example.com\" denied it");
      }
      return pods_.Bind(write);
    }
    if (write.path.subresource == "eviction" && write.method == "POST") return pods_.Evict(write);
    if (write.path.subresource == "status" && write.method == "PATCH") {
      return pods_.PatchStatus(write);
    }
    if (write.method == "DELETE") return pods_.Delete(write);
  }
  if (write.method == "POST" && !named) return writes_.Create(write);
  if (write.method == "PUT" && named) return writes_.Replace(write);
  if (write.method == "PATCH" && named) return writes_.Patch(write);
  if (write.method == "DELETE" && named) return writes_.Delete(write);
  return Refuse(405, "MethodNotAllowed", write.method);
}

void ApiServer::CreatePod(Write write, Done done) {
  Answer refusal;
  if (!writes_.Prepared(write, refusal)) return done(refusal);
  auto asked = std::make_shared<Write>(std::move(write));
  admission_.Mutate(asked->who, asked->path.ns, asked->body,
                    [this, asked, done = std::move(done)](const Admission::Verdict& word) {
                      if (!word.allowed) return done(Refuse(400, "BadRequest", word.message));
                      FillPod(asked, word.patch, done);
                    });
}

void ApiServer::FillPod(const std::shared_ptr<Write>& asked, const Json& patch, const Done& done) {
  Answer refusal;
  try {
    if (patch.is_array()) asked->body.patch_inplace(patch);
  } catch (const Json::exception& wrong) {
    return done(Refuse(500, "InternalError", wrong.what()));
  }
  std::optional<Json> whole = pods_.Defaulted(std::move(asked->body), refusal);
  if (!whole) return done(refusal);
  asked->body = std::move(*whole);
  admission_.Validate(
      asked->who, asked->path.ns, asked->body, nullptr,
      [this, asked, done](const Admission::Verdict& verdict) {
        done(verdict.allowed ? writes_.Create(*asked) : Refuse(403, "Forbidden", verdict.message));
      });
}

void ApiServer::ChangePod(Write write, Done done) {
  const StoredPtr before = store_.Find("pods", write.path.key());
  if (before == nullptr) return done(NotFound("pods", write.path.key()));
  Answer refusal;
  std::optional<Json> changed = write.method == "PUT" ? std::optional<Json>(write.body)
                                                      : writes_.Patched(write, *before, refusal);
  if (!changed) return done(refusal);
  if (SameAnnotations(*changed, before->object())) return done(PerformNow(write));
  const auto asked = std::make_shared<Write>(std::move(write));
  admission_.Validate(
      asked->who, asked->path.ns, *changed, before->object(),
      [this, asked, done = std::move(done)](const Admission::Verdict& verdict) {
        // A patch goes to the version that is current by now.
        done(verdict.allowed ? PerformNow(*asked) : Refuse(403, "Forbidden", verdict.message));
      });
}

uint64_t ApiServer::Watch(Actor from, std::string target,
                          std::function<void(std::string_view)> bytes,
                          std::function<void(int code, std::string body)> ended) {
  const uint64_t id = ++watch_ids_;
  watch_of_[id] = 0;
  const Network::Fate fate = network_.FateOf(from);
  const bool away = away_until_ > loop_.now();
  if (away || fate.lost_before || fate.lost_after) {
    // Refused at once, or given up when nothing is heard for a while.
    const SimTime wait = away ? fate.there : SimTime(seconds(10));
    loop_.After(wait, from, [this, id, ended = std::move(ended)] {
      if (watch_of_.erase(id) > 0) ended(0, "");
    });
    return id;
  }
  loop_.After(fate.there, self_,
              [this, id, from, target = std::move(target), bytes = std::move(bytes),
               ended = std::move(ended)]() mutable {
                OpenWatch(id, from, target, std::move(bytes), std::move(ended));
              });
  return id;
}

void ApiServer::OpenWatch(uint64_t id, Actor from, const std::string& target,
                          std::function<void(std::string_view)> bytes,
                          std::function<void(int code, std::string body)> ended) {
  if (!watch_of_.contains(id)) return;
  Query query;
  const ApiPath path = SplitPath(SplitTarget(target, query));
  const auto end = [this, id, from, ended](int code, std::string body) {
    loop_.After(network_.Delay(), from, [this, id, ended, code, body = std::move(body)] {
      if (watch_of_.erase(id) > 0) ended(code, body);
    });
  };
  if (path.type == nullptr) return end(404, "404 page not found\n");
  if (!quiet_ && rate_ > 0) {
    if (std::optional<Draws> act = script_.ActByChance("api-watch", rate_)) {
      if (act->Below(2) == 0) return end(503, "upstream connect error");
      return end(410, StatusBody(410, "Expired", "too old resource version").dump());
    }
  }
  const uint64_t version = std::strtoull(query["resourceVersion"].c_str(), nullptr, 10);
  if (version < store_.compacted()) {
    // Either form is allowed.
    const std::string status = StatusBody(410, "Expired", "too old resource version").dump();
    if (draws_.Below(2) == 0) return end(410, status);
    loop_.After(network_.Delay(), from, [this, id, bytes, ended, status] {
      if (watch_of_.contains(id)) bytes("{\"type\":\"ERROR\",\"object\":" + status + "}\n");
      if (watch_of_.erase(id) > 0) ended(200, "");
    });
    return;
  }
  const std::string lasts = query["timeoutSeconds"];
  watch_of_[id] = watches_.Open(
      {from, path.type, version,
       lasts.empty() ? kDefaultWatch : SimTime(seconds(std::strtoll(lasts.c_str(), nullptr, 10))),
       query["allowWatchBookmarks"] == "true" || query["allowWatchBookmarks"] == "1", server_,
       std::move(bytes), [this, id, ended = std::move(ended)](int code, std::string body) {
         watch_of_.erase(id);
         ended(code, std::move(body));
       }});
}

void ApiServer::CloseWatch(uint64_t watch) {
  const auto found = watch_of_.find(watch);
  if (found == watch_of_.end()) return;
  watches_.Close(found->second);
  watch_of_.erase(found);
}

}  // namespace tranche::sim
