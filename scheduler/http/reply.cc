#include "scheduler/http/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace tranche::http {
namespace {

std::string_view Phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

bool SafeName(std::string_view name) {
  const auto safe = [](char c) { return c > 0x20 && c < 0x7f && c != ':'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), safe);
}

bool SafeValue(std::string_view value) {
  const auto safe = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  };
  return std::all_of(value.begin(), value.end(), safe);
}

void AppendDate(std::string& out, std::chrono::system_clock::time_point now) {
  using namespace std::chrono;
  static constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                            "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(floor<seconds>(now) - day);
  fmt::format_to(std::back_inserter(out), "Date: {}, {:02} {} {:04} {:02}:{:02}:{:02} GMT\r\n",
                 kDays[weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                 kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                 time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace

bool CarriesBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string EncodeHead(const Response& response, bool keep_alive,
                       std::chrono::system_clock::time_point now) {
  std::string out;
  out.reserve(256);
  auto end = std::back_inserter(out);
  fmt::format_to(end, "HTTP/1.1 {} {}\r\n", response.status, Phrase(response.status));
  AppendDate(out, now);
  if (CarriesBody(response.status)) {
    if (!response.content_type.empty() && SafeValue(response.content_type)) {
      fmt::format_to(end, "Content-Type: {}\r\n", response.content_type);
    }
    fmt::format_to(end, "Content-Length: {}\r\n", response.body.size());
  }
  if (!keep_alive) out += "Connection: close\r\n";
  for (const auto& [name, value] : response.headers) {
    if (SafeName(name) && SafeValue(value)) fmt::format_to(end, "{}: {}\r\n", name, value);
  }
  out += "\r\n";
  return out;
}

}  // namespace tranche::http
