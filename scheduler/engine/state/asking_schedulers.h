// The schedulers that ask us about their pods: the one of the configuration, and those whose pods
// came with a question or carry a record that we wrote. Several may work on one cluster. A pod that
// another scheduler could not place is not ours to make room for: that one would never put it where
// we cleared, nor be told of it.
//
// Externally synchronised. Cost: a comparison for each name, of which there are one or two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tranche {

class AskingSchedulers {
 public:
  // `configured`: a name that is known to ask before it did; empty: none.
  explicit AskingSchedulers(std::string configured) {
    if (!configured.empty()) names_.push_back(std::move(configured));
  }

  // Names are as PodRequest::scheduler has them: empty for the cluster's default one.
  bool Asks(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  // True: it was not known before.
  bool Note(const std::string& name) {
    if (Asks(name) || names_.size() >= kMost) return false;
    names_.push_back(name);
    return true;
  }

 private:
  // Names come from outside; nobody runs as many schedulers.
  static constexpr std::size_t kMost = 64;
  std::vector<std::string> names_;
};

}  // namespace tranche
