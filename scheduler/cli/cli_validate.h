// tranche validate: objects of tranche.dev in files, checked as the server would, with no server.
//
// Each object alone, then all of them together: cycles and names given twice are mistakes. Notes
// say what is well written and yet without the full effect; what an object refers to may well be in
// the cluster, so that its absence from the files is such a note.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace tranche {

// Files hold YAML (several documents) or JSON, single objects or Lists. Objects of other groups are
// counted; Namespaces and PriorityClasses among them serve to find conflicts.
// Returns the exit code: 0 all good, 1 an object is invalid, 2 a file cannot be read.
int ValidateFiles(const std::vector<std::string>& files, bool json, std::ostream& out,
                  std::ostream& err);

}  // namespace tranche
