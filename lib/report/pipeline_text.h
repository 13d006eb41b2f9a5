// The stages of a pipeline as text and JSON.
#pragma once

#include <ostream>

#include "plan/plan.h"
#include "report/json_writer.h"
#include "report/style.h"

namespace shardplan::report {

/// Nothing without a pipeline.
void write_pipeline_text(std::ostream& out, const plan::Plan& plan, const Style& style);

/// The field "pipeline": null without one.
void write_pipeline_json(JsonWriter& json, const plan::Plan& plan);

}  // namespace shardplan::report
