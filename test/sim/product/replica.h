// One life of one replica: everything scheduler/server/runtime.h puts together but the sockets, in
// the same order, on a process of the simulator.
//
// Thread rule: one thread. Start, Stop and Answer in steps of the supervisor or of the process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "quota/book_fault.h"
#include "scheduler/http/server.h"
#include "scheduler/kube/cluster.h"
#include "scheduler/kube/leadership/elector.h"
#include "scheduler/kube/transport/server_clock.h"
#include "scheduler/server/leader.h"
#include "scheduler/server/standby_buffer.h"
#include "test/sim/base/history.h"
#include "test/sim/base/net.h"
#include "test/sim/product/platform.h"
#include "test/sim/product/process.h"
#include "test/sim/product/volume.h"

namespace tranche::sim {

class Replica {
 public:
  // The process ends in this step, by itself: nothing of it runs any more, and whoever hears this
  // destroys it later.
  using Ended = std::function<void(const std::string& why)>;

  // `volume` null: no ledger is kept. All references outlive it.
  Replica(Loop& loop, History& history, ApiEndpoint& api, Volume* volume, const ServeConfig& config,
          const MachineClocks& clocks, std::string name, Draws draws, Ended ended);
  // As by a kill.
  ~Replica();

  void Start();
  Process& process() { return process_; }
  // Of the leadership it has, or had when it noticed last; 0: none.
  int64_t epoch() const { return leading_ ? services_->epoch() : 0; }
  // The process is at its end, from within: as by a kill.
  void Die(const std::string& why);
  // It dies as soon as its ledger says that the beginning of a use is on disk: before the Binding.
  void set_dies_when_told(bool dies) { dies_when_told_ = dies; }
  // By the routes of the product, as they are now. In a step of the process.
  void Answer(http::Request request, http::Responder respond);
  // The same at once, whoever's step it is; nullopt: the answer takes time.
  std::optional<http::Response> Ask(const std::string& target);
  // What its books had wrong so far, and was not told before. At its end it does so itself.
  void TellDoubts();

 private:
  void StartAlone();
  void StartElecting();
  kube::Options ClientOptions();
  LeaderHooks MakeHooks();
  // Both on the way to lead.
  void TakeOver(int64_t epoch);
  void TakeLedger(int64_t epoch, std::chrono::steady_clock::time_point end);
  void Lead(OpenedLedger opened, int64_t epoch);
  void BeginToLead();
  absl::StatusOr<OpenedLedger> Open(int64_t epoch);
  void Tell(Happening::Kind kind, uint64_t number, std::string text);
  LedgerWorks MakeLedgerWorks();

  History& history_;
  Volume* const volume_;
  const ServeConfig& config_;
  const Ended ended_;
  Process process_;
  SimPlatform platform_;
  const std::shared_ptr<kube::ServerClock> server_clock_ = std::make_shared<kube::ServerClock>();
  ProcessTimers timers_{process_};
  Chores chores_{process_};
  Chores reader_{process_};
  metrics::Metrics metrics_;
  kube::Grant grant_;
  StandbyBuffer buffer_;
  Router standby_;
  std::unique_ptr<LeaderServices> services_;
  bool refreshed_ = false;
  bool leading_ = false;
  bool dies_when_told_ = false;
  std::array<int64_t, kBookFaultKinds> doubts_told_{};
  std::string unmetered_;  // why there is no ledger, where there is to be one
  std::unique_ptr<kube::Cluster> cluster_;
  std::unique_ptr<kube::Elector> elector_;
};

// "GET", "/api/v1/pods?ns=a" and a body, as the server's handlers get them; nullopt: no server
// would take it.
std::optional<http::Request> ReadRequest(const Request& request);

}  // namespace tranche::sim
