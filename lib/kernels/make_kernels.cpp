#include "kernels/kernels.h"
#include "kernels/onednn/onednn_kernels.h"
#include "kernels/reference/reference_kernels.h"

namespace shardplan::kernels {

std::string_view to_string(KernelSet set) {
    return set == KernelSet::reference ? "reference" : "onednn";
}

std::unique_ptr<Kernels> make_kernels(KernelSet set) {
    if (set == KernelSet::reference) {
        return std::make_unique<ReferenceKernels>();
    }
    return make_onednn_kernels();
}

}  // namespace shardplan::kernels
