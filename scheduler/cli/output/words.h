// Values of a server's answers in the words of the tables. Members that are missing or of another
// type throw Json::exception.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/cli/output/json.h"

namespace tranche {

// 3500 -> "3.5": thousandths with as few decimals as it takes.
std::string Thousandths(int64_t milli);
// 81559 -> "79.6".
std::string Gibibytes(int64_t mebibytes);
// Between two times of RFC 3339: "45s", "12m", "3h", "2d"; "-" where one is missing.
std::string Age(const std::string& from, const std::string& to);
// The text, and the detail, of a "reason" member; "-" where there is none.
std::string ReasonOf(const Json& holder);
std::string DetailOf(const Json& holder);
// "0, 1" or "0 1g.10gb@3": a pod's devices in one cell.
std::string DevicesOf(const Json& holder);
// "2026-01-02T03:04:05Z (between ... and ...): why" of a "forecast" member.
std::string StartOf(const Json& forecast);
// "2", "2 x 1g.10gb, 0.5": what a waiting pod asks for; "-" where nobody knows.
std::string AsksOf(const Json& pod);

}  // namespace tranche
