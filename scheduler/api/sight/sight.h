// The namespaces that somebody may see who may not see all.
//
// A plain value.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace tranche {

struct Sight {
  std::set<std::string, std::less<>> namespaces;

  bool Sees(std::string_view ns) const { return namespaces.contains(ns); }
};

}  // namespace tranche
