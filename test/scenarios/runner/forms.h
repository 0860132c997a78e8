// Forms of statements: how a line must be worded, and what it does then.
//
// A pattern is written as the line is: small letters are words as they stand, capitals stand for
// one word (but for GPU), with three dots for one word or more. Example: "bind POD on NODE" matches
// "bind p on a" and captures p and a.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "test/scenarios/runner/words.h"
#include "test/scenarios/runner/world.h"

namespace tranche::scenario {

// What a scenario goes by while it is told.
struct Story {
  World world;
  std::string remembered;  // the books, as `remember books` found them
};

struct Form {
  std::string_view pattern;
  Result (*run)(Story& story, const std::vector<std::string>& captured, Options& options);
};

// The captured words, in order; nullopt: the words are not of this form.
std::optional<std::vector<std::string>> Match(std::string_view pattern,
                                              const std::vector<std::string>& words);

// Runs the first form that matches; the words must be one of them, and the options known to it.
Result RunForm(std::span<const Form> forms, const std::vector<std::string>& words,
               const Statement& statement, Story& story);

// Facts and steps, by verb, and what may be expected (patterns without `expect`).
std::span<const Form> Facts();
std::span<const Form> Steps();
std::span<const Form> Expectations();

}  // namespace tranche::scenario
