#include "test/sim/base/history.h"

#include <iterator>

namespace tranche::sim {
namespace {

// FNV-1a.
uint64_t Fold(uint64_t digest, std::string_view bytes) {
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
  return (digest ^ 0xff) * 1099511628211ULL;
}

}  // namespace

const char* NameOf(Happening::Kind kind) {
  constexpr const char* kNames[] = {"written", "refused", "granted", "released", "asked",
                                    "started", "ended",   "leads",   "lost",     "promised",
                                    "doubted", "fault",   "quiet"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Happening::Kind::kQuiet) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

void History::Add(Happening happening) {
  happening.at = loop_.now();
  ++size_;
  digest_ = Fold(digest_, NameOf(happening.kind));
  digest_ = Fold(digest_, std::to_string(happening.at.count()));
  digest_ = Fold(digest_, std::to_string(happening.number));
  digest_ = Fold(digest_, happening.who);
  digest_ = Fold(digest_, happening.resource);
  digest_ = Fold(digest_, happening.key);
  digest_ = Fold(digest_, happening.text);
  if (!happening.after.is_null()) digest_ = Fold(digest_, happening.after.text());
  for (const Listener& listener : listeners_) listener(happening);
}

}  // namespace tranche::sim
