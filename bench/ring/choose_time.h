// How long the product's table of a machine takes: to make, to answer a question for the first
// time, and to answer it again.
#pragma once

#include <memory>
#include <string>

#include "topology/machine/machine.h"

namespace tranche::bench {

struct ChooseTime {
  std::string machine;
  int gpus = 0;
  std::size_t questions = 0;
  double table_us = 0;  // to make the table, mean
  double first_us = 0;  // to answer a question first asked, mean
  double first_p99_us = 0;
  double again_us = 0;  // mean
};

// Over free sets (all of them up to 8 GPUs, else a sample) and every size.
ChooseTime MeasureChoosing(const std::string& name, const std::shared_ptr<const Machine>& machine);
// 16 GPUs that are linked at random, most pairs by 1 to 6 NVLinks: nothing about them is regular.
std::shared_ptr<const Machine> IrregularMachine();

}  // namespace tranche::bench
