// Other interleavings of the threads of unit tests: around every lock that our own code takes or
// gives back a thread may step aside, as a seed decides.
//
// TRANCHE_YIELDS=SEED switches it on. Each thread draws from a stream of its own, by seed and the
// order in which threads first lock something: what a kernel decides stays the kernel's, so that a
// seed makes a run of a kind and does not replay one.
//
// The linker puts these functions between our code and the libraries' (--wrap).
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

uint64_t SeedOfProcess() {
  const char* text = std::getenv("TRANCHE_YIELDS");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

uint64_t Mix(uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t NewStream(uint64_t seed) {
  static std::atomic<uint64_t> threads = 0;
  return Mix(seed) ^ Mix(threads.fetch_add(1, std::memory_order_relaxed) + 1);
}

// Mostly goes on, often lets others run, seldom sleeps for longer than a short critical section.
void StepAside() {
  static const uint64_t seed = SeedOfProcess();
  if (seed == 0) return;
  thread_local uint64_t state = NewStream(seed);
  const uint64_t draw = Mix(state += 0x9e3779b97f4a7c15ULL);
  if (draw % 64 == 0) {
    const timespec pause{0, static_cast<long>((draw >> 8) % 300'000)};
    nanosleep(&pause, nullptr);
  } else if (draw % 8 == 0) {
    for (uint64_t i = 0; i <= (draw >> 8) % 4; ++i) sched_yield();
  }
}

}  // namespace

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  StepAside();
  return __real_pthread_mutex_lock(mutex);
}

int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int result = __real_pthread_mutex_unlock(mutex);
  StepAside();
  return result;
}

// absl::Mutex::Lock and Unlock; ABSL_MUTEX begins their mangled names.
#define JOIN3(a, b, c) a##b##c
#define NAME(prefix, class_name, suffix) JOIN3(prefix, class_name, suffix)
#define REAL(suffix) NAME(__real_, ABSL_MUTEX, suffix)
#define WRAP(suffix) NAME(__wrap_, ABSL_MUTEX, suffix)

void REAL(4LockEv)(void* mutex);
void WRAP(4LockEv)(void* mutex) {
  StepAside();
  REAL(4LockEv)(mutex);
}

void REAL(6UnlockEv)(void* mutex);
void WRAP(6UnlockEv)(void* mutex) {
  REAL(6UnlockEv)(mutex);
  StepAside();
}

}  // extern "C"
