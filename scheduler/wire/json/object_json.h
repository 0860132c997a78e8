// Parts of Kubernetes objects that we write: pod conditions and events.
//
// Pure functions. Source: kube-client-protocol section 13, the validation of events.k8s.io/v1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/wire/json/json_value.h"
#include "topology/base/units.h"

namespace tranche::wire {

struct ConditionText {
  std::string_view type;
  bool holds = true;
  std::string_view reason;   // empty: left out
  std::string_view message;  // empty: left out
  Instant when;
};

// A condition of a pod.
Json ConditionJson(const ConditionText& condition);
std::string EncodeCondition(const ConditionText& condition);

struct EventText {
  // The object it is about; `ns` empty: cluster scope.
  std::string_view kind, ns, name, uid;
  bool warning = false;
  std::string_view reason, action, note;  // the note is cut at 1 KiB
  Instant when;
  std::string_view instance;  // which of us says so, at most 128 bytes are kept
  uint64_t serial = 0;        // no two events of one instance and moment share it
};

// Where the API wants the event to be, and its name there.
struct EventPlace {
  std::string ns;
  std::string name;
};

EventPlace PlaceOf(const EventText& event);
// The event as an object of events.k8s.io/v1.
std::string EncodeEvent(const EventText& event);

}  // namespace tranche::wire
