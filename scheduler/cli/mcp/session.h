// A conversation with the client of a language model, by the Model Context Protocol over standard
// input and output: messages of JSON-RPC 2.0, one a line.
//
// Source: modelcontextprotocol.io/specification, revisions 2024-11-05 to 2025-11-25: lifecycle,
// transports (stdio), tools. There are tools and nothing else: no resources, prompts or sampling. A
// tool may be called before the client has said hello, as clients without a handshake do.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/mcp/tool.h"

namespace tranche::mcp {

inline constexpr std::size_t kMostMessage = std::size_t{1} << 20;  // bytes of a line
inline constexpr std::size_t kMostAnswer = 100'000;                // bytes of a tool's text

class Session {
 public:
  struct About {
    std::string name;
    std::string version;
    std::string instructions;  // for the model: how the tools belong together
  };

  Session(About about, std::vector<Tool> tools);

  // The line that answers one from the client, without its end; nullopt for what asks for none.
  // What cannot be read is answered as JSON-RPC says. Never throws.
  std::optional<std::string> Answer(std::string_view line) const;

 private:
  // InvalidArgument: the parameters are wrong; Unimplemented: there is no such method.
  absl::StatusOr<Json> Dispatch(const std::string& method, const Json& parameters) const;
  Json Hello(const Json& parameters) const;
  Json ListTools() const;
  absl::StatusOr<Json> Call(const Json& parameters) const;

  About about_;
  std::vector<Tool> tools_;
};

// Answers each line of `in` until it ends or `out` takes no more. A line longer than kMostMessage
// is answered with an error and passed over, without being kept.
void Converse(const Session& session, std::istream& in, std::ostream& out);

// `text`, or so many whole lines of it as kMostAnswer holds and one that says how many are missing.
std::string Shortened(std::string text);

}  // namespace tranche::mcp
