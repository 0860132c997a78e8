// Memory of this program: a run gives and takes ten thousand small pieces for each life, on one
// thread. Pieces of one size lie together and are kept in a list of free ones, so both are a few
// instructions. What is larger, and what C code asks for, is the C library's.
//
// Thread rule: any thread; a piece is kept by the thread that frees it.
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

// Sanitizers have an allocator of their own, and are to see every piece.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace tranche::sim {
namespace {

constexpr std::size_t kStep = 16;
constexpr std::size_t kSmall = 1'024;
constexpr std::size_t kWideStep = 256;  // of sizes above it: texts of objects have any
constexpr std::size_t kLargest = 8'192;
constexpr std::size_t kSpan = std::size_t{1} << 16;    // of pieces of one size
constexpr std::size_t kRegion = std::size_t{1} << 36;  // addresses alone, until they are touched

struct Free {
  Free* next;
};

struct Region {
  char* base = nullptr;  // null: there is none
  std::atomic<std::size_t> used{0};
  uint8_t kinds[kRegion / kSpan] = {};  // of each span
};
constexpr std::size_t kKinds = kSmall / kStep + (kLargest - kSmall) / kWideStep + 1;
// Nothing that is constructed may ask for memory before it.
constinit Region region;
constinit std::atomic<bool> reserved{false};
constinit thread_local Free* free_pieces[kKinds] = {};
// What threads that ended had kept. A ledger's start has some of its own, in every life of a
// server.
constinit std::atomic_flag left_taken = ATOMIC_FLAG_INIT;
constinit Free* left_pieces[kKinds] = {};

template <typename Work>
void WithLeft(Work work) {
  while (left_taken.test_and_set(std::memory_order_acquire)) {
  }
  work();
  left_taken.clear(std::memory_order_release);
}

// At the end of a thread.
struct Leaving {
  ~Leaving() {
    WithLeft([] {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        while (Free* const piece = free_pieces[kind]) {
          free_pieces[kind] = piece->next;
          left_pieces[kind] = new (piece) Free{left_pieces[kind]};
        }
      }
    });
  }
};

std::size_t KindOf(std::size_t size) {
  if (size <= kSmall) return size == 0 ? 1 : (size + kStep - 1) / kStep;
  return kSmall / kStep + (size - kSmall + kWideStep - 1) / kWideStep;
}

std::size_t SizeOf(std::size_t kind) {
  return kind <= kSmall / kStep ? kind * kStep : kSmall + (kind - kSmall / kStep) * kWideStep;
}

// The first one to ask comes before main, alone.
void Reserve() {
  reserved = true;
  void* const at = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  region.base = static_cast<char*>(at);
  madvise(at, kRegion, MADV_HUGEPAGE);  // where the kernel has none, it goes on without
}

// A list of pieces that a thread left, else of new ones; null: there is no room for them.
Free* Fill(std::size_t kind) {
  static thread_local Leaving leaving;
  static_cast<void>(leaving);
  Free* left = nullptr;
  WithLeft([&] { left = std::exchange(left_pieces[kind], nullptr); });
  if (left != nullptr) return left;
  if (!reserved) Reserve();
  if (region.base == nullptr) return nullptr;
  const std::size_t number = region.used.fetch_add(1);
  if (number >= kRegion / kSpan) return nullptr;
  region.kinds[number] = static_cast<uint8_t>(kind);
  char* const span = region.base + number * kSpan;
  const std::size_t size = SizeOf(kind);
  Free* first = nullptr;
  for (std::size_t at = kSpan / size; at-- > 0;) first = new (span + at * size) Free{first};
  return first;
}

void* Large(std::size_t size) {
  if (void* const found = std::malloc(size)) return found;
  throw std::bad_alloc();
}

void* Take(std::size_t size) {
  if (size > kLargest) return Large(size);
  const std::size_t kind = KindOf(size);
  Free*& list = free_pieces[kind];
  if (list == nullptr) list = Fill(kind);
  if (list == nullptr) return Large(size);
  Free* const taken = list;
  list = taken->next;
  // The next one to ask finds it in the cache: it may have been free for long.
  __builtin_prefetch(list, /*rw=*/1);
  return taken;
}

void Give(void* piece) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(piece) - reinterpret_cast<std::uintptr_t>(region.base);
  if (region.base == nullptr || offset >= kRegion) return std::free(piece);
  Free*& list = free_pieces[region.kinds[offset / kSpan]];
  list = new (piece) Free{list};
}

}  // namespace
}  // namespace tranche::sim

void* operator new(std::size_t size) { return tranche::sim::Take(size); }
void operator delete(void* piece) noexcept { tranche::sim::Give(piece); }
void operator delete(void* piece, std::size_t) noexcept { tranche::sim::Give(piece); }

#endif
