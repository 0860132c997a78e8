// `tranche top` on a terminal: what the server says, anew every few seconds,
// until a key or a signal ends it.
//
// Thread rule: one thread calls; questions to the server are asked on another
// one.
#pragma once

#include <chrono>
#include <functional>

#include "absl/status/status.h"
#include "scheduler/cli/screen/top_view.h"

namespace tranche {

// Asks the server; what is to be done to the view with its answer. Called on a
// thread of its own.
using TopQuestion = std::function<std::function<void(TopView&)>()>;

// Errors: FailedPrecondition where the terminal cannot be taken over. A signal
// that ends it ends the process, after the terminal was given back.
absl::Status StayOnTop(TopView& view, const TopQuestion& ask, std::chrono::milliseconds pace,
                       bool colour);

}  // namespace tranche
