#include "scheduler/wire/protocol/extender_v1.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kPod =
    R"({"metadata":{"name":"train-0","namespace":"team-a","uid":"u-1"},"spec":{"containers":[]}})";

// The body as the server hands it over: with readable bytes behind its end.
class Body {
 public:
  explicit Body(std::string text) : size_(text.size()), text_(std::move(text)) {
    text_.append(kPadding, 'x');
  }
  operator std::string_view() const {  // NOLINT: reads like the body it stands for
    return std::string_view(text_).substr(0, size_);
  }

 private:
  static constexpr std::size_t kPadding = 64;  // the server's
  std::size_t size_;
  std::string text_;
};

Body WithPod(std::string_view rest) {
  return Body(R"({"Pod":)" + std::string(kPod) + std::string(rest) + "}");
}

using Names = std::vector<std::string_view>;

TEST(ExtenderV1, ReadsCandidatesByNameOrByObject) {
  const struct {
    std::string_view rest;
    bool by_name;
    Names names;
  } cases[] = {
      {R"(,"Nodes":null,"NodeNames":["b","a","c"])", true, {"b", "a", "c"}},
      {R"(,"nodes":null,"nodenames":["b"])", true, {"b"}},
      {R"(,"NODENAMES":["wrong"],"NodeNames":["right"],"nodenames":["wrong"])", true, {"right"}},
      {R"(,"NodeNames":["first"],"NodeNames":["last"])", true, {"last"}},
      {R"(,"NodeNames":["first"],"NodeNames":null)", true, {}},
      {R"(,"Nodes":null,"NodeNames":null)", true, {}},
      {"", true, {}},
      {R"(,"NodeNames":[])", true, {}},
      {R"(,"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"}},{"metadata":)"
       R"({"name":"n2"}}]},"NodeNames":null)",
       false,
       {"n1", "n2"}},
      {R"(,"Nodes":{"items":null})", false, {}},
      {R"(,"Nodes":{"items":[{"metadata":{"name":"n1"}}]},"NodeNames":["n2"])", true, {"n2"}},
      {R"(,"NodeNames":["b","a","b"])", true, {"b", "a", "b"}},
      {R"(,"NodeNames":["","a",""])", true, {"", "a", ""}},
      {R"(,"NodeNames":["\u0061","b\"\\"])", true, {"a", "b\"\\"}},
      {R"(,"NodeNames":["a"],"Nodes":null)", true, {"a"}},
      {R"(,"Nodes":{"items":[{"metadata":{"name":"n2"}},{"metadata":{"name":"n1"}},{"metadata":)"
       R"({"name":"n2"},"x":1}]})",
       false,
       {"n2", "n1", "n2"}},
  };
  Codec codec;
  ExtenderArgs args;
  for (const auto& [rest, by_name, names] : cases) {
    const Body body = WithPod(rest);
    const absl::Status status = codec.ReadExtenderArgs(body, args);
    ASSERT_TRUE(status.ok()) << status << " " << rest;
    EXPECT_EQ(args.by_name, by_name) << rest;
    EXPECT_EQ(args.names, names) << rest;
    EXPECT_EQ(args.items.size(), by_name ? 0 : names.size()) << rest;
    EXPECT_EQ(args.pod.request.name, (PodName{"team-a", "train-0"}));
    EXPECT_EQ(args.pod.request.uid, PodUid("u-1"));
  }
}

