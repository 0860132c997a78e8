#include "scheduler/ui/assets.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace tranche::ui {
namespace THIS_FILE {

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

TEST(AssetsTest, ServesEveryFileThatThePageAndItsCodeName) {
  std::set<std::string> named = FilesNamedIn(Body(""), R"re((?:src|href)="([\w.]+)")re");
  named.merge(FilesNamedIn(Body("app.js"), R"re(new Worker\(["'`]([\w.]+)["'`])re"));
  for (const char* file : {"app.js", "worker.js", "style.css", "icon.svg", "licences.txt"}) {
    EXPECT_TRUE(named.contains(file)) << file;
  }
  for (const std::string& file : named) EXPECT_FALSE(Body(file).empty()) << file;
}

TEST(AssetsTest, CarriesTheLicencesOfWhatIsBundled) {
  EXPECT_NE(Body("licences.txt").find("MIT"), std::string_view::npos);
  EXPECT_NE(Body("app.js").find("uplot"), std::string_view::npos);
}

TEST(AssetsTest, IsBundledIntoOneModule) {
  EXPECT_TRUE(FilesNamedIn(Body("app.js"), R"re(from ?["']\./([\w.]+)["'])re").empty());
  EXPECT_TRUE(FilesNamedIn(Body("style.css"), R"re((@import|url\())re").empty());
}

TEST(AssetsTest, TellsBrowsersTheTypesThatModulesAndStyleSheetsNeed) {
  struct Row {
    const char* path;
    const char* type;
  };
  for (const Row& row :
       {Row{"/ui/", "text/html; charset=utf-8"},
        Row{"/ui/app.js", "text/javascript; charset=utf-8"},
        Row{"/ui/style.css", "text/css; charset=utf-8"}, Row{"/ui/icon.svg", "image/svg+xml"},
        Row{"/ui/licences.txt", "text/plain; charset=utf-8"}}) {
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
  for (const char* file : {"", "app.js", "worker.js", "style.css"}) {
    // The name of SVG's elements is no place to load from.
    const std::set<std::string> hosts = FilesNamedIn(Body(file), R"re((https?://[\w.]+))re");
    for (const std::string& host : hosts) EXPECT_EQ(host, "http://www.w3.org") << file;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::ui
