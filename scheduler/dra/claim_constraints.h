// The constraints of a claim over the devices picked for it so far.
//
// One thread at a time; cost: constraints times picked devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/dra/model.h"

namespace tranche::dra {

class ClaimConstraints {
 public:
  enum class Answer : uint8_t {
    kNo,       // and nothing was added
    kYes,      // added
    kUnknown,  // added; a value is a list, of which we cannot tell
  };

  // The claim must outlive this.
  explicit ClaimConstraints(const Claim& claim);
  // Another device for a request; `choice` is the name of its subrequest, empty without one.
  Answer Add(const std::string& request, const std::string& choice, const Device& device);
  // Undoes the last Add that was not refused, which had these names.
  void RemoveLast(const std::string& request, const std::string& choice);

 private:
  static bool Applies(const Constraint& constraint, const std::string& request,
                      const std::string& choice);

  const Claim* claim_;
  std::vector<std::vector<const AttributeValue*>> values_;  // by constraint
};

}  // namespace tranche::dra