TEST(ExtenderV1, SaysWhichFieldIsWrongAndWhatWasFound) {
  const struct {
    std::string body;
    std::string_view expected, found, where;
  } cases[] = {
      {"", "JSON", "nothing", ""},
      {"null", "object", "null", "the body"},
      {"[]", "object", "array", "the body"},
      {R"({"NodeNames":[]})", "object", "nothing", "in Pod"},
      {R"({"Pod":null})", "object", "nothing", "in Pod"},
      {R"({"Pod":"p"})", "object", "text \"p\"", "in pod"},
      {R"({"Pod":{}})", "expected", "found", "metadata"},
      {std::string(WithPod(R"(,"NodeNames":{})")), "array", "object", "in NodeNames"},
      {std::string(WithPod(R"(,"nodenames":7)")), "array", "number 7", "in NodeNames"},
      {std::string(WithPod(R"(,"NodeNames":["a",null])")), "text", "null", "in NodeNames"},
      {std::string(WithPod(R"(,"Nodes":[])")), "object", "array", "in Nodes"},
      {std::string(WithPod(R"(,"Nodes":"x","NodeNames":["a"])")), "object", "text \"x\"",
       "in Nodes"},
      {std::string(WithPod(R"(,"Nodes":{"items":{}})")), "array", "object", "in Nodes.items"},
      {std::string(WithPod(R"(,"Nodes":{"items":[3]})")), "object", "number 3", "in Nodes.items"},
      {std::string(WithPod(R"(,"Nodes":{"items":[{}]})")), "text", "nothing",
       "in Nodes.items.metadata.name"},
      {std::string(WithPod(R"(,"Nodes":{"items":[{"metadata":{"name":1}}]})")), "text", "number 1",
       "in Nodes.items.metadata.name"},
      {std::string(WithPod(R"(,"Unread":[1,2)")), "JSON", "structure", ""},
      {std::string(WithPod(R"(,"Unread":18446744073709551616)")), "JSON", "64 bits", ""},
  };
  Codec codec;
  for (const auto& [text, expected, found, where] : cases) {
    ExtenderArgs args;
    const Body body(text);
    const absl::Status status = codec.ReadExtenderArgs(body, args);
    const std::string message(status.message());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    for (const std::string_view part : {expected, found, where}) {
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    }
  }
}

// kube-scheduler's own form is read in a way of its own; a space makes another form of it.
TEST(ExtenderV1, ReadsTheSameFromEveryForm) {
  Codec codec;
  ExtenderArgs args;
  for (const std::string_view names :
       {R"([])", R"(["a"])", R"(["gpu-worker-0001.zone.example","gpu-worker-2"])", R"(["a",null])",
        R"(["a",7,"b"])", R"(["a" "b"])", R"(["a\x"])", "[\"a\tb\"]"}) {
    for (const std::string_view nodes :
         {R"(,"Nodes":null)", R"(,"Nodes":{})", R"(,"Nodes":3)", ""}) {
      const Body own = WithPod(fmt::format(R"({},"NodeNames":{})", nodes, names));
      const Body other = WithPod(fmt::format(R"({},"NodeNames" :{})", nodes, names));
      ExtenderArgs wanted;
      const absl::Status status = codec.ReadExtenderArgs(other, wanted);
      const std::vector<std::string> wanted_names(wanted.names.begin(), wanted.names.end());
      EXPECT_EQ(codec.ReadExtenderArgs(own, args), status) << std::string_view(own);
      if (!status.ok()) continue;
      EXPECT_EQ(std::vector<std::string>(args.names.begin(), args.names.end()), wanted_names);
      EXPECT_EQ(args.by_name, wanted.by_name);
      EXPECT_EQ(args.pod.request.uid, wanted.pod.request.uid);
    }
  }
}

TEST(ExtenderV1, ReadsOfAPodItsUidAloneUntilMoreIsAskedFor) {
  Codec codec;
  ExtenderArgs args;
  const struct {
    std::string_view pod, uid;
    bool whole;
  } rows[] = {
      {kPod, "u-1", true},
      {R"({"metadata":{"uid":"u-2"}})", "u-2", false},
      {R"({"metadata":{"uid":7}})", "", false},
      {R"({"metadata":[]})", "", false},
      {R"("p")", "", false},
  };
  for (const auto& [pod, uid, whole] : rows) {
    for (const std::string_view rest : {R"("NodeNames":["a"])", R"("NodeNames": ["a"])"}) {
      const Body body(fmt::format(R"({{"Pod":{},{}}})", pod, rest));
      ASSERT_TRUE(codec.ReadExtenderArgs(body, args, PodPart::kUid).ok()) << pod;
      EXPECT_EQ(args.pod.request.uid, PodUid(uid)) << pod;
      EXPECT_EQ(args.names, Names{"a"});
      EXPECT_EQ(codec.ReadPod(args).ok(), whole) << pod;
      EXPECT_EQ(codec.ReadExtenderArgs(body, args).ok(), whole) << pod;
      if (whole) {
        EXPECT_EQ(args.pod.request.name.name, "train-0");
      }
    }
  }
  EXPECT_FALSE(codec.ReadExtenderArgs(Body(R"({"NodeNames":[]})"), args, PodPart::kUid).ok());
}

