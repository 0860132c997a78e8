#include "scheduler/kube/transport/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace tranche::kube {
namespace {

constexpr std::size_t kMaxBytes = 1024 * 1024;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status Unreadable(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(
      fmt::format("expected a readable file, found {} at {}", why, path));
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return Unreadable(path, std::generic_category().message(errno));
  std::string text(kMaxBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return Unreadable(path, "a read error");
  if (text.size() > kMaxBytes) return Unreadable(path, "more than 1 MiB");
  text.shrink_to_fit();
  return text;
}

std::string Trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace tranche::kube
