// What `tranche top` shows while it stays, key by key, and keys as terminals send them.
#include "scheduler/cli/screen/top_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using Kind = Key::Kind;

TEST(Keys, AreReadAsTerminalsSendThem) {
  const struct {
    std::string bytes;
    std::vector<Key> keys;
    std::string rest;
  } rows[] = {
      {"q/", {{Kind::kText, 'q'}, {Kind::kText, '/'}}, ""},
      {"\x1b[A\x1b[B", {{Kind::kUp}, {Kind::kDown}}, ""},
      {"\x1bOA\x1bOB", {{Kind::kUp}, {Kind::kDown}}, ""},
      {"\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1~\x1b[4~",
       {{Kind::kPageUp},
        {Kind::kPageDown},
        {Kind::kHome},
        {Kind::kEnd},
        {Kind::kHome},
        {Kind::kEnd}},
       ""},
      {"\r\x7f\b\x03",
       {{Kind::kEnter}, {Kind::kBackspace}, {Kind::kBackspace}, {Kind::kInterrupt}},
       ""},
      {"\x1b", {}, "\x1b"},  // goes on, or is a key
      {"a\x1b[", {{Kind::kText, 'a'}}, "\x1b["},
      {"\x1b[1;5", {}, "\x1b[1;5"},
      {"\x1bq", {{Kind::kEscape}, {Kind::kText, 'q'}}, ""},
      {"\x1b[1;5Zj", {{Kind::kText, 'j'}}, ""},  // not known
      {"\xc3\xa4\tx", {{Kind::kText, 'x'}}, ""},
  };
  for (const auto& row : rows) {
    std::string rest = "before";
    EXPECT_EQ(ReadKeys(row.bytes, rest), row.keys) << row.bytes;
    EXPECT_EQ(rest, row.rest);
  }
}

Json Pod(const char* ns, const char* name, const char* state, int milli, const char* since) {
  Json devices = Json::array();
  if (milli > 0) devices.push_back({{"milli", milli}});
  return {{"namespace", ns},   {"name", name},        {"state", state},
          {"leaf", ns},        {"node", "gpu-1"},     {"devices", devices},
          {"reason", nullptr}, {"waitsSince", since}, {"asks", nullptr}};
}

class TopViewTest : public testing::Test {
 protected:
  TopViewTest() { view.Take("MODEL  GPUS\nh100   8\n", Pods()); }

  static Json Pods() {
    return Json::array({Pod("blue", "a", "bound", 1000, ""),
                        Pod("blue", "b", "pending", 0, "2026-01-02T00:00:00Z"),
                        Pod("red", "c", "bound", 4000, ""),
                        Pod("red", "d", "pending", 0, "2026-01-01T00:00:00Z")});
  }
  bool Press(const std::string& bytes) {
    std::string rest;
    bool goes_on = true;
    for (const Key& key : ReadKeys(bytes, rest)) goes_on = view.Press(key);
    if (rest == "\x1b") goes_on = view.Press({Kind::kEscape});
    return goes_on;
  }
  std::vector<std::string> Lines(std::size_t rows = 20, std::size_t columns = 200) {
    std::vector<std::string> lines = {""};
    for (const char c : view.Page(rows, {.columns = columns, .colour = false})) {
      if (c == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += c;
      }
    }
    return lines;
  }
  // "a>bcd": names of the pods that are shown, with a mark behind the chosen one.
  std::string Names(std::size_t rows = 20) {
    std::string names;
    for (const std::string& line : Lines(rows)) {
      for (const char* name : {"a", "b", "c", "d"}) {
        const bool chosen = line.starts_with(">");
        const std::string text = chosen ? line.substr(1) : line;
        if (text.find(std::string("  ") + name + " ") == std::string::npos) continue;
        names += name;
        if (chosen) names += '>';
      }
    }
    return names;
  }

  TopView view{"http://127.0.0.1:8080"};
};

TEST_F(TopViewTest, KeysMoveOrderAndSearch) {
  const struct {
    const char* keys;
    const char* names;
  } rows[] = {
      {"", "a>bcd"},       {"j", "ab>cd"},      {"\x1b[B", "abc>d"},
      {"k", "ab>cd"},      {"\x1b[F", "abcd>"}, {"j", "abcd>"},
      {"\x1b[H", "a>bcd"}, {"k", "a>bcd"},      {"g", "ca>bd"},
      {"r", "bda>c"},      {"r", "ca>bd"},      {"w", "dba>c"},
      {"s", "a>cbd"},      {"t", "a>bcd"},      {"n", "a>bcd"},
      {"r", "dcba>"},      {"r", "a>bcd"},      {"/red", "c>d"},
      {"\r", "c>d"},       {"\x1b", "a>bcd"},   {"/pend\x7f\x7f\r", "b>d"},
      {"q", "b>d"},
  };
  for (const auto& [keys, names] : rows) {
    EXPECT_EQ(Press(keys), std::string(keys) != "q") << keys;
    EXPECT_EQ(Names(), names) << keys;
  }
}

TEST_F(TopViewTest, LettersOfASearchAreNoKeys) {
  EXPECT_TRUE(Press("/q"));
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(Lines().back(), "/q_  enter keeps it, escape ends it");
  EXPECT_FALSE(Press("\x03"));
}

TEST_F(TopViewTest, WhoIsChosenStaysSoWhenOthersComeAndGo) {
  Press("jj");
  EXPECT_EQ(Names(), "abc>d");
  Json pods = Pods();
  pods.erase(pods.begin());
  view.Take("", pods);
  EXPECT_EQ(Names(), "bc>d");
  pods.erase(pods.begin() + 1);
  view.Take("", pods);
  EXPECT_EQ(Names(), "bd>") << "its place, where it is gone";
  view.Take("", Json::array());
  EXPECT_EQ(Names(), "");
  EXPECT_TRUE(Press("jk\x1b[F"));
}

TEST_F(TopViewTest, APageIsAsLargeAsTheWindow) {
  for (const std::size_t rows : {1U, 2U, 3U, 7U, 8U, 9U, 30U}) {
    EXPECT_EQ(Lines(rows).size(), std::max<std::size_t>(rows, 2)) << rows;
    for (const std::string& line : Lines(rows, 10)) EXPECT_LE(WidthOf(line), 10U) << line;
  }
  // First line, an empty one, two of sums, an empty one, the titles, the foot: room for two pods.
  EXPECT_EQ(Names(9), "a>b");
  Press("jj");
  EXPECT_EQ(Names(9), "bc>");
  Press("\x1b[6~");
  EXPECT_EQ(Names(9), "cd>");
  EXPECT_EQ(Lines(9).back().substr(0, 6), "q quit");
}

TEST_F(TopViewTest, WhatIsWrongIsSaidBelowTheLastAnswer) {
  view.Fail("tranche: the server is away\x1b[2J\n");
  EXPECT_EQ(Lines().back().find("tranche: the server is away?[2J"), 0U);
  EXPECT_EQ(Names(), "a>bcd");
  EXPECT_THROW(view.Take("", Json::array({Json::object()})), Json::exception);
  EXPECT_EQ(Names(), "a>bcd");
  view.Take("", Pods());
  EXPECT_EQ(Lines().back().substr(0, 6), "q quit");
}

}  // namespace THIS_FILE
}  // namespace tranche