TEST(ExtenderV1, StaysUsableAfterALargeOrABrokenBody) {
  Codec codec;
  ExtenderArgs args;
  const Body large =
      WithPod(fmt::format(R"(,"NodeNames":["a"],"x":"{}")", std::string(3 << 20, 'x')));
  const Body broken("{\"Pod\":");
  const Body small = WithPod(R"(,"NodeNames":["b"])");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(codec.ReadExtenderArgs(large, args).ok());
    EXPECT_EQ(args.names, Names{"a"});
    EXPECT_FALSE(codec.ReadExtenderArgs(broken, args).ok());
    EXPECT_TRUE(args.names.empty());
    ASSERT_TRUE(codec.ReadExtenderArgs(small, args).ok());
    EXPECT_EQ(args.names, Names{"b"});
  }
}

// ---- answers ------------------------------------------------------------------------------------

ExtenderArgs ByName(Names names) {
  ExtenderArgs args;
  args.names = std::move(names);
  return args;
}

TEST(ExtenderV1, WritesFilterResultsWithEveryFieldPresent) {
  FilterAnswer answer;
  answer.chosen = {2, 0};
  answer.refused = {{1, Reason::kNoRoom}, {3, Reason::kWrongModel}};
  const ExtenderArgs args = ByName({"a", "b", "c", "d"});
  std::string out = "left over";
  WriteFilterResult(args, answer, /*preemption_in_tree=*/true, out);
  EXPECT_EQ(out, fmt::format(R"({{"Nodes":null,"NodeNames":["c","a"],"FailedNodes":{{"b":"{}"}},)"
                             R"("FailedAndUnresolvableNodes":{{}},"Error":""}})",
                             Describe(Reason::kNoRoom).text));
  answer.chosen.clear();
  WriteFilterResult(args, answer, /*preemption_in_tree=*/true, out);
  EXPECT_EQ(out, fmt::format(R"({{"Nodes":null,"NodeNames":[],"FailedNodes":{{"b":"{}"}},)"
                             R"("FailedAndUnresolvableNodes":{{"d":"{}"}},"Error":""}})",
                             Describe(Reason::kNoRoom).text, Describe(Reason::kWrongModel).text));
  WriteFilterResult(args, answer, /*preemption_in_tree=*/false, out);
  EXPECT_EQ(out, fmt::format(R"({{"Nodes":null,"NodeNames":[],"FailedNodes":{{}},)"
                             R"("FailedAndUnresolvableNodes":{{"b":"{}","d":"{}"}},"Error":""}})",
                             Describe(Reason::kNoRoom).text, Describe(Reason::kWrongModel).text));
}

