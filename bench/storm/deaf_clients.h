// The pages of the server, in front of a host, and clients that ask for its largest views and never
// read an answer.
//
// Thread rule: one thread; the pages are answered on threads of their own, as in the server.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "bench/http/client.h"
#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/http/byte_budget.h"
#include "scheduler/http/server.h"
#include "scheduler/server/question_desk.h"

namespace tranche::bench {

class DeafClients {
 public:
  explicit DeafClients(EngineHost& host);
  ~DeafClients();
  DeafClients(const DeafClients&) = delete;
  DeafClients& operator=(const DeafClients&) = delete;

  absl::Status Start();
  // One more comes and asks; of more than `most` the first goes.
  absl::Status Come(std::size_t most);

 private:
  Router router_;
  QuestionDesk desk_;
  http::ByteBudget answers_;
  http::Server server_;
  std::size_t asked_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace tranche::bench
