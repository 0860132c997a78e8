// What Linux tells about this process, read from /proc at every scrape.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tranche::metrics {

struct ProcessFacts {
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  double cpu_seconds = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
  double start_seconds = 0;  // since the Unix epoch
};

// nullopt where /proc cannot be read.
std::optional<ProcessFacts> ReadProcessFacts();

// The fields of one /proc/PID/stat line that the facts need, in kernel units.
struct ProcessStat {
  int64_t user_ticks = 0;
  int64_t system_ticks = 0;
  int64_t start_ticks = 0;  // since boot
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};
// nullopt when the line is not of that form. The process name may hold spaces and parentheses.
// Source: proc(5).
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

}  // namespace tranche::metrics