// A node that is listed nowhere is unresolvable to kube-scheduler. So those may be left out that it
// would have been told just that of, and no others, whoever refuses the chosen ones afterwards.
TEST(ExtenderV1, WhereANodePassesOnlyThoseAreNamedThatLeavingOutWouldChange) {
  FilterAnswer answer;
  answer.chosen = {0};
  answer.refused = {{1, Reason::kNoRoom},
                    {2, Reason::kNoRoom},
                    {3, Reason::kPreemptionInProgress},
                    {4, Reason::kWrongModel}};
  ExtenderArgs args = ByName({"fits", "full", "nominated", "emptied", "other"});
  args.pod.nominated = NodeName("nominated");
  const auto failed = [&](bool preemption_in_tree) {
    std::string out;
    WriteFilterResult(args, answer, preemption_in_tree, out);
    simdjson::dom::parser parser;
    const simdjson::dom::element root = parser.parse(out).value();
    EXPECT_EQ(root["FailedAndUnresolvableNodes"].get_object().value().size(), 0U) << out;
    std::vector<std::string> names;
    const simdjson::dom::object nodes = root["FailedNodes"].get_object().value();
    for (const auto field : nodes) names.emplace_back(field.key);
    return names;
  };
  EXPECT_EQ(failed(false), (std::vector<std::string>{"nominated", "emptied"}));
  EXPECT_EQ(failed(true), (std::vector<std::string>{"full", "nominated", "emptied"}));
}

TEST(ExtenderV1, PutsHamisWordInFrontWhereItHasOne) {
  FilterAnswer answer;
  answer.refused = {{0, Reason::kWrongModel}, {1, Reason::kNodeNotReady}};
  std::string out;
  WriteFilterResult(ByName({"a", "b"}), answer, /*preemption_in_tree=*/false, out, "",
                    ReasonStyle::kHami);
  EXPECT_EQ(out,
            fmt::format(R"({{"Nodes":null,"NodeNames":[],"FailedNodes":{{}},)"
                        R"("FailedAndUnresolvableNodes":{{"a":"CardTypeMismatch: {}",)"
                        R"("b":"{}"}},"Error":""}})",
                        Describe(Reason::kWrongModel).text, Describe(Reason::kNodeNotReady).text));
}

// Called unresolvable, such a node would have kube-scheduler choose a second set of victims.
TEST(ExtenderV1, NodesWhoseVictimsAreLeavingAreAlwaysAmongTheFailedOnes) {
  FilterAnswer answer;
  answer.refused = {{0, Reason::kNoRoom}, {1, Reason::kNoRoom}, {2, Reason::kPreemptionInProgress}};
  ExtenderArgs args = ByName({"a", "b", "c"});
  args.pod.nominated = NodeName("b");
  std::string out;
  WriteFilterResult(args, answer, /*preemption_in_tree=*/false, out);
  EXPECT_EQ(out, fmt::format(
                     R"({{"Nodes":null,"NodeNames":[],"FailedNodes":{{"b":"{0}","c":"{1}"}},)"
                     R"("FailedAndUnresolvableNodes":{{"a":"{0}"}},"Error":""}})",
                     Describe(Reason::kNoRoom).text, Describe(Reason::kPreemptionInProgress).text));
}

TEST(ExtenderV1, WritesReasonsThatAreJsonAsTheyStandAndCallsLeavingVictimsCurable) {
  for (int i = 0; i < static_cast<int>(Reason::kCount); ++i) {
    FilterAnswer answer;
    answer.refused = {{0, static_cast<Reason>(i)}};
    std::string out;
    WriteFilterResult(ByName({"a"}), answer, false, out);
    simdjson::dom::parser parser;
    std::string_view text;
    const bool leaving = static_cast<Reason>(i) == Reason::kPreemptionInProgress;
    const char* const list = leaving ? "FailedNodes" : "FailedAndUnresolvableNodes";
    ASSERT_EQ(parser.parse(out)[list]["a"].get(text), simdjson::SUCCESS);
    EXPECT_EQ(text, Describe(static_cast<Reason>(i)).text);
  }
}

TEST(ExtenderV1, WritesEmptyAndUntouchedFilterResults) {
  std::string out;
  WriteFilterResult(ByName({}), FilterAnswer(), true, out);
  EXPECT_EQ(out, R"({"Nodes":null,"NodeNames":[],"FailedNodes":{},)"
                 R"("FailedAndUnresolvableNodes":{},"Error":""})");
  FilterAnswer untouched;
  untouched.untouched = true;
  WriteFilterResult(ByName({"b", "a"}), untouched, true, out);
  EXPECT_EQ(out, R"({"Nodes":null,"NodeNames":["b","a"],"FailedNodes":{},)"
                 R"("FailedAndUnresolvableNodes":{},"Error":""})");
  WriteFilterError("no \"leader\"", out);
  EXPECT_EQ(out, R"({"Nodes":null,"NodeNames":null,"FailedNodes":{},)"
                 R"("FailedAndUnresolvableNodes":{},"Error":"no \"leader\""})");
}

