#include "test/sim/product/clocks.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "test/sim/base/wall.h"

namespace tranche::sim {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMillion = 1'000'000;

const MachineClocks* read_now = nullptr;

int64_t Nanos(SimTime time) { return time.count() * 1'000; }

}  // namespace

MachineClocks::MachineClocks(const Loop& loop, std::chrono::seconds running)
    : loop_(loop),
      since_(loop.now()),
      boot_at_since_(running.count() * kSecond),
      began_(boot_at_since_ - Nanos(since_)) {}

int64_t MachineClocks::Boot() const {
  const int64_t passed = Nanos(loop_.now() - since_);
  return boot_at_since_ + passed + passed / kMillion * parts_;
}

int64_t MachineClocks::Wall() const {
  const std::chrono::nanoseconds began = kWorldBegan.time_since_epoch();
  return began.count() + (Boot() - began_) + wall_ahead_;
}

void MachineClocks::Drift(int parts) {
  boot_at_since_ = Boot();
  since_ = loop_.now();
  parts_ = parts;
}

void MachineClocks::Mend() {
  Drift(0);
  wall_ahead_ = Nanos(loop_.now()) - (Boot() - began_);
}

SimTime MachineClocks::Until(int64_t boot) const {
  const int64_t left = boot - Boot();
  if (left <= 0) return SimTime{0};
  // Rounded up, and one more for what the division of Boot leaves away.
  return SimTime{left / 1'000 * kMillion / (kMillion + parts_) + 2};
}

ClockScope::ClockScope(const MachineClocks& clocks) : before_(read_now) { read_now = &clocks; }
ClockScope::~ClockScope() { read_now = before_; }

}  // namespace tranche::sim

// In front of the C library's, for all of this program.
extern "C" int clock_gettime(clockid_t clock, struct timespec* out) noexcept {
  using tranche::sim::read_now;
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const bool boot = clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
                    clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE;
  if (read_now == nullptr || (!wall && !boot)) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  }
  const int64_t nanos = wall ? read_now->Wall() : read_now->Boot();
  out->tv_sec = nanos / tranche::sim::kSecond;
  out->tv_nsec = nanos % tranche::sim::kSecond;
  return 0;
}

// A sparse file has the size that is asked for and fills no pages, which every start of a replica
// would write and every end give back. Nobody here fills the file system for real.
extern "C" int posix_fallocate(int file, off_t offset, off_t length) {
  return ftruncate(file, offset + length) == 0 ? 0 : errno;
}

// What event loops poll here has no news from the kernel: nobody has a socket, and whoever wakes a
// loop does so by a step. What would wait is the kernel's.
extern "C" int epoll_wait(int poll, struct epoll_event* events, int most, int timeout) {
  if (timeout == 0 && tranche::sim::read_now != nullptr) return 0;
  return static_cast<int>(syscall(SYS_epoll_pwait, poll, events, most, timeout, nullptr, 0));
}

// Nor has the kernel anything to be told of them: a loop that is woken beside its polls rearms what
// would wake it.
extern "C" int epoll_ctl(int poll, int operation, int file, struct epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_MOD && tranche::sim::read_now != nullptr) return 0;
  return static_cast<int>(syscall(SYS_epoll_ctl, poll, operation, file, event));
}

// The memory that a process of the simulator gives back now and then is that of the whole program,
// which takes it again at once.
extern "C" int malloc_trim(size_t) noexcept { return 0; }

// Event loops are to look at the clock themselves instead of being told by the kernel's.
extern "C" int timerfd_create(int, int) noexcept {
  errno = ENOSYS;
  return -1;
}
