// The head of an answer as text.
#pragma once

#include <chrono>
#include <string>

#include "scheduler/http/server.h"

namespace tranche::http {

// Does an answer of this status carry a body (RFC 9110 section 6.4.1)?
bool CarriesBody(int status);

// Status line and header fields with the empty line behind them. Content-Length is that of
// `response.text()`. Extra headers whose name or value could break the framing are left out.
std::string EncodeHead(const Response& response, bool keep_alive,
                       std::chrono::system_clock::time_point now);

}  // namespace tranche::http
