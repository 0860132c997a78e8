// Programs in containers that save their work and say so: tranche.dev/checkpointed-at of their
// pods.
//
// In one world of four some do. Each has a gap of its own between two, which it keeps for most of
// them; now and then it is late, stops, or says a time that is wrong.
//
// Source: scheduler/docs/preemption.md, what is asked of programs; hazards row 47 (words of users).
//
// Thread rule: one thread.
#pragma once

#include <string>

#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"

namespace tranche::sim {

class Programs {
 public:
  Programs(Loop& loop, Script& script, ApiServer& api, uint64_t seed);
  void Start();

 private:
  struct Program {
    std::string key;
    std::string uid;
    SimTime gap{0};
    Draws draws{0};
  };

  void Begin(const Stored& pod);
  void Save(Program program);

  Loop& loop_;
  Script& script_;
  ApiServer& api_;
  Draws draws_;
  const bool some_save_;
  Actor self_{};
};

}  // namespace tranche::sim
