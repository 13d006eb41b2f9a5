#include "workload.h"

namespace shardplan::bench {

void register_attention() {}

}  // namespace shardplan::bench
