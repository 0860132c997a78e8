#include "bench/fill/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

namespace tranche::bench::fill {

absl::Status RunAll(std::size_t count, int jobs,
                    const std::function<absl::Status(std::size_t)>& work) {
  const bool shows = isatty(STDERR_FILENO) != 0;
  std::mutex mutex;
  std::size_t next = 0;
  std::size_t done = 0;
  absl::Status failed;
  const auto run = [&] {
    std::unique_lock lock(mutex);
    while (next < count && failed.ok()) {
      const std::size_t mine = next++;
      lock.unlock();
      const absl::Status status = work(mine);
      lock.lock();
      if (failed.ok()) failed = status;
      ++done;
      if (shows) std::fprintf(stderr, "\r%zu of %zu runs", done, count);
    }
  };
  const std::size_t wanted = jobs > 0
                                 ? static_cast<std::size_t>(jobs)
                                 : std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  {
    std::vector<std::jthread> threads;
    while (threads.size() + 1 < std::min(wanted, count)) threads.emplace_back(run);
    run();
  }
  if (shows) std::fprintf(stderr, "\r\x1b[K");
  return failed;
}

}  // namespace tranche::bench::fill
