#include "scheduler/probe/surveyor.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/probe/gpus.h"
#include "scheduler/probe/pod_resources.h"
#include "scheduler/probe/program.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

constexpr auto kKubeletTimeout = std::chrono::seconds(5);

// Driver and cards: while these are the same, so is the matrix, but for links that fail.
std::string KeyOf(const NodeReading& reading) {
  std::string key = reading.driver;
  for (const Gpu& gpu : reading.gpus) key += fmt::format(" {}={}", gpu.bus, gpu.uuid);
  return key;
}

// Without what steers a terminal: escape sequences (nvidia-smi underlines the head of the matrix)
// and control characters other than tab and new line.
std::string PlainText(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '\x1b' && at + 1 < text.size() && text[at + 1] == '[') {
      at = text.find_first_not_of("0123456789;:?", at + 2);  // the byte that ends the sequence
      if (at == std::string_view::npos) break;
      continue;
    }
    const bool control = (byte >= 0 && byte < ' ') || byte == '\x7f';
    if (!control || byte == '\t' || byte == '\n') plain.push_back(byte);
  }
  return plain;
}

}  // namespace

Surveyor::Surveyor(Sources sources) : sources_(std::move(sources)), pci_(sources_.pci_devices) {}

absl::Status Surveyor::DrawAnew(Nvml& nvml, const std::vector<Gpu>& gpus) {
  matrix_.clear();
  matrix_note_.clear();
  if (gpus.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> printed = OutputOf({sources_.nvidia_smi, {"topo", "-m"}});
  if (printed.ok()) {
    matrix_ = PlainText(*printed);
    if (matrix_.find("GPU0") != std::string::npos) return absl::OkStatus();
  }
  matrix_note_ = fmt::format("{}; NVML's matrix is used, without NICs",
                             printed.ok() ? "nvidia-smi: expected a matrix with GPU0, found none"
                                          : std::string(printed.status().message()));
  TRANCHE_ASSIGN_OR_RETURN(matrix_, DrawMatrix(nvml, pci_, gpus));
  return absl::OkStatus();
}

void Surveyor::AskKubelet(Survey& survey) {
  auto pods = ListPodResources(sources_.pod_resources, kKubeletTimeout);
  if (pods.ok()) {
    survey.reading.pods = std::move(*pods);
  } else {
    survey.notes.push_back(std::string(pods.status().message()));
  }
}

absl::StatusOr<Survey> Surveyor::Look(Time now) {
  TRANCHE_ASSIGN_OR_RETURN(std::unique_ptr<Nvml> nvml, Nvml::Open(sources_.nvml));
  Survey survey;
  TRANCHE_ASSIGN_OR_RETURN(survey.reading.driver, nvml->DriverVersion());
  TRANCHE_ASSIGN_OR_RETURN(std::vector<Gpu> gpus, ReadGpus(*nvml, pci_));
  survey.reading.gpus = std::move(gpus);

  const std::string key = KeyOf(survey.reading);
  if (key != matrix_of_ || now - matrix_at_ >= kMatrixPeriod) {
    TRANCHE_RETURN_IF_ERROR(DrawAnew(*nvml, survey.reading.gpus));
    matrix_of_ = key;
    matrix_at_ = now;
  }
  survey.reading.topology = matrix_;
  if (!matrix_note_.empty()) survey.notes.push_back(matrix_note_);
  AskKubelet(survey);
  return survey;
}

}  // namespace tranche::probe
