// Writes annotations of one node, for programs that watch nothing.
//
// Thread rule: one thread, which each call blocks for at most the options' bind_timeout.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "scheduler/kube/transport/options.h"
#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"

namespace tranche::kube {

class Annotator {
 public:
  explicit Annotator(Options options);
  ~Annotator();

  // Sets these and leaves the others; an empty text removes the annotation. Sent again only when
  // throttled.
  WriteResult Annotate(const NodeName& node, const std::map<std::string, std::string>& annotations);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::kube
