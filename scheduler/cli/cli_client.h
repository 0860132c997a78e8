// The commands that ask a running server: top, explain, whatif, plan, audit, version, ledger
// report.
//
// Each returns the exit code: 0 done, 1 a domain no, 2 usage or configuration; errors are one line
// on `err`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/cli/cli_ask.h"
#include "scheduler/cli/output/manifest.h"

namespace tranche {

struct TopOptions {
  bool advise = false;  // with advice, or in another form than a table the advice alone
  bool once = false;    // also on a terminal, where it stays else and is told anew
};
int ShowTop(const ClientOptions& options, const TopOptions& top, std::ostream& out,
            std::ostream& err);
// Of this program and, unless `client_only`, of the server, which is a mistake where it says
// nothing.
int ShowVersions(const ClientOptions& options, bool client_only, std::ostream& out,
                 std::ostream& err);
// GPU-hours of the server's ledger; `query`: "?from=...&to=...", percent-encoded, or "".
int ShowLedgerReport(const ClientOptions& options, const std::string& query, std::ostream& out,
                     std::ostream& err);
// What the books say otherwise than they should, and what is set aside; a domain no where there is
// something.
int ShowAudit(const ClientOptions& options, std::ostream& out, std::ostream& err);
// `pod`: NAMESPACE/NAME, or a name alone in options.ns or the namespace of the kubeconfig. A pod
// that is not known is a domain no.
enum class ExplainWhat : uint8_t {
  kAnswers,   // nodes by what they answer
  kEachNode,  // a line for each node
  kRank,      // where the pod stands among those that wait
};
int ExplainPod(const ClientOptions& options, const std::string& pod, ExplainWhat what,
               std::ostream& out, std::ostream& err);
// Pods, or what pods are made from. A pod that does not fit is a domain no.
int AskWhatIf(const ClientOptions& options, const absl::StatusOr<Manifest>& manifest,
              std::ostream& out, std::ostream& err);
// What edits would do at once: the objects that come or change, and with `delete`, a list of kinds
// and names.
int AskPlan(const ClientOptions& options, const absl::StatusOr<Manifest>& manifest,
            std::ostream& out, std::ostream& err);

}  // namespace tranche
