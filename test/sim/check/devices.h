// No device is given twice: what the records of bound pods say of a node's GPUs never exceeds what
// the node has, at any Binding of ours; and what kubelets and agents gave out does not either. An
// agent serves the pod whose kubelet asks it, not another one of ours.
//
// Its model: of each node the pods that hold something and the devices their Bindings named. A
// share adds milli and MiB to its card, 1000 and the card's memory are the most; MIG instances of
// a card are disjoint ranges; a card is cut or whole. What kubelets count (nvidia.com/gpu and
// nvidia.com/mig-*) stays within what the node allocates; that alone is known of MIG instances
// where the record says `counts`, and of what others placed, once that was there long enough.
#pragma once

#include <map>
#include <string>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class DeviceChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;

 private:
  struct Card {
    int64_t milli = 0;
    int64_t mib = 0;
    bool cut = false;                   // MIG instances
    bool whole = false;                 // shares
    std::map<int64_t, int64_t> ranges;  // start -> end of instances
  };
  // What a node's HAMi register says of its cards' memory.
  struct Register {
    std::string text;
    std::map<std::string, int64_t> cards;
  };
  // The most that a card of a node had lately, by what the node said.
  struct Memory {
    std::map<std::string, int64_t> registered;  // by device
    int64_t labelled = 0;
    int64_t Of(const std::string& device) const;
  };
  struct Given {
    std::string uid;
    std::string node;
    std::vector<RecordDevice> devices;
  };
  void Bound(const PodLife& pod, SimTime now);
  void Counted(const PodLife& pod, SimTime now);
  void Granted(const Happening& happening);
  void AsRecorded(const Happening& happening);
  bool IsOfAgent(const std::string& node) const;
  void NotStarted(const Happening& happening);
  // What adding the device to the card would break; empty: nothing.
  static std::string Add(Card& card, const RecordDevice& device, int64_t memory);
  Memory MemoryOf(const std::string& node, SimTime now);

  // Until then a leader without its ledger may have read an earlier pod's record as it is now.
  SimTime unmetered_until_{0};
  bool led_ = false;                           // somebody did
  std::map<std::string, SimTime> made_;        // nodes, the last time
  std::map<std::string, Register> registers_;  // by node, as they were read last
  std::map<std::string, Given> given_;         // by kubelets and agents: pod's key -> what it has
};

}  // namespace tranche::sim::check
