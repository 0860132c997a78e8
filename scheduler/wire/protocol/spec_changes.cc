#include "scheduler/wire/protocol/spec_changes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche::wire {
namespace {

constexpr const char* kUnnamed = "its spec";

std::string Shown(const Json* value) {
  if (value == nullptr) return "(none)";
  const std::string text = Dump(*value);
  const std::string_view cut = CutAt(text, kMostValueBytes);
  return cut.size() == text.size() ? text : std::string(cut) + "...";
}

class Comparison {
 public:
  // Null: it has no such field.
  void Compare(const std::string& path, const Json* before, const Json* after) {
    if (before != nullptr && after != nullptr && *before == *after) return;
    if (before != nullptr && after != nullptr && before->is_object() && after->is_object()) {
      return CompareObjects(path, *before, *after);
    }
    const bool lists = before != nullptr && after != nullptr && before->is_array() &&
                       after->is_array() && before->size() == after->size();
    if (lists) {
      for (std::size_t at = 0; at < before->size(); ++at) {
        Compare(fmt::format("{}.{}", path, at), &(*before)[at], &(*after)[at]);
      }
      return;
    }
    ++found_;
    if (found_ > kMostFieldsSaid) return;
    if (!text_.empty()) text_ += "; ";
    text_ += fmt::format("{} {} -> {}", path, Shown(before), Shown(after));
  }
  std::string Text() const {
    if (found_ <= kMostFieldsSaid) return text_;
    return fmt::format("{}; and {} more", text_, found_ - kMostFieldsSaid);
  }

 private:
  void CompareObjects(const std::string& path, const Json& before, const Json& after) {
    std::set<std::string> names;
    for (const Json* const side : {&before, &after}) {
      for (const auto& [name, value] : side->items()) names.insert(name);
    }
    const auto find = [](const Json& object, const std::string& name) {
      const auto found = object.find(name);
      return found == object.end() ? nullptr : &*found;
    };
    for (const std::string& name : names) {
      const std::string below = path.empty() ? name : fmt::format("{}.{}", path, name);
      Compare(below, find(before, name), find(after, name));
    }
  }

  std::string text_;
  std::size_t found_ = 0;
};

// Unlike Json, which keeps the order of the text.
using Sorted = nlohmann::json;

Sorted ReadSorted(std::string_view text) {
  return Sorted::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string TextOf(const Sorted& value) {
  return value.dump(kCompact, ' ', /*ensure_ascii=*/false, Sorted::error_handler_t::replace);
}

}  // namespace

std::string OrderedJson(std::string_view json) {
  const Sorted read = ReadSorted(json);
  return read.is_discarded() ? "" : TextOf(read);
}

std::string SpecOf(std::string_view object) {
  const Sorted read = ReadSorted(object);
  return read.is_object() && read.contains("spec") ? TextOf(read.at("spec")) : "";
}

std::string SpecChanges(std::string_view before, std::string_view after) {
  if (before == after) return "";
  if (before.size() + after.size() > kMostComparedBytes) return kUnnamed;
  const auto read = [](std::string_view text) {
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  const Json old = read(before);
  const Json now = read(after);
  if (!old.is_object() || !now.is_object()) return kUnnamed;
  Comparison comparison;
  comparison.Compare("", &old, &now);
  return comparison.Text();
}

}  // namespace tranche::wire
