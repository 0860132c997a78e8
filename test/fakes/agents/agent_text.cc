#include "test/fakes/agents/agent_text.h"

#include <charconv>

namespace tranche::fakes {
namespace {

constexpr std::size_t kDeviceFields = 4;

std::optional<std::vector<ListedDevice>> ReadContainer(const std::string& text) {
  std::vector<ListedDevice> devices;
  if (text.empty()) return devices;
  if (text.back() != ':') return std::nullopt;
  for (const std::string& part : SplitText(text.substr(0, text.size() - 1), ':')) {
    const std::vector<std::string> fields = SplitText(part, ',');
    if (fields.size() != kDeviceFields || fields[0].empty()) return std::nullopt;
    const std::optional<uint64_t> memory = ReadNumber(fields[2]);
    const std::optional<uint64_t> cores = ReadNumber(fields[3]);
    if (!memory || !cores) return std::nullopt;
    devices.push_back(
        {fields[0], fields[1], static_cast<int64_t>(*memory), static_cast<int64_t>(*cores)});
  }
  return devices;
}

}  // namespace

std::vector<std::string> SplitText(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos;
       at = text.find(separator, from)) {
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

std::optional<uint64_t> ReadNumber(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> ReadCards(const std::string& text, const FakeNode& node) {
  std::vector<int> cards;
  for (const std::string& part : SplitText(text, ',')) {
    const std::optional<uint64_t> card = ReadNumber(part);
    if (!card || *card >= node.cards.size()) return std::nullopt;
    cards.push_back(static_cast<int>(*card));
  }
  return cards;
}

std::optional<DeviceList> ReadDeviceList(const std::string& text, bool closed) {
  std::vector<std::string> parts = SplitText(text, ';');
  if (closed) {
    if (!parts.back().empty()) return std::nullopt;
    parts.pop_back();
  }
  DeviceList list;
  for (const std::string& part : parts) {
    const auto devices = ReadContainer(part);
    if (!devices) return std::nullopt;
    list.push_back(*devices);
  }
  return list;
}

std::string WriteDeviceList(const DeviceList& list, bool closed) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!closed && i > 0) text += ';';
    for (const ListedDevice& device : list[i]) {
      text += device.uuid + "," + device.type + "," + std::to_string(device.memory_mib) + "," +
              std::to_string(device.cores) + ":";
    }
    if (closed) text += ';';
  }
  return text;
}

std::string PlainUuid(const std::string& uuid) { return uuid.substr(0, uuid.find('[')); }

int ContainerPlace(const FakePod& pod, std::size_t n, bool with_init) {
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    if (!with_init && pod.containers[i].init) continue;
    if (n == 0) return static_cast<int>(i);
    --n;
  }
  return -1;
}

}  // namespace tranche::fakes
