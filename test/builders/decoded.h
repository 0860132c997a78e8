// Values of the JSON that a program of cases writes, by the server's own decoders.
//
// One thread at a time. A writer of wrong objects tests nothing: it ends the program with 2.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"

namespace tranche {

template <typename Value, typename Decode>
Value Decoded(const std::string& json, Decode decode) {
  wire::Parser parser;
  const absl::StatusOr<wire::Element> element = parser.Parse(json);
  if (!element.ok()) {
    std::cerr << element.status() << " in " << json << "\n";
    std::exit(2);
  }
  absl::StatusOr<Value> value = decode(*element);
  if (!value.ok()) {
    std::cerr << value.status() << " in " << json << "\n";
    std::exit(2);
  }
  return *std::move(value);
}

}  // namespace tranche
