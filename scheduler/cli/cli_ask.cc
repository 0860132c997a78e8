#include "scheduler/cli/cli_ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

#include "absl/status/statusor.h"

namespace tranche {

int Fail(std::ostream& err, int code, std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  err << "tranche: " << text << '\n';
  return code;
}

int Fail(std::ostream& err, const absl::Status& status) {
  return Fail(err, kExitUsage, std::string(status.message()));
}

std::optional<Answer> AskServer(const Server& server, std::string_view method,
                                std::string_view target, std::string_view body, std::ostream& err,
                                int& code) {
  absl::StatusOr<std::string> reply = AskServer(server, method, target, body);
  if (!reply.ok()) {
    code = Fail(err, absl::IsNotFound(reply.status()) ? code : kExitUsage,
                std::string(reply.status().message()));
    return std::nullopt;
  }
  Json json = Json::parse(*reply, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    code = Fail(err, kExitUsage, "expected a JSON object from the server, found something else");
    return std::nullopt;
  }
  return Answer{std::move(*reply), std::move(json)};
}

int FailOfForm(std::ostream& err, const Json::exception& error) {
  return Fail(err, kExitUsage,
              fmt::format("expected the answer of a tranche server of this version, found {}",
                          error.what()));
}

int ShowAnswer(const OutputFormat& format, const Answer& answer, std::ostream& out,
               std::ostream& err, const PrintAnswer& print) {
  try {
    std::ostringstream page;
    page.copyfmt(out);
    const int code = print(answer.json, page);
    out << (format.kind == OutputFormat::Kind::kTable
                ? page.str()
                : WriteAnswer(format, answer.body, answer.json));
    return code;
  } catch (const Json::exception& error) {
    return FailOfForm(err, error);
  }
}

int Show(const ClientOptions& options, std::string_view method, std::string_view target,
         std::string_view body, std::ostream& out, std::ostream& err, const PrintAnswer& print,
         int missing) {
  const absl::StatusOr<OutputFormat> format = ParseOutputFormat(options.output, kAnswerFormats);
  if (!format.ok()) return Fail(err, format.status());
  const absl::StatusOr<Server> server = ReadServerFlags(options.server);
  if (!server.ok()) return Fail(err, server.status());
  int code = missing;
  const std::optional<Answer> answer = AskServer(*server, method, target, body, err, code);
  return answer ? ShowAnswer(*format, *answer, out, err, print) : code;
}

std::string NamespaceOf(const ClientOptions& options, const Server& server) {
  if (options.all_namespaces) return "";
  return options.ns.empty() ? server.ns : options.ns;
}

}  // namespace tranche
