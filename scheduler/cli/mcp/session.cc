#include "scheduler/cli/mcp/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <istream>
#include <ostream>
#include <utility>

#include "scheduler/wire/json/json.h"

namespace tranche::mcp {
namespace {

// Codes of JSON-RPC 2.0, section 5.1.
constexpr int kUnreadable = -32700;
constexpr int kNoRequest = -32600;
constexpr int kNoMethod = -32601;
constexpr int kWrongParameters = -32602;

// Revisions whose messages about tools are those that are written here; the newest last.
constexpr std::array<std::string_view, 4> kRevisions = {"2024-11-05", "2025-03-26", "2025-06-18",
                                                        "2025-11-25"};

// Texts come from a cluster: what is no UTF-8 must not end the conversation.
std::string Written(const Json& message) {
  return message.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string Refused(const Json& id, int code, std::string_view text) {
  return Written({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", text}}}});
}

// Members are not copied: a copy of what is nested deeply would be made by recursion.
const Json& MemberOf(const Json& object, const char* name) {
  static const Json kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

const Json& ObjectOf(const Json& object, const char* name) {
  static const Json kEmpty = Json::object();
  const Json& member = MemberOf(object, name);
  return member.is_null() ? kEmpty : member;
}

// One line without its end; its characters past the limit are read and dropped.
struct Line {
  std::string text;
  bool whole = true;
};
bool ReadLine(std::istream& in, Line& line) {
  line = {};
  std::streambuf& from = *in.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  int next = from.sbumpc();
  if (next == kEnd) return false;
  for (; next != kEnd && next != '\n'; next = from.sbumpc()) {
    if (line.text.size() == kMostMessage) {
      line.whole = false;
    } else {
      line.text.push_back(static_cast<char>(next));
    }
  }
  return true;
}

}  // namespace

Session::Session(About about, std::vector<Tool> tools)
    : about_(std::move(about)), tools_(std::move(tools)) {}

std::optional<std::string> Session::Answer(std::string_view line) const {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  const Json request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (request.is_discarded()) {
    return Refused(nullptr, kUnreadable, "expected a message in JSON, found something else");
  }
  if (!request.is_object()) {
    return Refused(
        nullptr, kNoRequest,
        fmt::format("expected one message as a JSON object, found {}", request.type_name()));
  }
  const Json& method = MemberOf(request, "method");
  if (!method.is_string()) {
    // An answer of the client's: nothing was asked of it.
    if (request.contains("result") || request.contains("error")) return std::nullopt;
    return Refused(nullptr, kNoRequest, "expected a method, found none");
  }
  if (!request.contains("id")) return std::nullopt;  // a notification
  const Json& id = MemberOf(request, "id");
  if (!id.is_string() && !id.is_number_integer()) {
    return Refused(
        nullptr, kNoRequest,
        fmt::format("expected an id that is a text or a whole number, found {}", id.type_name()));
  }
  const Json& parameters = ObjectOf(request, "params");
  if (!parameters.is_object()) {
    return Refused(id, kWrongParameters,
                   fmt::format("params: expected an object, found {}", parameters.type_name()));
  }
  absl::StatusOr<Json> result = Dispatch(method.get<std::string>(), parameters);
  if (!result.ok()) {
    const int code = absl::IsUnimplemented(result.status()) ? kNoMethod : kWrongParameters;
    return Refused(id, code, std::string(result.status().message()));
  }
  return Written({{"jsonrpc", "2.0"}, {"id", id}, {"result", *std::move(result)}});
}

absl::StatusOr<Json> Session::Dispatch(const std::string& method, const Json& parameters) const {
  if (method == "initialize") return Hello(parameters);
  if (method == "ping") return Json::object();
  if (method == "tools/list") return ListTools();
  if (method == "tools/call") return Call(parameters);
  return absl::UnimplementedError(fmt::format(
      "expected initialize, ping, tools/list or tools/call, found {}", wire::Quoted(method)));
}

// The client's revision where it is one of ours; the client ends the conversation if it does not
// speak the one that is answered.
Json Session::Hello(const Json& parameters) const {
  const Json& asked = MemberOf(parameters, "protocolVersion");
  const bool known =
      asked.is_string() && std::find(kRevisions.begin(), kRevisions.end(),
                                     asked.get_ref<const std::string&>()) != kRevisions.end();
  return {{"protocolVersion", known ? asked.get<std::string>() : std::string(kRevisions.back())},
          {"capabilities", {{"tools", Json::object()}}},
          {"serverInfo", {{"name", about_.name}, {"version", about_.version}}},
          {"instructions", about_.instructions}};
}

Json Session::ListTools() const {
  Json tools = Json::array();
  for (const Tool& tool : tools_) {
    tools.push_back({{"name", tool.name},
                     {"description", tool.what},
                     {"inputSchema", SchemaOf(tool.parameters)},
                     {"annotations", {{"readOnlyHint", true}, {"openWorldHint", false}}}});
  }
  return {{"tools", std::move(tools)}};
}

// Wrong arguments are the answer of the tool, so that the model sees them and can mend them.
absl::StatusOr<Json> Session::Call(const Json& parameters) const {
  const Json& name = MemberOf(parameters, "name");
  const auto named = [&name](const Tool& tool) { return name == tool.name; };
  const auto tool = std::find_if(tools_.begin(), tools_.end(), named);
  if (tool == tools_.end()) {
    std::vector<std::string> names;
    for (const Tool& known : tools_) names.push_back(known.name);
    return absl::InvalidArgumentError(
        fmt::format("name: expected one of {}, found {}", fmt::join(names, ", "),
                    name.is_string() ? wire::Quoted(name.get<std::string>()) : name.type_name()));
  }
  const Json& arguments = ObjectOf(parameters, "arguments");
  ToolAnswer answer;
  if (const absl::Status checked = CheckArguments(tool->parameters, arguments); !checked.ok()) {
    answer = {true, std::string(checked.message())};
  } else {
    try {
      answer = tool->call(arguments);
    } catch (const std::exception& failure) {
      answer = {true, fmt::format("unexpected failure: {}", failure.what())};
    }
  }
  const Json text = {{"type", "text"}, {"text", Shortened(std::move(answer.text))}};
  return Json{{"content", Json::array({text})}, {"isError", answer.failed}};
}

void Converse(const Session& session, std::istream& in, std::ostream& out) {
  Line line;
  while (out && ReadLine(in, line)) {
    const std::optional<std::string> answer =
        line.whole
            ? session.Answer(line.text)
            : Refused(nullptr, kNoRequest,
                      fmt::format("expected a message of at most {} bytes, found a longer one",
                                  kMostMessage));
    if (answer) out << *answer << '\n' << std::flush;
  }
}

std::string Shortened(std::string text) {
  if (text.size() <= kMostAnswer) return text;
  const std::size_t end = text.rfind('\n', kMostAnswer);
  const std::size_t kept = end == std::string::npos ? kMostAnswer : end + 1;
  const auto missing =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(kept), text.end(), '\n');
  text.resize(kept);
  text += fmt::format("({} more lines: ask for a namespace, a name or labels)\n",
                      std::max<std::ptrdiff_t>(missing, 1));
  return text;
}

}  // namespace tranche::mcp