TEST(ExtenderV1, EchoesChosenNodeObjectsInAnswerOrder) {
  const std::string deep = std::string(40, '[') + "1.5" + std::string(40, ']');
  const Body body =
      WithPod(R"(,"Nodes":{"items":[ {"metadata" : {"name":"n1","labels":{"k":"\"\u00e9\n"}}},)"
              R"({"metadata":{"name":"n2"},"status":{"x":-1,"deep":)" +
              deep +
              R"(}},)"
              R"({"metadata":{"name":"n3"}}]})");
  Codec codec;
  ExtenderArgs args;
  ASSERT_TRUE(codec.ReadExtenderArgs(body, args).ok());
  FilterAnswer answer;
  answer.chosen = {1, 0};
  answer.refused = {{2, Reason::kNoGpu}};
  std::string out;
  WriteFilterResult(args, answer, false, out);
  EXPECT_EQ(
      out,
      R"({"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n2"},"status":{"x":-1,"deep":)" +
          deep +
          R"(}},{"metadata":{"name":"n1","labels":{"k":"\")"
          "\u00e9"
          R"(\n"}}}]},)"
          R"("NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST(ExtenderV1, EscapesWhateverANameHolds) {
  std::string out;
  for (int byte = 1; byte < 0x80; ++byte) {
    for (const std::size_t at : {0U, 3U, 7U, 8U, 11U}) {
      std::string name = "abcdefghijkl";
      name[at] = static_cast<char>(byte);
      WriteBindingResult(name, out);
      simdjson::dom::parser parser;
      std::string_view read;
      ASSERT_EQ(parser.parse(out)["Error"].get(read), simdjson::SUCCESS) << byte << " at " << at;
      EXPECT_EQ(read, name) << byte << " at " << at;
    }
  }
  WriteBindingResult("n\u00e9 \xff", out);
  EXPECT_EQ(out, "{\"Error\":\"n\u00e9 \uFFFD\"}");
}

TEST(ExtenderV1, WritesPrioritiesAsABareArray) {
  std::string out;
  WritePriorities(ByName({"a", "b"}), std::vector<int>{10, 0}, out);
  EXPECT_EQ(out, R"([{"Host":"a","Score":10},{"Host":"b","Score":0}])");
  WritePriorities(ByName({}), {}, out);
  EXPECT_EQ(out, "[]");
}

// ---- preempt ------------------------------------------------------------------------------------

TEST(ExtenderV1, ReadsVictimsInBothForms) {
  const std::string_view meta = R"(,"NodeNameToVictims":null,"NodeNameToMetaVictims":{)"
                                R"("n2":{"Pods":[{"UID":"c"}],"NumPDBViolations":0},)"
                                R"("n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1},)"
                                R"("n3":{"Pods":null}})";
  const std::string_view full =
      R"(,"NodeNameToMetaVictims":null,"NodeNameToVictims":{)"
      R"("n2":{"Pods":[{"metadata":{"name":"pc","uid":"c"}}],"NumPDBViolations":0},)"
      R"("n1":{"Pods":[{"metadata":{"uid":"a"}},{"metadata":{"uid":"b"}}],"NumPDBViolations":1},)"
      R"("n3":null})";
  const std::string_view lower =
      R"(,"nodenametometavictims":{"n1":{"pods":[{"uid":"x"}]},"n2":{"pods":[{"uid":"c"}]},)"
      R"("n1":{"pods":[{"uid":"a"},{"uid":"b"}],"numpdbviolations":1},"n3":{}})";
  Codec codec;
  for (const std::string_view rest : {meta, full, lower}) {
    const Body body = WithPod(rest);
    const absl::StatusOr<PreemptionArgs> args = codec.ReadPreemptionArgs(body);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->pod.request.uid, PodUid("u-1"));
    std::string out;
    WritePreemptionResult(args->nodes, out);
    EXPECT_EQ(out, R"({"NodeNameToMetaVictims":{)"
                   R"("n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1},)"
                   R"("n2":{"Pods":[{"UID":"c"}],"NumPDBViolations":0}}})")
        << "a node without victims is no answer";
    ASSERT_EQ(args->nodes.size(), 3U) << "and yet it is a question";
    EXPECT_EQ(args->nodes[2].node, "n3");
    EXPECT_TRUE(args->nodes[2].victims.empty());
  }
  const Body neither = WithPod("");
  EXPECT_TRUE(codec.ReadPreemptionArgs(neither)->nodes.empty());
  std::string none;
  WritePreemptionResult({}, none);
  EXPECT_EQ(none, R"({"NodeNameToMetaVictims":{}})");
}

