#include "scheduler/embedded/text_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"

namespace tranche::embedded {
namespace {

constexpr std::size_t kChunkBytes = 1024 * 1024;

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::size_t max_bytes,
                                         std::size_t padding) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a file, found a folder", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::ErrnoToStatus(errno == 0 ? ENOENT : errno,
                               fmt::format("{}: expected a readable file", path));
  }
  const absl::Status too_large = absl::InvalidArgumentError(
      fmt::format("{}: expected at most {} bytes, found more", path, max_bytes));
  std::string text;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error) {
    if (size > max_bytes) return too_large;
    text.reserve(static_cast<std::size_t>(size) + kChunkBytes + padding);
  }
  while (file) {
    const std::size_t have = text.size();
    text.resize(have + kChunkBytes);
    file.read(&text[have], static_cast<std::streamsize>(kChunkBytes));
    text.resize(have + static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_bytes) return too_large;
  }
  if (file.bad()) {
    return absl::DataLossError(fmt::format("{}: expected a readable file, found an error", path));
  }
  text.reserve(text.size() + padding);
  return text;
}

}  // namespace tranche::embedded
