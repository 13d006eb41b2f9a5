#include <array>

#include "model/families/family.h"

namespace shardplan::model {
namespace {

constexpr auto table = std::to_array<FamilyEntry>({
    {"PanguEmbedded", "internlm", read_internlm},
    {"internlm", "internlm", read_internlm},
    {"llama", "llama", read_llama},
});

}  // namespace

std::span<const FamilyEntry> family_table() {
    return table;
}

}  // namespace shardplan::model