TEST(ExtenderV1, RefusesVictimsThatItCannotIdentifyOrCount) {
  const std::string_view cases[] = {
      R"(,"NodeNameToMetaVictims":[])",
      R"(,"NodeNameToMetaVictims":{"n":3})",
      R"(,"NodeNameToMetaVictims":{"n":{"Pods":{}}})",
      R"(,"NodeNameToMetaVictims":{"n":{"Pods":[null]}})",
      R"(,"NodeNameToMetaVictims":{"n":{"Pods":[{}]}})",
      R"(,"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":""}]}})",
      R"(,"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":5}]}})",
      R"(,"NodeNameToMetaVictims":{"n":{"NumPDBViolations":1.0}})",
      R"(,"NodeNameToMetaVictims":{"n":{"NumPDBViolations":"1"}})",
      R"(,"NodeNameToMetaVictims":{"n":{"NumPDBViolations":9223372036854775808}})",
      R"(,"NodeNameToVictims":{"n":{"Pods":[{"metadata":{}}]}})",
      R"(,"NodeNameToVictims":{"n":{"Pods":[{"UID":"a"}]}})",
  };
  Codec codec;
  for (const std::string_view rest : cases) {
    const Body body = WithPod(rest);
    EXPECT_EQ(codec.ReadPreemptionArgs(body).status().code(), absl::StatusCode::kInvalidArgument)
        << rest;
  }
  const Body no_pod(R"({"NodeNameToMetaVictims":{}})");
  EXPECT_FALSE(codec.ReadPreemptionArgs(no_pod).ok());
}

// ---- bind ---------------------------------------------------------------------------------------

TEST(ExtenderV1, ReadsBindingsInAnyCase) {
  Codec codec;
  for (const std::string_view text :
       {R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"})",
        R"({"podname":"p","podnamespace":"ns","poduid":"u","node":"n","extra":[]})"}) {
    const Body body{std::string(text)};
    const absl::StatusOr<BindingArgs> args = codec.ReadBindingArgs(body);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->pod, (PodName{"ns", "p"}));
    EXPECT_EQ(args->uid, PodUid("u"));
    EXPECT_EQ(args->node, NodeName("n"));
  }
}

TEST(ExtenderV1, RefusesBindingsWithAGap) {
  Codec codec;
  for (const std::string_view key : {"PodName", "PodNamespace", "PodUID", "Node"}) {
    for (const std::string_view value : {"null", "\"\"", "7", "[]"}) {
      std::string text = R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n",)";
      text += fmt::format("\"{}\":{}}}", key, value);
      const Body body(text);
      const absl::StatusOr<BindingArgs> args = codec.ReadBindingArgs(body);
      EXPECT_EQ(args.status().code(), absl::StatusCode::kInvalidArgument) << text;
      EXPECT_NE(std::string(args.status().message()).find(fmt::format("in {}", key)),
                std::string::npos)
          << args.status();
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
