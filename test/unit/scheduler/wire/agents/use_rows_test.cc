// Answers of Prometheus about the use of GPUs: what a row is of, and what is no answer.
#include "scheduler/wire/agents/use_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

using testing::HasSubstr;

std::string AnswerOf(const std::string& rows) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + rows + "]}}";
}
std::string RowOf(const std::string& labels, const std::string& value = R"("0.5")") {
  return R"({"metric":{)" + labels + R"(},"value":[1795770000.123,)" + value + "]}";
}

TEST(UseRowsTest, ARowIsOfAGpuAnInstanceOrAPod) {
  struct Case {
    const char* what;
    std::string row;
    UseRow read;
  };
  const Case kCases[] = {
      {"a card", RowOf(R"("UUID":"GPU-1")"), {GpuUuid("GPU-1"), "", {}, 500}},
      {"a pod's",
       RowOf(R"("UUID":"GPU-1","namespace":"a","pod":"p")"),
       {GpuUuid("GPU-1"), "", {"a", "p"}, 500}},
      {"an instance of MIG",
       RowOf(R"("UUID":"GPU-1","GPU_I_ID":"9","namespace":"a","pod":"p")"),
       {GpuUuid("GPU-1"), "9", {"a", "p"}, 500}},
      {"renamed labels: pod is the exporter",
       RowOf(R"("UUID":"GPU-1","namespace":"gpu-operator","pod":"dcgm-x",)"
             R"("exported_namespace":"a","exported_pod":"p")"),
       {GpuUuid("GPU-1"), "", {"a", "p"}, 500}},
      {"renamed, and held by nobody",
       RowOf(R"("UUID":"GPU-1","namespace":"gpu-operator","pod":"dcgm-x","exported_pod":"")"),
       {GpuUuid("GPU-1"), "", {}, 500}},
      {"a pod alone", RowOf(R"("namespace":"a","pod":"p")"), {GpuUuid(), "", {"a", "p"}, 500}},
  };
  for (const Case& c : kCases) {
    const auto read = DecodeUseRows(AnswerOf(c.row));
    ASSERT_TRUE(read.ok()) << c.what << read.status();
    EXPECT_EQ(read->rows, std::vector{c.read}) << c.what;
    EXPECT_EQ(read->unreadable, 0) << c.what;
  }
}

TEST(UseRowsTest, ValuesAreThousandthsRoundedUp) {
  struct Case {
    const char* value;
    std::optional<int> permille;
  };
  const Case kCases[] = {
      {R"("0")", 0},
      {R"("0.00001")", 1},
      {R"("0.01")", 10},
      {R"("0.0101")", 11},
      {R"("1")", 1000},
      {R"("97")", 1000},
      {R"("1e-3")", 1},
      {R"("+Inf")", std::nullopt},
      {R"("NaN")", std::nullopt},
      {R"("-1")", {}},
      {R"("")", {}},
      {R"("0.5x")", {}},
      {"0.5", {}},
      {"null", {}},
  };
  for (const Case& c : kCases) {
    const auto read = DecodeUseRows(AnswerOf(RowOf(R"("UUID":"GPU-1")", c.value)));
    ASSERT_TRUE(read.ok()) << c.value << read.status();
    ASSERT_EQ(read->rows.size(), c.permille ? 1 : 0) << c.value;
    EXPECT_EQ(read->unreadable, c.permille ? 0 : 1) << c.value;
    if (c.permille) {
      EXPECT_EQ(read->rows[0].amount, *c.permille) << c.value;
    }
  }
}

TEST(UseRowsTest, ALabelSaysWhatIsMeasured) {
  struct Case {
    const char* measure;
    const char* value;
    UseMeasure read;
    int64_t amount;
  };
  const Case kCases[] = {
      {"own", R"("0.0404")", UseMeasure::kOwn, 41},
      {"mean", R"("0.0404")", UseMeasure::kMean, 41},
      {"mean", R"("1.5")", UseMeasure::kMean, 1000},
      {"memory", R"("0")", UseMeasure::kMemory, 0},
      {"memory", R"("6123.5")", UseMeasure::kMemory, 6124},
      {"memory", R"("1e300")", UseMeasure::kMemory, 1 << 30},
      {"temperature", R"("63")", UseMeasure::kCelsius, 63},
      {"power", R"("401.3")", UseMeasure::kWatts, 402},
  };
  for (const Case& c : kCases) {
    const std::string labels = fmt::format(R"("UUID":"GPU-1","measure":"{}")", c.measure);
    const auto read = DecodeUseRows(AnswerOf(RowOf(labels, c.value)));
    ASSERT_TRUE(read.ok()) << c.measure << read.status();
    ASSERT_EQ(read->rows.size(), 1) << c.measure;
    EXPECT_EQ(read->rows[0], (UseRow{GpuUuid("GPU-1"), "", {}, c.amount, c.read})) << c.value;
  }
}

TEST(UseRowsTest, RowsThatSayNothingAreLeftOut) {
  const std::string long_name(300, 'x');
  for (const std::string& row :
       {std::string("1"), std::string("{}"), RowOf(""), RowOf(R"("namespace":"a")"),
        RowOf(R"("UUID":7)"), RowOf(R"("UUID":"GPU-1","measure":"heat")"),
        RowOf(R"("UUID":")" + long_name + "\""),
        std::string(R"({"metric":{"UUID":"GPU-1"},"value":[1]})"),
        std::string(R"({"metric":{"UUID":"GPU-1"},"values":[[1,"0"]]})")}) {
    const auto read = DecodeUseRows(AnswerOf(row + "," + RowOf(R"("UUID":"GPU-1")")));
    ASSERT_TRUE(read.ok()) << row << read.status();
    EXPECT_EQ(read->rows.size(), 1) << row;
    EXPECT_EQ(read->unreadable, 1) << row;
  }
}

TEST(UseRowsTest, OtherAnswersAreErrors) {
  struct Case {
    std::string text;
    const char* error;
  };
  std::string many = RowOf(R"("UUID":"GPU-1")");
  for (std::size_t i = 0; i < kMostUseRows; ++i) many += ",1";
  const Case kCases[] = {
      {"", "JSON"},
      {"<html>", "JSON"},
      {"[]", "expected an answer of Prometheus, found other JSON"},
      {R"({"kind":"Status"})", "expected an answer of Prometheus, found other JSON"},
      {R"({"status":"error","errorType":"bad_data","error":"parse error: x"})",
       R"(expected rows, found the error "bad_data": "parse error: x")"},
      {R"({"status":"success","data":{"resultType":"matrix","result":[]}})",
       R"(expected a vector, found "matrix")"},
      {R"({"status":"success","data":{}})", "expected a vector, found none"},
      {R"({"status":"success"})", "expected a vector, found none"},
      {AnswerOf(many), "expected at most 600000 rows, found more"},
  };
  for (const Case& c : kCases) {
    const auto read = DecodeUseRows(c.text);
    ASSERT_FALSE(read.ok()) << c.text.substr(0, 100);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.error));
  }
  EXPECT_TRUE(DecodeUseRows(AnswerOf(""))->rows.empty());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
