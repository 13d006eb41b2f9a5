#include "report/steps_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/number_text.h"
#include "report/range_text.h"
#include "report/table.h"
#include "report/utf8.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

using plan::BlockPlan;
using plan::CollectiveStep;
using plan::ComputeKind;
using plan::ComputeStep;

/// "12 x7" for a step of a loop.
std::string number_text(std::size_t number, const plan::Step& step) {
    return step.times == 1 ? fmt::format("{}", number) : fmt::format("{} x{}", number, step.times);
}

/// The op, and which part of it where it takes several steps: "attention (softmax_merge)".
std::string step_text(const plan::Plan& plan, const BlockPlan& block, const ComputeStep& step) {
    const std::string name = op_name(plan, block, step);
    const bool whole = step.kind == ComputeKind::op || step.kind == ComputeKind::fused_linear;
    return whole ? name : fmt::format("{} ({})", name, to_string(step.kind));
}

std::string shapes_text(const BlockPlan& block, const std::vector<plan::ValueId>& ids) {
    std::string text;
    for (const plan::ValueId id : ids) {
        text += (text.empty() ? "" : " ") + shape_text(value_of(block, id).local_shape);
    }
    return text;
}

void add_compute(Table& table, const plan::Plan& plan, const BlockPlan& block, std::string number,
                 const ComputeStep& step) {
    const std::string shapes =
        fmt::format("{} -> {}", shapes_text(block, step.inputs), shapes_text(block, step.outputs));
    table.add_row({std::move(number), step_text(plan, block, step), step.module, shapes});
}

std::string ratio_text(std::int64_t worst, std::int64_t balanced) {
    return balanced == 0 ? "0" : fmt::format("{:.2f}", static_cast<double>(worst) / static_cast<double>(balanced));
}

void add_collective(Table& table, const BlockPlan& block, std::string number, const CollectiveStep& step,
                    const Style& style) {
    const plan::Value& input = value_of(block, step.input);
    const plan::Value& output = value_of(block, step.output);
    table.add_row({std::move(number), fmt::format("{} {}", marks(style).moved, to_string(step.kind)),
                   fmt::format("over {} ({})", fmt::join(step.names, ","), step.group_size),
                   fmt::format("{} -> {}", shape_text(input.local_shape), shape_text(output.local_shape)),
                   bytes_text(step.payload_bytes), bytes_text(step.wire_bytes)},
                  Paint::moved);
    const std::string reason = step.reason.empty() ? "" : fmt::format(" {}", step.reason);
    const std::string bound = step.send_counts < 0
                                  ? ""
                                  : fmt::format("; bytes of balanced experts, at most {} times as many",
                                                ratio_text(step.worst_wire_bytes_total, step.wire_bytes_total));
    table.add_note(fmt::format("of {}{}{}", input.name, reason, bound), 2);
}

/// Number, from 1, of the last of the steps that are executed as one.
std::size_t last_joined(const BlockPlan& block, int joined) {
    std::size_t last = 0;
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
        last = block.steps[i].joined == joined ? i + 1 : last;
    }
    return last;
}

void write_steps(std::ostream& out, const plan::Plan& plan, const BlockPlan& block, const Style& style) {
    Table table({{"#", true},
                 {"step", false, 18},
                 {"module / axes", false, 20},
                 {"local shapes", false, 30},
                 {"payload", true},
                 {"wire/device", true}});
    std::size_t number = 0;
    for (const plan::Step& step : block.steps) {
        ++number;
        if (step.compute) {
            add_compute(table, plan, block, number_text(number, step), *step.compute);
        } else if (step.collective) {
            add_collective(table, block, number_text(number, step), *step.collective, style);
            if (step.joined != 0 && last_joined(block, step.joined) > number) {
                table.add_note(fmt::format("one step of the module up to #{}", last_joined(block, step.joined)), 2);
            }
        }
    }
    table.print(out, style);
}

void write_weight_uses(std::ostream& out, const BlockPlan& block, const Style& style) {
    if (block.weight_uses.empty()) {
        return;
    }
    Table table({{"weight of", false, 20}, {"is"}, {"wire/device", true}, {"the other way", true}});
    for (const plan::WeightUse& use : block.weight_uses) {
        const bool other = use.alternative_bytes >= 0;
        table.add_row({use.op, use.gathered ? "gathered" : "stationary", bytes_text(use.chosen_bytes),
                       fmt::format("{}: {}", use.gathered ? "stationary" : "gathered",
                                   other ? bytes_text(use.alternative_bytes) : "none")});
    }
    out << '\n';
    table.print(out, style);
}

