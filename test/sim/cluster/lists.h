// Lists and single reads: pages from a snapshot, versions that were asked for, 410 of pages whose
// snapshot is gone.
//
// Source: kube-client-protocol section 5.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/cluster/resources.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

using Query = std::map<std::string, std::string, std::less<>>;  // decoded

class Lists {
 public:
  Lists(const Loop& loop, const Store& store) : loop_(loop), store_(store) {}

  // At most so many objects on a page, whatever is asked for.
  void set_page_size(std::size_t size) { page_size_ = size; }
  // Pages that were begun cannot be continued.
  void ForgetSnapshots() { snapshots_.clear(); }

  Reply List(const ResourceType& type, const std::string& ns, const Query& query);

 private:
  struct Snapshot {
    uint64_t version;
    SimTime made;
    std::vector<StoredPtr> rest;  // backwards
  };
  Reply Page(const ResourceType& type, Snapshot snapshot, std::size_t limit);

  const Loop& loop_;
  const Store& store_;
  std::size_t page_size_ = 500;
  uint64_t tokens_ = 0;
  std::map<std::string, Snapshot> snapshots_;  // by continue token
};

// The object as lists and kube-scheduler show it: without apiVersion and kind.
std::string BareText(const Stored& stored, const ResourceType& type);

}  // namespace tranche::sim
