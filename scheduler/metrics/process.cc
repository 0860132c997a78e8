#include "scheduler/metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

namespace tranche::metrics {
namespace {

// Seconds since the Unix epoch at which the machine booted.
std::optional<double> BootSeconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    if (word == "btime") {
      int64_t seconds = 0;
      if (file >> seconds) return static_cast<double>(seconds);
      return std::nullopt;
    }
  }
  return std::nullopt;
}

int64_t CountOpenFds() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return 0;
  int64_t count = 0;
  for (const std::filesystem::directory_iterator end; entries != end; entries.increment(error)) {
    if (error) break;
    ++count;
  }
  return count - 1;  // the one this listing holds
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view line) {
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream rest{std::string(line.substr(name_end + 1))};
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  // Field 3 of the line (the state) is fields[0].
  constexpr std::size_t kFirst = 3;
  constexpr std::size_t kUserTime = 14, kSystemTime = 15, kStartTime = 22, kVirtual = 23,
                        kResident = 24;
  if (fields.size() <= kResident - kFirst) return std::nullopt;
  ProcessStat stat;
  const auto read = [&fields](std::size_t field, int64_t& value) {
    std::istringstream text(fields[field - kFirst]);
    return static_cast<bool>(text >> value);
  };
  if (!read(kUserTime, stat.user_ticks) || !read(kSystemTime, stat.system_ticks) ||
      !read(kStartTime, stat.start_ticks) || !read(kVirtual, stat.virtual_bytes) ||
      !read(kResident, stat.resident_pages)) {
    return std::nullopt;
  }
  return stat;
}

std::optional<ProcessFacts> ReadProcessFacts() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::optional<ProcessStat> stat = ParseProcessStat(line);
  const std::optional<double> boot = BootSeconds();
  if (!stat || !boot) return std::nullopt;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessFacts facts;
  facts.virtual_bytes = stat->virtual_bytes;
  facts.resident_bytes = stat->resident_pages * sysconf(_SC_PAGESIZE);
  facts.cpu_seconds = static_cast<double>(stat->user_ticks + stat->system_ticks) / ticks_per_second;
  facts.start_seconds = *boot + static_cast<double>(stat->start_ticks) / ticks_per_second;
  facts.open_fds = CountOpenFds();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = static_cast<int64_t>(limit.rlim_cur);
  return facts;
}

}  // namespace tranche::metrics
