#include "bench/storm/deaf_clients.h"

#include <array>
#include <chrono>
#include <utility>

#include "scheduler/api/api.h"
#include "scheduler/server/config.h"

namespace tranche::bench {
namespace {

constexpr std::array<std::string_view, 3> kViews = {"/api/v1/nodes", "/api/v1/pods",
                                                    "/api/v1/quotas"};

http::Options Pages(http::ByteBudget& answers) {
  http::Options options;
  options.port = 0;
  options.admit = [&answers](const http::Request&) {
    http::Terms terms;
    terms.answers = &answers;
    return terms;
  };
  return options;
}

}  // namespace

DeafClients::DeafClients(EngineHost& host)
    : answers_(ServeConfig().sending_bytes),
      server_(Pages(answers_), [this](http::Request request, http::Responder respond) {
        desk_.Ask(router_, std::move(request), std::move(respond));
      }) {
  AddApi(host, router_);
}

DeafClients::~DeafClients() {
  clients_.clear();
  server_.Stop(std::chrono::milliseconds(0));
  desk_.Join();
}

absl::Status DeafClients::Start() { return server_.Start(); }

absl::Status DeafClients::Come(std::size_t most) {
  clients_.push_back(std::make_unique<Client>(server_.port()));
  if (clients_.size() > most) clients_.erase(clients_.begin());
  if (absl::Status connected = clients_.back()->Connect(); !connected.ok()) return connected;
  return clients_.back()->AskOnly(kViews[asked_++ % kViews.size()]);
}

}  // namespace tranche::bench
