#include "scheduler/dra/selectors.h"

#include <utility>

namespace tranche::dra {

Selectors::Selectors(std::span<const DeviceClass> classes) {
  for (const DeviceClass& each : classes) PutClass(each);
}

void Selectors::PutClass(DeviceClass device_class) {
  std::string name = device_class.name;
  classes_.insert_or_assign(std::move(name), std::move(device_class));
}

void Selectors::RemoveClass(const std::string& name) { classes_.erase(name); }

const DeviceClass* Selectors::FindClass(const std::string& name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : &found->second;
}

const DeviceClass* Selectors::ClassOfResource(std::string_view resource) const {
  const DeviceClass* latest = nullptr;
  for (const auto& [name, each] : classes_) {
    if (each.extended_resource.empty() || each.extended_resource != resource) continue;
    if (latest == nullptr || each.created > latest->created) latest = &each;
  }
  return latest;
}

Verdict Selectors::Matches(const RequestChoice& choice, const Device& device,
                           std::string_view driver) {
  const DeviceClass& device_class = classes_.at(choice.device_class);
  for (const std::vector<std::string>* list : {&device_class.selectors, &choice.selectors}) {
    for (const std::string& text : *list) {
      Verdict verdict = expressions_.Get(text).Matches(device, driver);
      if (verdict.match != Match::kYes) return verdict;
    }
  }
  return {Match::kYes, {}};
}

}  // namespace tranche::dra
