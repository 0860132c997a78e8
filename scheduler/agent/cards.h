// The GPUs of the node, what closes them, and what those in MIG mode can be cut into.
//
// A GPU that was seen once stays on the list: one that falls off the bus is closed, not forgotten,
// and open again when the driver answers for it.
//
// Thread rule: one thread. NVML is opened for each look and closed after it, as the probe does. A
// look takes as long as the driver does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/turns/look.h"

namespace tranche::agent {

// What is done with the cards.
struct CardOptions {
  bool make_mig = false;  // MIG instances are made
  int slots = 0;          // Card::slots of those not in MIG mode
  bool mps_only = false;  // shared cards are used through MPS alone
};

// Every GPU that answers with its UUID; one whose MIG mode is on has a problem, unless MIG
// instances are made. Of a shared one the memory is what containers can have, and its compute mode
// is set to EXCLUSIVE_PROCESS, for good, where it is used through MPS alone. Errors: those of
// probe::Nvml::Open, Unavailable where the driver cannot say how many there are.
absl::StatusOr<std::vector<Card>> LookAtCards(const std::string& nvml_library,
                                              const CardOptions& options);

class CardList {
 public:
  // Takes a look; an error closes every GPU.
  void Update(const absl::StatusOr<std::vector<Card>>& look);
  // Places for MIG instances that are closed, by card.
  void SetClosed(const std::map<GpuUuid, std::vector<ClosedPlace>>& closed);
  // Closes GPUs that had a critical error, with the reason.
  void Close(const std::map<GpuUuid, std::string>& problems);
  const std::vector<Card>& cards() const { return cards_; }  // in the order they were first seen

 private:
  std::vector<Card> cards_;
};

}  // namespace tranche::agent
