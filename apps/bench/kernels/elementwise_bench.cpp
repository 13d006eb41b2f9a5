#include "workload.h"

namespace shardplan::bench {

void register_elementwise() {}

}  // namespace shardplan::bench
