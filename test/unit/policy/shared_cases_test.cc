// The objects under test/cases/custom-resources, which a real API server is asked about as well:
// both must take and refuse the same.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "policy/decode.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/wire/json/json.h"
#include "test/fakes/places.h"

namespace tranche {
namespace THIS_FILE {

namespace fs = std::filesystem;

std::vector<fs::path> FilesOf(const std::string& folder) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(fakes::SourceFolder()) / "test/cases/custom-resources" / folder;
  for (const auto& entry : fs::directory_iterator(root)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string Read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

absl::Status CheckFile(const std::string& text) {
  const auto document = embedded::Document::Parse(text);
  if (!document.ok()) return document.status();
  wire::Array documents;
  EXPECT_EQ(document->root().get(documents), simdjson::SUCCESS);
  EXPECT_EQ(documents.size(), 1U);
  wire::Object object;
  EXPECT_EQ(documents.at(0).get(object), simdjson::SUCCESS);
  const auto kind = wire::FindText(object, "kind").value_or("");
  return CheckObject(kind, simdjson::minify(object), GpuPolicy{});
}

// "spec.lines" stands in "spec.lines[0].model: ..." and not in "spec.linesman: ...".
bool NamesPath(std::string_view message, const std::string& path) {
  for (size_t at = message.find(path); at != std::string_view::npos;
       at = message.find(path, at + 1)) {
    const bool begins = at == 0 || message.substr(at - 2, 2) == "; ";
    const std::string_view rest = message.substr(at + path.size());
    if (begins && !rest.empty() &&
        std::string_view(":.[").find(rest[0]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

TEST(SharedCasesTest, WhatTheServerTakesIsTaken) {
  const std::vector<fs::path> files = FilesOf("valid");
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    const absl::Status status = CheckFile(Read(file));
    EXPECT_TRUE(status.ok()) << file << ": " << status;
  }
}

TEST(SharedCasesTest, WhatTheServerRefusesIsRefusedForTheSameField) {
  constexpr std::string_view kMark = "# expect: ";
  size_t checked = 0;
  for (const char* folder : {"invalid", "invalid-strict"}) {
    for (const fs::path& file : FilesOf(folder)) {
      const std::string text = Read(file);
      ASSERT_EQ(text.substr(0, kMark.size()), kMark) << file;
      const std::string path = text.substr(kMark.size(), text.find('\n') - kMark.size());
      const absl::Status status = CheckFile(text);
      EXPECT_FALSE(status.ok()) << file;
      EXPECT_TRUE(NamesPath(std::string(status.message()), path))
          << file << ": expected " << path << ", found " << status;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0U);
}

}  // namespace THIS_FILE
}  // namespace tranche
