// Reads members of JSON objects and remembers the first one that has a wrong type.
//
// Absent and null members read as "nothing"; a member of another type than asked for is an error.
// After an error every read still answers (with "nothing"), so that decoders stay straight lines
// and ask ok() once. `where` is the path of the parent, for the error text: "spec", "metadata".
// One thread at a time.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "policy/selector.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

struct IntegerRange {
  int64_t low = 0;
  int64_t high = 0;
};

class FieldReader;

// The objects of a list, walked once, as `for (const Object item : reader.Objects(list, where))`.
// The first element that is none is an error of the reader and ends the walk.
class ObjectList {
 public:
  ObjectList(FieldReader& reader, std::optional<Array> list, std::string_view where)
      : reader_(reader), list_(list), where_(where) {}

  class Iterator {
   public:
    explicit Iterator(const ObjectList& objects);
    Object operator*() const { return *object_; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return !object_; }

   private:
    void Read();

    const ObjectList& objects_;
    std::optional<Array::iterator> at_;  // nullopt: there is no list
    std::optional<Object> object_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return std::default_sentinel; }

 private:
  FieldReader& reader_;
  const std::optional<Array> list_;
  const std::string_view where_;
};

class FieldReader {
 public:
  std::optional<Object> ReadObject(Object parent, std::string_view key, std::string_view where);
  std::optional<Array> ReadArray(Object parent, std::string_view key, std::string_view where);
  // The text; empty when absent.
  std::string_view ReadText(Object parent, std::string_view key, std::string_view where);
  std::optional<bool> ReadBool(Object parent, std::string_view key, std::string_view where);
  // The integer; nullopt when absent. Outside `range` is an error.
  std::optional<int64_t> ReadInteger(Object parent, std::string_view key, std::string_view where,
                                     IntegerRange range);

  // A map of texts; null values are left out, of equal keys the last counts.
  Labels ReadTexts(Object parent, std::string_view key, std::string_view where);

  // `where` is the path of the list's elements; nullopt is a list without any.
  ObjectList Objects(std::optional<Array> list, std::string_view where) {
    return {*this, list, where};
  }

  // The element itself as object or text; `where` is its own path.
  std::optional<Object> AsObject(Element element, std::string_view where);
  std::optional<std::string_view> AsText(Element element, std::string_view where);

  // Notes an error found by the caller, unless there is one already.
  void Fail(const std::string& message);

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  template <typename Value>
  std::optional<Value> ReadAs(Object parent, std::string_view key, std::string_view where,
                              std::string_view expected);

  absl::Status status_;
};

// What an element is, for error texts: `text "abc"`, `number 3`, `array`.
std::string DescribeElement(Element element);

}  // namespace tranche::wire
