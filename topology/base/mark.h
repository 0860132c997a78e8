// Marks on rare branches: a test that reaches one is known to have reached it.
//
// TRANCHE_MARK(lost_bind_answer) stands where a branch is taken so seldom that tests might miss it.
// A mark is only ever written: no code of the product reads one, so nothing can depend on it. The
// test binaries write the names of reached marks to a file when they end, and test/marks compares
// them with the sources. Any thread. Cost: one relaxed load after the first time; a mark does not
// belong into a loop over nodes all the same.
// Source: the coverage probes of FoundationDB (CODE_PROBE).
#pragma once

#include <atomic>

namespace tranche {

class CoverageMark {
 public:
  // `name`: a literal, since it is kept.
  constexpr explicit CoverageMark(const char* name) : name_(name) {}
  CoverageMark(const CoverageMark&) = delete;
  CoverageMark& operator=(const CoverageMark&) = delete;

  void Reach() {
    if (reached_.load(std::memory_order_relaxed)) return;
    if (reached_.exchange(true, std::memory_order_relaxed)) return;
    next_ = last_.load(std::memory_order_relaxed);
    while (!last_.compare_exchange_weak(next_, this, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
  }

  // The marks reached so far, newest first: `for (mark = Last(); mark; mark = mark->next())`.
  static const CoverageMark* Last() { return last_.load(std::memory_order_acquire); }
  const CoverageMark* next() const { return next_; }
  const char* name() const { return name_; }

 private:
  static inline constinit std::atomic<CoverageMark*> last_ = nullptr;

  const char* const name_;
  std::atomic<bool> reached_ = false;
  CoverageMark* next_ = nullptr;
};

}  // namespace tranche

// One mark for each name in the whole tree; test/marks checks that.
#define TRANCHE_MARK(name)                                        \
  do {                                                            \
    static constinit ::tranche::CoverageMark mark_reached(#name); \
    mark_reached.Reach();                                         \
  } while (false)
