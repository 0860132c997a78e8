// Parameters in the query of a request, and what is said of those that are wrong.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/http/server.h"

namespace tranche {

// InvalidArgument: "NAME: expected EXPECTED, found "FOUND"".
absl::Status BadParameter(std::string_view name, std::string_view expected,
                          const std::string& found);
// nullopt: it is not given.
std::optional<std::string> ParameterOf(const http::Request& request, const std::string& name);
// Errors: as BadParameter, of a text that is no number in these bounds.
absl::StatusOr<uint64_t> ReadNumber(std::string_view name, const std::string& text, uint64_t least,
                                    uint64_t most);

}  // namespace tranche
