// PartitionSpec: one entry per dimension of a tensor, each a list of mesh axis names, left = major (JAX PartitionSpec).
#pragma once

#include <string>
#include <vector>

namespace shardplan::partition {

/// Axes of one dimension; empty = None.
using SpecEntry = std::vector<std::string>;

struct PartitionSpec {
    std::vector<SpecEntry> entries;
    friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

/// JAX's notation without blanks: P(('fsdp','dp'),'sp',None); P('tp',) for one entry (a Python tuple), P() for none.
std::string to_string(const PartitionSpec& spec);

/// "None", "'tp'" or "('fsdp','dp')".
std::string to_string(const SpecEntry& entry);

}  // namespace shardplan::partition
