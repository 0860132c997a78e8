// Label selectors as people and programs write them in one line, as of `kubectl get -l`:
//
//   team=a,stage!=dev,tier in (gold, silver),zone notin (b),gpu,!retired,generation>3
//
// Pure functions; any thread; cost O(text). Source: k8s.io/apimachinery/pkg/labels, Parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/selector.h"

namespace tranche {

// Longer ones are refused: nobody writes them, and each pod of a list is held against all of it.
inline constexpr std::size_t kMostSelectorBytes = std::size_t{16} * 1024;

// May this be the key of a label, "team" or "example.com/team"; its value?
bool IsLabelKey(std::string_view text);
bool IsLabelValue(std::string_view text);

// A selector of one line. It knows two operators more than those of objects.
struct LineSelector {
  // The label is a whole number that is greater, or less.
  struct Bound {
    std::string key;
    int64_t number = 0;
    bool greater = true;
  };
  LabelSelector terms;
  std::vector<Bound> bounds;

  bool Matches(const Labels& labels) const;
};

// All requirements of the text; the empty one has none and so matches everything.
// Errors: InvalidArgument with what was expected and found, and at which byte.
absl::StatusOr<LineSelector> ParseLabelSelector(std::string_view text);

}  // namespace tranche
