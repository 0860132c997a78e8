// Does a device meet what a class and a request ask of it?
//
// One thread at a time, since expressions are compiled on first use.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/cel.h"
#include "scheduler/dra/model.h"

namespace tranche::dra {

// The classes of the cluster and the selectors met so far.
class Selectors {
 public:
  Selectors() = default;
  explicit Selectors(std::span<const DeviceClass> classes);

  void PutClass(DeviceClass device_class);
  void RemoveClass(const std::string& name);
  // nullptr: no such class.
  const DeviceClass* FindClass(const std::string& name) const;
  const std::map<std::string, DeviceClass>& classes() const { return classes_; }  // by name
  // The class an extended resource ("nvidia.com/gpu") stands for: of several the one created last,
  // then the first by name. nullptr: none. Source: kubernetes/api, DeviceClass.
  const DeviceClass* ClassOfResource(std::string_view resource) const;

  // Selectors of the class, then of the choice; the first that is not "yes" is the answer.
  // Requires: the choice's class is there.
  Verdict Matches(const RequestChoice& choice, const Device& device, std::string_view driver);

 private:
  std::map<std::string, DeviceClass> classes_;
  Expressions expressions_;
};

}  // namespace tranche::dra
