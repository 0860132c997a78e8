// Objects of lists and watches. Where one begins and ends is found by brackets and strings alone,
// and the parser sees each by itself: an object that cannot be read costs one object.
//
// Thread rule: one thread at a time; elements die with the next Read or Rest. Source:
// kube-client-protocol section 6.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/wire/json/lenient_parser.h"

namespace tranche::kube {

// An object out of a stream.
struct JsonPiece {
  std::string_view text;  // dies with the call that hands it over
  bool whole = true;      // false: it is over kMaxBytes, and this is only its beginning
};
using PieceReader = std::function<absl::Status(const JsonPiece&)>;

// Whether the bytes of JSON that were read lead into a string, whose brackets mean nothing.
class StringState {
 public:
  bool inside() const { return inside_; }
  void Begin() { inside_ = true; }
  // The next byte inside.
  void Take(char byte) {
    inside_ = escaped_ || byte != '"';
    escaped_ = !escaped_ && byte == '\\';
  }

 private:
  bool inside_ = false;
  bool escaped_ = false;
};

// One object at a time, fed with bytes as they arrive.
class ObjectCut {
 public:
  static constexpr std::size_t kMaxBytes = 64 * 1024 * 1024;
  static constexpr std::size_t kKeptBytes = 64 * 1024;  // of one that is over it

  // An object has begun and not ended.
  bool under_way() const { return depth_ > 0; }
  // Reads on in `bytes` from `at`, which is an opening brace unless an object is under way; moves
  // `at` behind what was read and calls `read` when the object ends. Errors: what `read` returned.
  // Cost: linear in the bytes; an object is copied only when it spans calls.
  absl::Status Feed(std::string_view bytes, std::size_t& at, const PieceReader& read);

 private:
  std::size_t FindEnd(std::string_view bytes, std::size_t start);
  void Keep(std::string_view piece);

  std::string partial_;  // the object so far, from earlier calls
  bool over_ = false;    // it is over kMaxBytes
  std::size_t depth_ = 0;
  StringState string_;
};

// The body of a watch, however its bytes arrive. Frames follow JSON values, not chunks or lines: a
// piece may hold half a value or several, with any white space between them. Anything but an object
// at the top level is an error, and after an error the stream stays broken: skipping would lose an
// event without trace.
class WatchFrames {
 public:
  // Calls `frame` with each object that `bytes` completes, in order. Errors: InvalidArgument for
  // bytes between objects, or what `frame` returned; every later call returns the same error.
  // Cost: linear in the bytes; a frame is copied only when it spans calls.
  absl::Status Feed(std::string_view bytes, const PieceReader& frame);

 private:
  absl::Status broken_;
  ObjectCut object_;
};

// The body of a list, however its bytes arrive: its items one by one, and the rest of it. Memory:
// one item and the rest, never a page.
class ListItems {
 public:
  static constexpr std::size_t kMaxRestBytes = 1024 * 1024;

  // Calls `read` with each item that `bytes` completes. Errors: InvalidArgument for what is no JSON
  // object, ResourceExhausted for a rest over kMaxRestBytes, or what `read` returned; every later
  // call returns the same.
  absl::Status Feed(std::string_view bytes, const PieceReader& read);
  // A list has begun, and nothing is wrong with it so far.
  bool under_way() const { return broken_.ok() && !rest_.empty(); }
  // The body with an empty list of items; JSON once all bytes of a whole body were fed.
  const std::string& rest() const { return rest_; }

 private:
  absl::Status FeedRest(char byte);
  void NoteStructure(char byte);

  absl::Status broken_;
  ObjectCut item_;
  std::string rest_;
  std::size_t depth_ = 0;
  std::size_t string_start_ = 0;  // in rest_, of the last string of the outermost object
  StringState string_;
  bool at_items_ = false;  // the member that is read is "items"
  bool in_items_ = false;
};

// What stands for an object that cannot be read: {"metadata":{name, namespace, uid,
// resourceVersion, deletionTimestamp},"spec":{nodeName},"status":{phase}}, as far as `object`,
// which may be cut off, says it in plain texts.
std::string OutlineOf(std::string_view object);
// The same for a watch event: {"type":...,"object":OUTLINE}.
std::string OutlineOfEvent(std::string_view event);

struct ReadObject {
  wire::Element object;
  std::string problem;  // why it is an outline alone (see OutlineOf); "": it is the whole object
};

class ObjectReader {
 public:
  // Over it an object is not parsed: etcd takes 1.5 MiB, which are 9 MiB of JSON at worst.
  static constexpr std::size_t kMaxParsedBytes = 16 * 1024 * 1024;
  using Outliner = std::string (*)(std::string_view);

  // Errors: InvalidArgument where not even an outline can be read.
  absl::StatusOr<ReadObject> Read(const JsonPiece& piece, Outliner outline);
  // Gives back what a large object took.
  void Rest() { parser_.Rest(); }

 private:
  wire::LenientParser parser_;
};

}  // namespace tranche::kube