void write_dispatches(std::ostream& out, const BlockPlan& block) {
    const auto name = [](bool all_to_all) { return all_to_all ? "alltoall" : "allgather"; };
    for (const plan::DispatchUse& use : block.dispatches) {
        const std::string other = use.alternative_bytes < 0 ? ""
                                                            : fmt::format(", {} {}", name(!use.all_to_all),
                                                                          bytes_text(use.alternative_bytes));
        out << fmt::format("  tokens of {} over {}: {} {} a device{} ({})\n", use.op, fmt::join(use.axes, ","),
                           name(use.all_to_all), bytes_text(use.chosen_bytes), other, use.reason);
    }
}

std::string_view plain_name(plan::CpCommType type) {
    switch (type) {
        case plan::CpCommType::automatic: return "auto";
        case plan::CpCommType::all_gather: return "gathered (all_gather)";
        case plan::CpCommType::p2p: return "ring (p2p)";
        case plan::CpCommType::a2a: return "Ulysses (a2a)";
    }
    return "auto";
}

void write_attention(std::ostream& out, const BlockPlan& block, const Style& style) {
    if (!block.attention) {
        return;
    }
    const plan::AttentionChoice& choice = *block.attention;
    out << fmt::format("\n  attention over {} ({}): {}, {}\n", fmt::join(choice.axes, ","), choice.group_size,
                       plain_name(choice.type), choice.reason);
    Table table({{"way", false, 20}, {"wire/device", true}, {"peak of the block", true}, {"", false, 30}});
    for (const plan::AttentionChoice::Way& way : choice.ways) {
        if (way.refusal.empty()) {
            table.add_row({std::string(plain_name(way.type)), bytes_text(way.wire_bytes), bytes_text(way.peak_bytes),
                           way.type == choice.type ? "taken" : ""});
        } else {
            table.add_row({std::string(plain_name(way.type)), "-", "-", "refused"});
            table.add_note(way.refusal, 1);
        }
    }
    table.print(out, style);
}

void write_ends(std::ostream& out, const plan::Plan& plan, const BlockPlan& block) {
    const auto line = [&](std::string_view end, plan::ValueId id) {
        const plan::Value& value = value_of(block, id);
        out << fmt::format("  {:<4}{} {} {} {}, local {}\n", end, printable(value.name), tensor::to_string(value.dtype),
                           shape_text(value.shape), layout_text(plan, value.layout), shape_text(value.local_shape));
    };
    for (const plan::ValueId id : inputs_of(block)) {
        line("in", id);
    }
    if (block.output >= 0) {
        line("out", block.output);
    }
}

}  // namespace

std::string op_name(const plan::Plan& plan, const BlockPlan& block, const ComputeStep& step) {
    const std::vector<model::Op>& ops = plan.graph.blocks.at(static_cast<std::size_t>(block.block)).ops;
    if (step.fused_ops.empty()) {
        return step.op < 0 ? "" : ops.at(static_cast<std::size_t>(step.op)).name;
    }
    std::vector<std::string> names;
    for (const int op : step.fused_ops) {
        names.push_back(ops.at(static_cast<std::size_t>(op)).name);
    }
    return fmt::format("{}", fmt::join(names, "+"));
}

void write_block_text(std::ostream& out, const plan::Plan& plan, const BlockPlan& block, std::int64_t uses,
                      const Style& style) {
    const std::string layers = block.layers.empty() ? "" : fmt::format("layers {}, ", fold_layers(block.layers));
    const std::string times = uses == 1 ? "once" : fmt::format("{} times", uses);
    out << paint(style, Paint::heading, "Steps of " + printable(block.name))
        << fmt::format("  ({}runs {})\n", layers, times);
    write_ends(out, plan, block);
    write_steps(out, plan, block, style);
    write_weight_uses(out, block, style);
    write_dispatches(out, block);
    write_attention(out, block, style);
    out << fmt::format("  peak: activations {}, communication {}; arena {}\n", bytes_text(block.peak_activation_bytes),
                       bytes_text(block.peak_communication_bytes), bytes_text(block.arena_bytes));
}

}  // namespace shardplan::report
