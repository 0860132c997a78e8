#include "policy/declared_object.h"

#include "fmt/format.h"

namespace tranche {
namespace {

constexpr std::string_view kApiVersion = "tranche.dev/v1alpha1";

void ExpectText(const Field& field, std::string_view wanted) {
  if (field.Text() != wanted) field.Fail(fmt::format("\"{}\"", wanted));
}

void ReadUid(const Field& field, std::string& uid) {
  if (const auto text = field.Text()) {
    uid = *text;
  } else {
    field.Fail("text");
  }
}

}  // namespace

absl::Status ReadDeclared(std::string_view kind, std::string_view json, SpecPresence spec,
                          ObjectHead& head, const Field::Reader& read_spec) {
  const std::string_view name_rule = head.name.empty() ? "a name" : "";
  const std::string_view spec_rule = spec == SpecPresence::kRequired ? "an object" : "";
  return ReadJson(kind, json, [&](const Field& root) {
    root.ReadSomeMembers(
        {{"apiVersion", [](const Field& version) { ExpectText(version, kApiVersion); }},
         {"kind", [&](const Field& found) { ExpectText(found, kind); }},
         {"metadata",
          [&](const Field& metadata) {
            metadata.ReadSomeMembers(
                {{"name", [&](const Field& name) { ReadName(name, head.name); }, name_rule},
                 {"uid", [&](const Field& uid) { ReadUid(uid, head.uid); }}});
          },
          name_rule.empty() ? "" : "an object with a name"},
         {"spec", read_spec, spec_rule}});
  });
}

}  // namespace tranche
