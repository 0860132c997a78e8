// Names and identifiers, each its own type so that two of them cannot be swapped.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
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

// The key of a namespaced object of Kubernetes, as client-go's types.NamespacedName.
struct NamespacedName {
  std::string ns;
  std::string name;
  std::string str() const { return ns + "/" + name; }
  friend auto operator<=>(const NamespacedName& left, const NamespacedName& right) = default;
};
// Of a pod: a key for people. Identity is the PodUid.
using PodName = NamespacedName;

// The place of a thing in the arrays that describe things of its kind. It converts to std::size_t
// alone, so it indexes any array at no cost, but neither a number nor another kind's Index becomes
// one by itself.
template <typename Tag, typename Number = uint32_t>
class Index {
 public:
  constexpr Index() = default;
  template <std::integral From>
  constexpr explicit Index(From number) : number_(static_cast<Number>(number)) {}

  constexpr operator std::size_t() const { return static_cast<std::size_t>(number_); }
  constexpr Number number() const { return number_; }
  constexpr Index& operator++() {
    ++number_;
    return *this;
  }
  friend constexpr auto operator<=>(Index left, Index right) = default;
  template <typename OtherTag, typename Other>
  requires(!std::same_as<Tag, OtherTag>) friend constexpr bool operator==(
      Index, Index<OtherTag, Other>) = delete;

 private:
  Number number_ = 0;
};

}  // namespace tranche

template <typename Tag>
struct std::hash<tranche::Id<Tag>> {
  std::size_t operator()(const tranche::Id<Tag>& id) const noexcept {
    return std::hash<std::string>()(id.str());
  }
};

template <typename Tag, typename Number>
struct std::hash<tranche::Index<Tag, Number>> {
  std::size_t operator()(tranche::Index<Tag, Number> index) const noexcept {
    return std::hash<Number>()(index.number());
  }
};
