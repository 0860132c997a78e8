// An extender that says yes to everything, for tests of the world without the product: it binds by
// the API server alone and keeps no books.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"

namespace tranche::sim {

class ToyExtender : public TrancheEndpoint {
 public:
  ToyExtender(Loop& loop, ApiEndpoint& api)
      : loop_(loop), api_(api), self_(loop.NewActor("tranche-0/1")) {}

  // What it answers to a verb instead; null: nothing, so that the caller hears code 0.
  void Answer(const std::string& verb, Json answer) { scripted_[verb] = std::move(answer); }
  const std::vector<std::pair<std::string, Json>>& heard() const { return heard_; }

  void Send(Actor, Request request, SimTime, std::function<void(Reply)> done) override {
    const std::string verb = request.target.substr(request.target.rfind('/') + 1);
    const Json body = Json::parse(request.body);
    heard_.emplace_back(verb, body);
    const auto answer = scripted_.find(verb);
    if (answer != scripted_.end()) {
      return done(answer->second.is_null() ? Reply{} : Reply{200, true, answer->second.dump(), {}});
    }
    if (verb == "bind") return Bind(body, std::move(done));
    Json word = Json::array();
    if (verb == "filter") word = {{"NodeNames", body.at("NodeNames")}, {"Error", ""}};
    if (verb == "preempt") {
      word = {{"NodeNameToMetaVictims", body.at("NodeNameToMetaVictims")}};
    }
    if (verb == "mutate" || verb == "validate") {
      word = {{"response", {{"uid", body.at("request").at("uid")}, {"allowed", true}}}};
    }
    done({200, true, word.dump(), {}});
  }

 private:
  void Bind(const Json& args, std::function<void(Reply)> done) {
    const std::string name = args.at("PodName");
    const std::string ns = args.at("PodNamespace");
    Request post;
    post.method = "POST";
    post.target = "/api/v1/namespaces/" + ns + "/pods/" + name + "/binding";
    post.body = Json({{"apiVersion", "v1"},
                      {"kind", "Binding"},
                      {"metadata", {{"name", name}, {"namespace", ns}, {"uid", args.at("PodUID")}}},
                      {"target", {{"kind", "Node"}, {"name", args.at("Node")}}}})
                    .dump();
    api_.Send(self_, std::move(post), std::chrono::seconds(4), [done](const Reply& reply) {
      const bool bound = reply.code == 201;
      done({200, true, Json({{"Error", bound ? "" : "not bound"}}).dump(), {}});
    });
  }

  Loop& loop_;
  ApiEndpoint& api_;
  const Actor self_;
  std::map<std::string, Json> scripted_;
  std::vector<std::pair<std::string, Json>> heard_;
};

}  // namespace tranche::sim
