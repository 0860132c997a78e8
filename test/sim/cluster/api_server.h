// A Kubernetes API server as its clients meet it: reads, watches and writes over lossy wires, with
// two servers behind one address of which the second may lag.
//
// Tranche speaks to it in bytes (ApiEndpoint). The rest of the world writes by `Do`, whose wires
// are slow and never lose anything: its clients would only try again.
//
// Faults: kApiServer (429, 5xx before and after the write, servers that stop, lag or are away,
// histories compacted early); kNetwork by way of Network.
//
// Source: kube-client-protocol sections 3 to 12.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/admission.h"
#include "test/sim/cluster/answer.h"
#include "test/sim/cluster/lists.h"
#include "test/sim/cluster/network.h"
#include "test/sim/cluster/pod_writes.h"
#include "test/sim/cluster/store.h"
#include "test/sim/cluster/watches.h"
#include "test/sim/cluster/writes.h"

namespace tranche::sim {

class ApiServer : public ApiEndpoint {
 public:
  ApiServer(Loop& loop, History& history, Script& script, const FaultPlan& faults, Network& network,
            uint64_t seed);

  void Send(Actor from, Request request, SimTime timeout, std::function<void(Reply)> done) override;
  uint64_t Watch(Actor from, std::string target, std::function<void(std::string_view)> bytes,
                 std::function<void(int code, std::string body)> ended) override;
  void CloseWatch(uint64_t watch) override;

  // A write of somebody of the world; `done` runs as a step of `from`. Null: nobody listens.
  void Do(Actor from, Write write, std::function<void(const Answer&)> done = nullptr);
  // The same at once, without webhook: what was there when the world began.
  Answer Put(const std::string& who, std::string_view resource, Json object);

  Store& store() { return store_; }
  PodWrites& pods() { return pods_; }
  Admission& admission() { return admission_; }
  Lists& lists() { return lists_; }
  // `hear` is told the resource and key of each object that a request reads alone, in that step.
  void OnRead(std::function<void(std::string_view resource, const std::string& key)> hear) {
    hear_read_ = std::move(hear);
  }
  // With kApiServer: policies of others are slow to let Bindings and evictions pass, and answers
  // to reads of one object are slow to arrive.
  void set_policies_hang(bool hang) { policies_hang_ = hang; }
  void set_reads_dawdle(bool dawdle) { reads_dawdle_ = dawdle; }
  // Faults of the server itself, and compaction, which is none.
  void Start();
  void Quiet();

 private:
  using Done = std::function<void(const Answer&)>;
  void Serve(Actor from, const Request& request, const std::function<void(Reply)>& done);
  Reply Read(const ApiPath& path, const Query& query);
  void Perform(Write write, Done done);
  void CreatePod(Write write, Done done);
  // What the webhook made of a new pod goes on to be filled in, checked and stored.
  void FillPod(const std::shared_ptr<Write>& asked, const Json& patch, const Done& done);
  void ChangePod(Write write, Done done);
  Answer PerformNow(const Write& write);
  // How long a policy keeps the write that it has let pass; nullopt: no time.
  std::optional<SimTime> HangOf(const Write& write);
  void OpenWatch(uint64_t id, Actor from, const std::string& target,
                 std::function<void(std::string_view)> bytes,
                 std::function<void(int code, std::string body)> ended);
  void Disturb();
  // A policy of somebody else's refuses Bindings of a namespace for a while.
  void RefuseBindings();
  void Compact();

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  Network& network_;
  Draws draws_;
  const Actor self_;
  Store store_;
  Writes writes_;
  PodWrites pods_;
  Lists lists_;
  Watches watches_;
  Admission admission_;
  bool quiet_ = false;
  int server_ = 0;  // where new watches go
  SimTime away_until_{0};
  std::string unbindable_;  // a namespace, until then
  SimTime unbindable_until_{0};
  bool policies_hang_ = false;
  bool reads_dawdle_ = false;
  std::function<void(std::string_view resource, const std::string& key)> hear_read_;
  uint64_t watch_ids_ = 0;
  std::map<uint64_t, uint64_t> watch_of_;  // what clients hold -> what is open
};

// "/path?query" taken apart and decoded.
std::string SplitTarget(const std::string& target, Query& query);

}  // namespace tranche::sim
