// Users whose pods get GPUs by resource claims: of templates (whole cards, MIG instances, several
// that agree in their NUMA node, the first of several ways), and claims that several pods share.
//
// Fault kUsers: a claim is deleted while it is in use, a template while its pods wait.
//
// Source: dra sections 2 and 6.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

struct ClaimWorkOptions {
  std::vector<std::string> namespaces;
  std::string scheduler;  // one process allocates; two over one pool would give devices twice
  std::vector<std::string> profiles;
  int64_t most_cards = 1;
  int64_t mean_runtime_ms = 10'000;
  SimTime mean_gap = std::chrono::seconds(3);
};

class ClaimWork {
 public:
  enum class Mood : uint8_t { kGoesOn, kWaits, kIsDone };
  // `mood`: whether pods are to come now, later, or no more.
  ClaimWork(Loop& loop, Script& script, const FaultPlan& faults, ApiServer& api,
            ClaimWorkOptions options, std::function<Mood()> mood);

  void Start();
  void Quiet() { quiet_ = true; }

 private:
  void Arrive();
  void Meddle();
  void MakeTemplates(const std::string& ns);
  void MakePod(const std::string& ns, Json claim, Draws& draws);
  void MakeShared(const std::string& ns, Draws& draws);
  // Users delete what they made when it was there for long enough.
  void DeleteLater(const char* resource, const std::string& ns, const std::string& name,
                   SimTime after);
  void Post(const char* resource, Json object);
  void Delete(const char* resource, const std::string& ns, const std::string& name);

  Loop& loop_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  const ClaimWorkOptions options_;
  const std::function<Mood()> mood_;
  const Actor self_;
  std::vector<std::string> templates_;
  int64_t names_ = 0;
  bool quiet_ = false;
};

}  // namespace tranche::sim
