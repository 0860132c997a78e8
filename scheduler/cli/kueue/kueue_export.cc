#include "scheduler/cli/kueue/kueue_export.h"

#include <ostream>

#include "scheduler/cli/kueue/kueue_objects.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/terminal.h"

namespace tranche {

int ExportKueue(const std::vector<std::string>& files, std::ostream& out, std::ostream& err) {
  kueue::Declared declared;
  for (const std::string& file : files) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(file);
    const absl::Status read = manifest.ok() ? kueue::Read(*manifest, declared) : manifest.status();
    if (read.ok()) continue;
    err << "tranche: " << Harmless(std::string(read.message())) << '\n';
    return manifest.ok() ? kExitNo : kExitUsage;
  }
  if (declared.quotas.empty()) {
    err << "tranche: expected a GPUQuota in the files, found none\n";
    return kExitNo;
  }
  out << kueue::YamlOf(kueue::Export(declared));
  return kExitDone;
}

}  // namespace tranche
