#include "scheduler/kube/watch/json_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "topology/base/status.h"

namespace tranche::kube {
namespace {

// A buffer grown by one huge object is given back; ordinary ones stay below.
constexpr std::size_t kKeptCapacity = 1024 * 1024;
constexpr std::size_t kMaxOutlinedText = 1024;  // names, uids, versions and times are shorter

bool IsSpace(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

std::size_t SkipSpace(std::string_view text, std::size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

// One past the JSON value that begins at `at`; npos where the text ends before it does.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  StringState string;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char byte = text[i];
    if (string.inside()) {
      string.Take(byte);
      if (!string.inside() && depth == 0) return i + 1;
      continue;
    }
    if (byte == '"') {
      string.Begin();
    } else if (byte == '{' || byte == '[') {
      ++depth;
    } else if (byte == '}' || byte == ']') {
      if (depth == 0) return i;  // behind a number or word
      if (--depth == 0) return i + 1;
    } else if (byte == ',' && depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

// The value of the last member of that name in `object`, as it is written; it may be cut off with
// the object. Empty: there is none.
std::string_view MemberOf(std::string_view object, std::string_view key) {
  std::string_view found;
  std::size_t at = SkipSpace(object, 0);
  if (at == object.size() || object[at] != '{') return found;
  ++at;
  for (;;) {
    while (at < object.size() && (IsSpace(object[at]) || object[at] == ',')) ++at;
    if (at >= object.size() || object[at] != '"') return found;
    const std::size_t name_end = EndOfValue(object, at);
    if (name_end == std::string_view::npos) return found;
    const std::string_view name = object.substr(at + 1, name_end - at - 2);
    at = SkipSpace(object, name_end);
    if (at >= object.size() || object[at] != ':') return found;
    at = SkipSpace(object, at + 1);
    const std::size_t end = std::min(EndOfValue(object, at), object.size());
    if (name == key) found = object.substr(at, end - at);
    at = end;
  }
}

// `,"key":"text"` for a member that is a whole text.
void AppendText(std::string& out, std::string_view object, std::string_view key) {
  const std::string_view text = MemberOf(object, key);
  const bool whole = text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                     EndOfValue(text, 0) == text.size() && text.size() <= kMaxOutlinedText;
  if (!whole) return;
  if (out.back() != '{') out += ',';
  out += fmt::format("\"{}\":{}", key, text);
}

void AppendTexts(std::string& out, std::string_view object, std::string_view part,
                 std::initializer_list<std::string_view> keys) {
  if (out.back() != '{') out += ',';
  out += fmt::format("\"{}\":{{", part);
  const std::string_view from = MemberOf(object, part);
  for (const std::string_view key : keys) AppendText(out, from, key);
  out += '}';
}

}  // namespace

std::size_t ObjectCut::FindEnd(std::string_view bytes, std::size_t start) {
  for (std::size_t i = start; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    if (string_.inside()) {
      string_.Take(byte);
      continue;
    }
    switch (byte) {
      case '"':
        string_.Begin();
        break;
      case '{':
      case '[':
        ++depth_;
        break;
      case '}':
      case ']':
        if (--depth_ == 0) return i + 1;
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

void ObjectCut::Keep(std::string_view piece) {
  if (over_) return;
  over_ = partial_.size() + piece.size() > kMaxBytes;
  if (!over_) {
    partial_.append(piece);
    return;
  }
  partial_.append(piece.substr(0, kKeptBytes));
  partial_.resize(std::min(partial_.size(), kKeptBytes));
  partial_.shrink_to_fit();
}

absl::Status ObjectCut::Feed(std::string_view bytes, std::size_t& at, const PieceReader& read) {
  const std::size_t end = FindEnd(bytes, at);
  const bool ends = end != std::string_view::npos;
  const std::string_view piece = bytes.substr(at, ends ? end - at : end);
  at = ends ? end : bytes.size();
  const bool first = partial_.empty() && !over_;
  if (ends && first && piece.size() <= kMaxBytes) return read({piece});
  Keep(piece);
  if (!ends) return absl::OkStatus();
  absl::Status status = read({partial_, !over_});
  partial_.clear();
  over_ = false;
  if (partial_.capacity() > kKeptCapacity) partial_ = std::string();
  return status;
}

absl::Status WatchFrames::Feed(std::string_view bytes, const PieceReader& frame) {
  std::size_t at = 0;
  while (broken_.ok() && at < bytes.size()) {
    const char byte = bytes[at];
    if (object_.under_way() || byte == '{') {
      broken_ = object_.Feed(bytes, at, frame);
    } else if (IsSpace(byte)) {
      ++at;
    } else {
      broken_ = absl::InvalidArgumentError(
          fmt::format("expected a JSON object, found byte 0x{:02x} between watch events",
                      static_cast<unsigned>(static_cast<unsigned char>(byte))));
    }
  }
  return broken_;
}

void ListItems::NoteStructure(char byte) {
  switch (byte) {
    case '"':
      string_.Begin();
      if (depth_ == 1) string_start_ = rest_.size();
      break;
    case ':':
      if (depth_ == 1) at_items_ = std::string_view(rest_).substr(string_start_) == "\"items\"";
      break;
    case ',':
      if (depth_ == 1) at_items_ = false;
      break;
    case '{':
    case '[':
      in_items_ = in_items_ || (depth_ == 1 && at_items_ && byte == '[');
      ++depth_;
      break;
    case '}':
    case ']':
      if (depth_ > 0) --depth_;
      if (depth_ == 1) in_items_ = false;
      break;
    default:
      break;
  }
}

absl::Status ListItems::FeedRest(char byte) {
  if (string_.inside()) {
    string_.Take(byte);
  } else {
    const bool between = in_items_ && depth_ == 2;
    if (IsSpace(byte) || (between && byte == ',')) return absl::OkStatus();
    const bool strange = between ? byte != ']' : rest_.empty() && byte != '{';
    if (strange) {
      return absl::InvalidArgumentError(
          fmt::format("expected a JSON object, found byte 0x{:02x}, {}",
                      static_cast<unsigned>(static_cast<unsigned char>(byte)),
                      between ? "in items of a list" : "at the start of a list"));
    }
    NoteStructure(byte);
  }
  if (rest_.size() == kMaxRestBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "expected at most {} bytes of a list beside its items, found more", kMaxRestBytes));
  }
  rest_ += byte;
  return absl::OkStatus();
}

absl::Status ListItems::Feed(std::string_view bytes, const PieceReader& read) {
  std::size_t at = 0;
  while (broken_.ok() && at < bytes.size()) {
    const bool begins = in_items_ && depth_ == 2 && !string_.inside() && bytes[at] == '{';
    if (item_.under_way() || begins) {
      broken_ = item_.Feed(bytes, at, read);
    } else {
      broken_ = FeedRest(bytes[at]);
      ++at;
    }
  }
  return broken_;
}

std::string OutlineOf(std::string_view object) {
  std::string out = "{";
  AppendTexts(out, object, "metadata",
              {"name", "namespace", "uid", "resourceVersion", "deletionTimestamp"});
  AppendTexts(out, object, "spec", {"nodeName"});
  AppendTexts(out, object, "status", {"phase"});
  return out + "}";
}

std::string OutlineOfEvent(std::string_view event) {
  std::string out = "{";
  AppendText(out, event, "type");
  if (out.back() != '{') out += ',';
  return out + "\"object\":" + OutlineOf(MemberOf(event, "object")) + "}";
}

absl::StatusOr<ReadObject> ObjectReader::Read(const JsonPiece& piece, Outliner outline) {
  ReadObject out;
  if (piece.whole && piece.text.size() <= kMaxParsedBytes) {
    const absl::StatusOr<wire::Element> object = parser_.Parse(piece.text);
    if (object.ok()) {
      out.object = *object;
      return out;
    }
    out.problem = std::string(object.status().message());
  } else {
    out.problem =
        fmt::format("expected an object of at most {} bytes, found a larger one", kMaxParsedBytes);
  }
  TRANCHE_ASSIGN_OR_RETURN(out.object, parser_.Parse(outline(piece.text)));
  return out;
}

}  // namespace tranche::kube
