// Where the objects of one resource go once they are decoded.
//
// Thread rule: the reading thread. A call that hands over returns when the engine has seen it.
#pragma once

#include <functional>
#include <string>

#include "scheduler/wire/json/json.h"

namespace tranche::kube {

// The identity of an object: `key` is namespace/name or name, `uid` dies with the object.
struct Identity {
  std::string key;
  std::string uid;
};

struct Decoded {
  std::function<void()> deliver;  // hands the facts over; empty: there is nothing to hand over
  std::string problem;            // why the object could not be read in full; "" when it could
};

class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // `known`: facts of an earlier version of the same uid were handed over and still stand.
  virtual Decoded Decode(wire::Element object, const Identity& identity, bool known) = 0;
  // The object could not be read and `outline` (see OutlineOf) is all there is of it. What was
  // handed over before stands, unless the sink knows better.
  virtual Decoded DecodeOutline(wire::Element /*outline*/, const Identity& /*identity*/,
                                const std::string& problem) {
    return {nullptr, problem};
  }
  virtual void Gone(const Identity& identity) = 0;
  // A single event or a whole list has been handed over.
  virtual void Commit() {}
  // Something was heard from the server.
  virtual void Heard() {}
  // A whole list has been handed over: objects that came and went before it are in no event.
  virtual void Listed() {}
};

}  // namespace tranche::kube
