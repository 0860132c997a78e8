#include "scheduler/ui/assets.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace tranche::ui {
namespace {

std::set<std::string> FilesNamedIn(std::string_view body, const char* pattern) {
  std::set<std::string> files;
  const std::string text(body);
  const std::regex reference(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), reference), end; match != end;
       ++match) {
    files.insert((*match)[1].str());
  }
  return files;
}

std::string_view Body(const std::string& file) {
  const Asset* const asset = FindAsset("/ui/" + file);
  return asset == nullptr ? std::string_view() : asset->body;
}

TEST(AssetsTest, ServesEveryFileThatThePageAndItsModulesName) {
  std::set<std::string> waiting = FilesNamedIn(Body(""), R"re((?:src|href)="([\w.]+)")re");
  ASSERT_TRUE(waiting.contains("app.js"));
  ASSERT_TRUE(waiting.contains("style.css"));
  std::set<std::string> seen;
  while (!waiting.empty()) {
    const std::string file = waiting.extract(waiting.begin()).value();
    if (!seen.insert(file).second) continue;
    EXPECT_FALSE(Body(file).empty()) << file;
    waiting.merge(FilesNamedIn(Body(file), R"re(from '\./([\w.]+)')re"));
  }
  EXPECT_TRUE(seen.contains("fleet.js"));
}

TEST(AssetsTest, TellsBrowsersTheTypesThatModulesAndStyleSheetsNeed) {
  struct Row {
    const char* path;
    const char* type;
  };
  for (const Row& row :
       {Row{"/ui/", "text/html; charset=utf-8"},
        Row{"/ui/app.js", "text/javascript; charset=utf-8"},
        Row{"/ui/style.css", "text/css; charset=utf-8"}, Row{"/ui/icon.svg", "image/svg+xml"}}) {
    const Asset* const asset = FindAsset(row.path);
    ASSERT_NE(asset, nullptr) << row.path;
    EXPECT_EQ(asset->content_type, row.type);
  }
}

TEST(AssetsTest, GivesDifferentFilesDifferentQuotedTags) {
  const std::string_view page = FindAsset("/ui/")->etag;
  const std::string_view style = FindAsset("/ui/style.css")->etag;
  EXPECT_NE(page, style);
  EXPECT_EQ(page.front(), '"');
  EXPECT_EQ(page.back(), '"');
}

TEST(AssetsTest, KnowsExactPathsOnly) {
  for (const char* path : {"/ui/nothing.js", "/ui/index.html", "/ui/../app.js", "app.js", ""}) {
    EXPECT_EQ(FindAsset(path), nullptr) << path;
  }
}

TEST(AssetsTest, LoadsNothingFromOtherHosts) {
  for (const char* file : {"", "app.js", "api.js", "style.css"}) {
    EXPECT_TRUE(FilesNamedIn(Body(file), R"re((https?://[\w.]+))re").empty()) << file;
  }
}

}  // namespace
}  // namespace tranche::ui
