// Lists of numbers folded for people: layers "{0..31}", "{0,2,4..30}", devices "0-3,8", indices "0:512".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval.h"

namespace shardplan::report {

/// Layers, ascending: "{0..31}"; three or more neighbours fold to a..b, four or more with one larger step to
/// a,a+s,a+2s..z; one layer is "5", none is "". No two lists share a text.
std::string fold_layers(const std::vector<int>& layers);

/// Devices, ascending: "0-3,8"; four or more with one larger step as taskset(1) writes it: "0-12:4".
std::string fold_devices(const std::vector<std::int64_t>& devices);

/// `name` with its "{}" replaced by the folded layers: "model.layers.{0..31}.mlp.up_proj.weight".
std::string folded_name(std::string_view name, const std::vector<int>& layers);

/// "0:512"
std::string interval_text(base::Interval interval);
/// "[0:512, 0:4096]"
std::string intervals_text(const std::vector<base::Interval>& intervals);

}  // namespace shardplan::report
