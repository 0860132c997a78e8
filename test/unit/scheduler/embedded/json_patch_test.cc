#include "scheduler/embedded/json_patch.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tranche::embedded {
namespace THIS_FILE {

TEST(JsonPatch, ChangesWhatItNamesAndCopiesTheRest) {
  struct Case {
    const char* what;
    const char* document;
    std::function<void(JsonPatch&)> edit;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"no change: the same document, minified", R"({ "a" : [1, 2.5, "x\ny"], "b": null })",
       [](JsonPatch&) {}, R"({"a":[1,2.5,"x\ny"],"b":null})"},
      {"a member is replaced where it stands", R"({"a":1,"b":2,"c":3})",
       [](JsonPatch& p) { p.Set({"b"}, "[9]"); }, R"({"a":1,"b":[9],"c":3})"},
      {"a new member comes last", R"({"a":1})", [](JsonPatch& p) { p.SetText({"b"}, "q\"q"); },
       R"({"a":1,"b":"q\"q"})"},
      {"objects on the way are made", R"({"a":1})",
       [](JsonPatch& p) {
         p.Set({"m", "n", "x"}, "1");
         p.Set({"m", "n", "y"}, "2");
       },
       R"({"a":1,"m":{"n":{"x":1,"y":2}}})"},
      {"null on the way becomes an object", R"({"m":null})",
       [](JsonPatch& p) {
         p.Set({"m", "x"}, "1");
       },
       R"({"m":{"x":1}})"},
      {"another type on the way becomes an object", R"({"m":[1]})",
       [](JsonPatch& p) {
         p.Set({"m", "x"}, "1");
       },
       R"({"m":{"x":1}})"},
      {"a removed member is gone", R"({"m":{"x":1,"y":2}})",
       [](JsonPatch& p) {
         p.Remove({"m", "x"});
       },
       R"({"m":{"y":2}})"},
      {"removing from nothing makes nothing", R"({"a":1})",
       [](JsonPatch& p) {
         p.Remove({"m", "x"});
       },
       R"({"a":1})"},
      {"removing below another type leaves it", R"({"m":"text"})",
       [](JsonPatch& p) {
         p.Remove({"m", "x"});
       },
       R"({"m":"text"})"},
      {"of duplicate keys on the path the last wins", R"({"m":{"x":1},"a":0,"m":{"y":2}})",
       [](JsonPatch& p) {
         p.Set({"m", "z"}, "3");
       },
       R"({"m":{"y":2,"z":3},"a":0})"},
      {"the later of two edits holds", R"({})",
       [](JsonPatch& p) {
         p.Set({"a"}, "1");
         p.Set({"a"}, "2");
       },
       R"({"a":2})"},
      {"keys need no escaping by the caller", R"({"a.b/c":{"k\"":1}})",
       [](JsonPatch& p) {
         p.Set({"a.b/c", "l\""}, "2");
       },
       R"({"a.b/c":{"k\"":1,"l\"":2}})"},
  };
  for (const Case& c : cases) {
    wire::Parser parser;
    const auto document = parser.Parse(c.document);
    ASSERT_TRUE(document.ok()) << c.what;
    JsonPatch patch;
    c.edit(patch);
    std::string out;
    patch.Write(*document, out);
    EXPECT_EQ(out, c.expected) << c.what;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
