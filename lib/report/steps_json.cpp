#include "report/steps_json.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "report/enum_text.h"
#include "report/steps_text.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

using plan::BlockPlan;

constexpr auto one_line = JsonLayout::one_line;

void write_value(JsonWriter& json, const plan::Plan& plan, const plan::Value& value, plan::ValueId id) {
    json.object([&] {
        json.field("id", id);
        json.field("name", value.name);
        json.field("kind", text_of(value.kind));
        json.field("dtype", tensor::to_string(value.dtype));
        json.list("shape", value.shape);
        const partition::PartitionSpec spec = plan.mesh.spec(value.layout);
        write_spec_axes_json(json, spec);
        json.field("spec", to_string(spec));
        json.list("partial_over", pending_names(plan, value.layout));
        json.list("local_shape", value.local_shape);
        json.field("local_bytes", value.local_bytes);
        if (value.stored >= 0) {
            json.field("stored", value.stored);
        }
        if (value.alias_of >= 0) {
            json.field("alias_of", value.alias_of);
        }
        if (value.offset >= 0) {
            json.field("arena_offset", value.offset);
        }
    });
}

void write_operands(JsonWriter& json, std::string_view key, const BlockPlan& block,
                    const std::vector<plan::ValueId>& ids) {
    json.array(key, ids, [&](plan::ValueId id) {
        const plan::Value& value = value_of(block, id);
        json.object(
            [&] {
                json.field("value", id);
                json.field("name", value.name);
                json.list("local_shape", value.local_shape);
            },
            one_line);
    });
}

void write_compute(JsonWriter& json, const plan::Plan& plan, const BlockPlan& block, const plan::ComputeStep& step) {
    json.field("op", op_name(plan, block, step));
    json.field("kind", to_string(step.kind));
    if (!step.fused_ops.empty()) {
        json.list("ops", step.fused_ops);
    } else {
        json.list("ops", std::array{step.op});
    }
    json.field("module", step.module);
    json.list("axes", std::array<std::string, 0>{});
    json.field("payload_bytes", 0);
    json.field("wire_bytes", 0);
    json.field("flops", step.flops);
    if (step.scratch_offset >= 0) {
        json.field("scratch_bytes", step.scratch_bytes);
        json.field("scratch_offset", step.scratch_offset);
    }
    if (step.grouped) {
        json.field("grouped", true);
    }
    if (step.key_shift != 0) {
        json.field("key_shift", step.key_shift);
    }
    write_operands(json, "inputs", block, step.inputs);
    write_operands(json, "outputs", block, step.outputs);
}

void write_collective(JsonWriter& json, const BlockPlan& block, const plan::CollectiveStep& step) {
    json.field("collective", to_string(step.kind));
    json.field("module", nullptr);
    json.list("axes", step.names);
    json.field("group_size", step.group_size);
    json.field("dim", step.dim);
    json.field("concat_dim", step.concat_dim);
    if (step.shift != 0) {
        json.field("shift", step.shift);
    }
    json.field("payload_bytes", step.payload_bytes);
    json.field("wire_bytes", step.wire_bytes);
    json.field("wire_bytes_total", step.wire_bytes_total);
    json.field("staging_bytes", step.staging_bytes);
    if (step.staging_offset >= 0) {
        json.field("staging_offset", step.staging_offset);
    }
    if (step.send_counts >= 0) {
        json.field("worst_wire_bytes_total", step.worst_wire_bytes_total);
        json.field("send_counts", step.send_counts);
        json.field("receive_counts", step.receive_counts);
    }
    json.field("reason", step.reason);
    write_operands(json, "inputs", block, {step.input});
    write_operands(json, "outputs", block, {step.output});
}

void write_steps(JsonWriter& json, const plan::Plan& plan, const BlockPlan& block) {
    json.array("steps", block.steps, [&](const plan::Step& step) {
        json.object([&] {
            if (step.compute) {
                write_compute(json, plan, block, *step.compute);
            } else if (step.collective) {
                write_collective(json, block, *step.collective);
            }
            if (step.loop != 0) {
                json.field("loop", step.loop);
                json.field("times", step.times);
            }
            if (step.joined != 0) {
                json.field("joined", step.joined);
            }
            json.list("last_use", step.last_use);
        });
    });
}

void write_weight_uses(JsonWriter& json, const BlockPlan& block) {
    json.array("weight_uses", block.weight_uses, [&](const plan::WeightUse& use) {
        json.object(
            [&] {
                json.field("op", use.op);
                json.field("use", use.gathered ? "gathered" : "stationary");
                json.field("chosen_bytes", use.chosen_bytes);
                if (use.alternative_bytes >= 0) {
                    json.field("alternative_bytes", use.alternative_bytes);
                } else {
                    json.field("alternative_bytes", nullptr);
                }
            },
            one_line);
    });
}

void write_dispatches(JsonWriter& json, const BlockPlan& block) {
    json.array("dispatches", block.dispatches, [&](const plan::DispatchUse& use) {
        json.object([&] {
            json.field("op", use.op);
            json.field("dispatcher", use.all_to_all ? "alltoall" : "allgather");
            json.list("axes", use.axes);
            json.field("chosen_bytes", use.chosen_bytes);
            if (use.alternative_bytes >= 0) {
                json.field("alternative_bytes", use.alternative_bytes);
            } else {
                json.field("alternative_bytes", nullptr);
            }
            json.field("reason", use.reason);
        });
    });
}

void write_attention(JsonWriter& json, const plan::AttentionChoice& choice) {
    json.object("attention", [&] {
        json.field("cp_comm_type", to_string(choice.type));
        json.list("axes", choice.axes);
        json.field("group_size", choice.group_size);
        json.field("reason", choice.reason);
        json.array("ways", choice.ways, [&](const plan::AttentionChoice::Way& way) {
            json.object(
                [&] {
                    json.field("cp_comm_type", to_string(way.type));
                    if (way.refusal.empty()) {
                        json.field("wire_bytes", way.wire_bytes);
                        json.field("peak_bytes", way.peak_bytes);
                    } else {
                        json.field("refused", way.refusal);
                    }
                },
                one_line);
        });
    });
}

}  // namespace

void write_spec_axes_json(JsonWriter& json, const partition::PartitionSpec& spec) {
    json.array(
        "axes", spec.entries, [&](const partition::SpecEntry& entry) { json.items(entry); }, one_line);
}

void write_blocks_json(JsonWriter& json, const plan::Plan& plan) {
    const std::vector<std::int64_t> uses = uses_of_blocks(plan);
    std::size_t next = 0;
    json.array("layers", plan.blocks, [&](const BlockPlan& block) {
        json.object([&] {
            json.field("name", block.name);
            json.list("layers", block.layers);
            json.field("uses", uses[next++]);
            if (block.input) {
                json.field("input", *block.input);
            } else {
                json.field("input", nullptr);
            }
            json.field("output", block.output);
            json.field("peak_activation_bytes", block.peak_activation_bytes);
            json.field("peak_communication_bytes", block.peak_communication_bytes);
            json.field("arena_bytes", block.arena_bytes);
            plan::ValueId id = 0;
            json.array("values", block.values, [&](const plan::Value& value) { write_value(json, plan, value, id++); });
            write_steps(json, plan, block);
            write_weight_uses(json, block);
            write_dispatches(json, block);
            if (block.attention) {
                write_attention(json, *block.attention);
            }
        });
    });
}

}  // namespace shardplan::report
