// The kernels that use oneDNN where it has a fast implementation, and the reference elsewhere.
#pragma once

#include <memory>

#include "kernels/kernels.h"

namespace shardplan::kernels {

std::unique_ptr<Kernels> make_onednn_kernels();

}  // namespace shardplan::kernels
