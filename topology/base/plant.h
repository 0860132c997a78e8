// Faults that can be planted one at a time, to show that tests find them.
//
// TRANCHE_PLANTED(lost_bind_is_no_bind) stands where a right condition can be turned into a wrong
// one: `if (reserved || TRANCHE_PLANTED(...))`. It is the constant false in every build but one
// that was configured with -DTRANCHE_PLANTS=ON, which is for tests alone; there it is true while
// the environment's TRANCHE_PLANT has that name when the line is first reached. It comes last in
// its condition, so that it is reached only where it would change something: a run that does not
// reach it cannot find it. test/plants has the list, and what finds each.
//
// Any thread.
#pragma once

#ifdef TRANCHE_PLANTS

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace tranche {

class Plant {
 public:
  // `name`: a literal, since it is kept.
  explicit Plant(const char* name) : name_(name), stands_(IsPlanted(name)), next_(last_.load()) {
    while (!last_.compare_exchange_weak(next_, this)) {
    }
  }
  Plant(const Plant&) = delete;
  Plant& operator=(const Plant&) = delete;

  bool Reach() {
    reached_.store(true, std::memory_order_relaxed);
    return stands_;
  }
  // Those that were reached since this was asked last.
  static std::set<std::string> TakeReached() {
    std::set<std::string> names;
    for (Plant* plant = last_.load(); plant != nullptr; plant = plant->next_) {
      if (plant->reached_.exchange(false)) names.insert(plant->name_);
    }
    return names;
  }

 private:
  static bool IsPlanted(const char* name) {
    const char* planted = std::getenv("TRANCHE_PLANT");  // NOLINT(concurrency-mt-unsafe): never set
    return planted != nullptr && std::strcmp(planted, name) == 0;
  }
  static inline constinit std::atomic<Plant*> last_ = nullptr;

  const char* const name_;
  const bool stands_;
  std::atomic<bool> reached_ = false;
  Plant* next_;
};

}  // namespace tranche

#define TRANCHE_PLANTED(name)             \
  ([] {                                   \
    static ::tranche::Plant plant(#name); \
    return plant.Reach();                 \
  }())

#else

#define TRANCHE_PLANTED(name) false

#endif
