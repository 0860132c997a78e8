// What happened in the cluster, as a ledger recorded it, as lines of JSON for programs.
//
// One line says which span it is, one each what an object said from when on, one each what became
// of a pod. With names hashed a line has no more of an object than what is no name: of pods what
// their containers ask for and what Tranche's annotations of amounts say, of nodes what they offer,
// of prices all, of other objects nothing. Pure functions, any thread.
#pragma once

#include <string>

#include "scheduler/cli/ledger/hashed_names.h"
#include "scheduler/ledger/past/recorded.h"

namespace tranche {

// {"kind":"span","from","to","knownFrom"}: of what is asked for it is known from `knownFrom` on;
// null: nothing is.
std::string PastSpanLine(const ledger::RecordedPast& past, Instant from, Instant to);
// {"kind":"change","at","of","name","object"}; object null: it is gone. `names` null: as they are.
std::string PastChangeLine(const ledger::RecordedPast& past, const ledger::RecordedChange& change,
                           const HashedNames* names);
// {"kind":"pod","uid","namespace","name","owner","created","node","started","ended","how",
// "devices","object"}.
std::string PastPodLine(const ledger::RecordedPast& past, const ledger::RecordedPod& pod,
                        const HashedNames* names);

}  // namespace tranche
