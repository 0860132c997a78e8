// What the Kubernetes client of the product stands on in the simulator: its event loops run in
// steps of the process, its requests go to the ApiEndpoint.
//
// Thread rule: one thread. The process must be killed before what stands on this is destroyed; then
// what is still under way ends at once, and nothing leaves the process any more.
#pragma once

#include <boost/asio/detail/concurrency_hint.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/kube/transport/api_client.h"
#include "test/sim/base/net.h"
#include "test/sim/product/process.h"

namespace tranche::sim {

class SimPlatform : public kube::Platform {
 public:
  // All references outlive it.
  SimPlatform(Process& process, ApiEndpoint& api) : process_(process), api_(api) {}

  // All that is posted comes from the thread that runs the loop.
  int ConcurrencyHint() const override { return BOOST_ASIO_CONCURRENCY_HINT_UNSAFE; }
  std::unique_ptr<kube::LoopRunner> RunnerOf(boost::asio::io_context& context) override;
  std::unique_ptr<kube::ApiClient> ClientOf(boost::asio::io_context& context,
                                            kube::StopSignal& stop, kube::LoopRunner& runner,
                                            const kube::Options& options) override;
  uint64_t Seed() override { return process_.draws().Next(); }
  std::string HostName() override;

 private:
  Process& process_;
  ApiEndpoint& api_;
};

}  // namespace tranche::sim
