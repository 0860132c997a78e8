// One to three replicas of Tranche in the simulated world, with the Service in front of them: each
// is the real product (host, controllers, election, object intake, ledger, API) whose threads are
// steps of the loop, whose clocks are the simulated ones of its machine, and whose ledger lies on a
// disk that can fail. All replicas share one volume.
//
// Faults drawn here: kCrash, kPause, kClock, kDisk. What happens is told to the history: kStarted,
// kEnded, kLeads, kLost, kPromised, kFault.
//
// Thread rule: one thread. One of them at a time in a process: SQLite has one default disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/base/script.h"

namespace tranche::sim {

struct ReplicasOptions {
  uint64_t seed = 1;
  int replicas = 1;
  bool elects = true;      // false, with one replica alone: it leads by itself
  bool ledger = true;      // a ledger is kept, on the volume
  bool fail_open = false;  // a ledger that cannot be trusted closes nothing
  // How many events may wait for the ledger; nullopt: as many as usual.
  std::optional<std::size_t> ledger_queue;
  bool bits_flip = false;         // power cuts may leave a ledger that cannot be trusted
  bool hami = false;              // ResourceQuotas of HAMi are kept
  std::string reservation_image;  // not empty: placeholders hold shared cards of stock nodes
  // For the volume, a folder of nobody else, best in memory; what lies in it is removed.
  std::string folder;
  std::string log_level = "off";
};

class Replicas : public TrancheEndpoint {
 public:
  // All references outlive this.
  Replicas(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiEndpoint& api,
           ReplicasOptions options);
  ~Replicas() override;

  void Start();
  // No more crashes, pauses, faults of clocks and disks; what is dead comes back, clocks are true.
  void Quiet();

  // To the replica that said it was ready when it was last asked; none: code 0, not sent.
  void Send(Actor from, Request request, SimTime timeout, std::function<void(Reply)> done) override;

  // GET of the leader's API, at once and without any cost in simulated time; nullopt: nobody leads
  // and is ready, or the answer is no JSON. "/api/v1/pods", "/api/v1/explain/ns/name", ...
  std::optional<Json> Ask(const std::string& target);
  // What replicas that live found wrong in their books goes into the history.
  void TellDoubts();
  // The ledger's file, if one is kept; one that was set aside as damaged comes after it. May be
  // read beside its writer.
  std::vector<std::string> LedgerFiles() const;

  // A replica ends as by a kill, and comes back some seconds later; for tests.
  void Crash(int replica);
  // Which one leads and is ready to answer; nullopt: none.
  std::optional<int> leader() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::sim
