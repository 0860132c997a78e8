// The API server's call-outs to Tranche's webhook, as the chart installs it: which namespaces and
// pods it is asked about, five seconds of patience, and what happens when no answer comes (the
// write goes on: failurePolicy Ignore).
//
// Source: charts/tranche/templates/webhook.yaml and charts/tranche/values.yaml.
//
// Thread rule: one thread. Callbacks come in later steps, or at once where nobody is asked.
#pragma once

#include <functional>
#include <string>

#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/cluster/answer.h"
#include "test/sim/cluster/network.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

class Admission {
 public:
  struct Verdict {
    bool allowed = true;
    std::string message;
    Json patch = nullptr;  // a JSON patch; null: none
  };
  using Done = std::function<void(Verdict)>;

  Admission(Loop& loop, const Store& store, Network& network);

  // Without an endpoint nobody is asked, as where the webhook is not installed.
  void set_endpoint(TrancheEndpoint* tranche) { tranche_ = tranche; }

  void Mutate(const std::string& who, const std::string& ns, const Json& pod, Done done);
  // `before` null: it is made.
  void Validate(const std::string& who, const std::string& ns, const Json& pod, const Json& before,
                Done done);

 private:
  void Ask(const std::string& path, const std::string& who, const std::string& ns, const Json& pod,
           const Json& before, Done done);

  Loop& loop_;
  const Store& store_;
  Network& network_;
  const Actor self_;
  TrancheEndpoint* tranche_ = nullptr;
  uint64_t asked_ = 0;
};

}  // namespace tranche::sim
