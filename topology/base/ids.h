// Names and identifiers, each its own type so that two of them cannot be swapped.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tranche {

template <typename Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string text) : text_(std::move(text)) {}
  explicit Id(std::string_view text) : text_(text) {}
  explicit Id(const char* text) : text_(text) {}

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend auto operator<=>(const Id& left, const Id& right) = default;

 private:
  std::string text_;
};

using NodeName = Id<struct NodeNameTag>;
using NodeUid = Id<struct NodeUidTag>;
using PodUid = Id<struct PodUidTag>;
using GpuUuid = Id<struct GpuUuidTag>;

// namespace/name of a pod: a key for people. Identity is the PodUid.
struct PodName {
  std::string ns;
  std::string name;
  std::string str() const { return ns + "/" + name; }
  friend auto operator<=>(const PodName& left, const PodName& right) = default;
};

}  // namespace tranche

template <typename Tag>
struct std::hash<tranche::Id<Tag>> {
  std::size_t operator()(const tranche::Id<Tag>& id) const noexcept {
    return std::hash<std::string>()(id.str());
  }
};
