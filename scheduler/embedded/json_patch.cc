#include "scheduler/embedded/json_patch.h"

#include <utility>

#include "topology/base/check.h"

namespace tranche::embedded {
namespace {

void AppendKey(std::string_view key, bool& first, std::string& out) {
  if (!first) out += ',';
  first = false;
  wire::AppendQuoted(out, key);
  out += ':';
}

}  // namespace

std::size_t JsonPatch::IndexOf(std::string_view key) const {
  std::size_t index = 0;
  while (index < members_.size() && members_[index].key != key) ++index;
  return index;
}

JsonPatch& JsonPatch::At(Path path) {
  TRANCHE_CHECK_GT(path.size(), 0);
  JsonPatch* patch = this;
  for (const std::string_view key : path) {
    TRANCHE_CHECK_EQ(patch->kind_, Kind::kNested);
    const std::size_t index = patch->IndexOf(key);
    if (index == patch->members_.size()) patch->members_.push_back({std::string(key), {}});
    patch = &patch->members_[index].patch;
  }
  return *patch;
}

void JsonPatch::Set(Path path, std::string json) {
  JsonPatch& patch = At(path);
  patch.kind_ = Kind::kValue;
  patch.value_ = std::move(json);
}

void JsonPatch::SetText(Path path, std::string_view text) {
  std::string json;
  wire::AppendQuoted(json, text);
  Set(path, std::move(json));
}

void JsonPatch::Remove(Path path) { At(path).kind_ = Kind::kRemoved; }

bool JsonPatch::SetsAnything() const {
  if (kind_ != Kind::kNested) return kind_ == Kind::kValue;
  for (const Member& member : members_) {
    if (member.patch.SetsAnything()) return true;
  }
  return false;
}

void JsonPatch::Write(wire::Element document, std::string& out) const { WriteValue(document, out); }

void JsonPatch::WriteMember(std::size_t index, std::optional<wire::Element> base, bool& first,
                            std::string& out) const {
  const Member& member = members_[index];
  if (member.patch.kind_ == Kind::kRemoved) return;
  if (!base && !member.patch.SetsAnything()) return;
  AppendKey(member.key, first, out);
  member.patch.WriteValue(base, out);
}

void JsonPatch::WriteValue(std::optional<wire::Element> base, std::string& out) const {
  if (kind_ == Kind::kValue) {
    out += value_;
    return;
  }
  wire::Object object;
  const bool has_object = base && base->get(object) == simdjson::SUCCESS;
  if (base && !has_object && !SetsAnything()) {
    out += simdjson::minify(*base);
    return;
  }
  std::vector<bool> met(members_.size(), false);
  bool first = true;
  out += '{';
  if (has_object) {
    for (const auto field : object) {
      const std::size_t index = IndexOf(field.key);
      if (index == members_.size()) {
        AppendKey(field.key, first, out);
        out += simdjson::minify(field.value);
      } else if (!met[index]) {
        met[index] = true;
        WriteMember(index, wire::Find(object, field.key), first, out);
      }
    }
  }
  for (std::size_t index = 0; index < members_.size(); ++index) {
    if (!met[index]) WriteMember(index, std::nullopt, first, out);
  }
  out += '}';
}

}  // namespace tranche::embedded
