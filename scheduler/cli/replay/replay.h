// `tranche replay`: the past that a ledger's file tells of, lived again as things were and with
// edits.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/terminal.h"

namespace tranche::replay {

struct ReplayOptions {
  std::string path;
  std::string since = "30d";  // before the newest moment ("30d", "12h"), or a time of RFC 3339
  std::optional<std::string> until;     // RFC 3339; nullopt: the newest moment
  std::optional<std::string> edits;     // the body of edits (output/manifest.h)
  std::optional<std::string> strategy;  // "Fragmentation", "BestFit", "Spread"
  bool json = false;
};

// Returns the exit code: 0 done, 1 the ledger is bad, 2 usage; what is wrong is one line on `err`,
// and how far it has come where somebody watches.
int Replay(const ReplayOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tranche::replay
