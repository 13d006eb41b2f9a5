// quantization_config of Hugging Face: only what restricts where weights can be cut. The values themselves are never
// dequantised here; add_notes says so.
#pragma once

#include "model/field_reader.h"
#include "model/model_spec.h"

namespace shardplan::model {

/// group_size (awq, gptq; also below config_groups, as compressed-tensors and modelopt write it) and
/// weight_block_size [rows, columns] (fp8). -1 and null mean one scale per row: no restriction. SP1005, SP1006; false
/// after an error.
bool read_quantization(const ConfigValue& quantization, diag::Diagnostics& diagnostics, QuantizationSpec& result);

}  // namespace shardplan::model
