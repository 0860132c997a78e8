#include "scheduler/dra/extended.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche::dra {

const DeviceClass* ServingClass(std::string_view resource, const Selectors& classes) {
  if (!resource.starts_with(kImplicitPrefix)) return classes.ClassOfResource(resource);
  return classes.FindClass(std::string(resource.substr(kImplicitPrefix.size())));
}

std::optional<Request> RequestOf(const ExtendedAsk& ask, std::size_t container, std::size_t place,
                                 const Selectors& classes) {
  const DeviceClass* serving = ServingClass(ask.resource, classes);
  if (serving == nullptr || ask.count < 1) return std::nullopt;
  Request request;
  request.name = fmt::format("container-{}-request-{}", container, place);
  RequestChoice& choice = request.choices.emplace_back();
  choice.device_class = serving->name;
  choice.count = ask.count;
  return request;
}

std::vector<ExtendedAsk> NotServed(std::span<const ExtendedAsk> asks,
                                   const std::optional<ExtendedStatus>& status) {
  std::vector<ExtendedAsk> rest;
  for (const ExtendedAsk& ask : asks) {
    const bool served =
        status && std::ranges::any_of(status->mappings, [&ask](const auto& mapping) {
          return mapping.container == ask.container && mapping.resource == ask.resource;
        });
    if (!served) rest.push_back(ask);
  }
  return rest;
}

}  // namespace tranche::dra
