// One key of a ConfigMap, read and replaced: the file mig-parted takes its layouts from.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <string>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"

namespace tranche {

// One key of a ConfigMap. Other keys stay.
struct ConfigMapWrite {
  std::string ns;
  std::string name;
  std::string key;
  std::string text;
  // As ReadConfigMap gave it, a precondition of the write; empty: there is none yet and it is made.
  // Somebody else wrote between: kRejected with 409.
  std::string version;
};

// One key of a ConfigMap as the server has it now.
struct ConfigMapLookup {
  enum class Kind { kFound, kMissing, kFailed };
  Kind kind = Kind::kFailed;
  std::string text;     // kFound; empty where the key is not there
  std::string version;  // kFound
  std::string message;  // kFailed
};

class ConfigMaps {
 public:
  virtual ~ConfigMaps() = default;
  virtual void ReadConfigMap(NamespacedName map, std::string key,
                             std::function<void(ConfigMapLookup)> done) = 0;
  virtual void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
