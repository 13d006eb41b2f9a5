#include "report/trace_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "report/json_writer.h"
#include "report/steps_text.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

constexpr auto one_line = JsonLayout::one_line;

enum class Track : std::int64_t { model, compute, communication };

class TraceWriter {
public:
    TraceWriter(JsonWriter& json, const plan::Plan& plan) : json_(json), plan_(plan) {}

    void name_tracks(std::int64_t rank) {
        const mesh::Mesh& mesh = plan_.job.mesh;
        std::vector<std::string> coordinates;
        for (int axis = 0; axis < mesh.axis_count(); ++axis) {
            const mesh::AxisId id{static_cast<std::uint8_t>(axis)};
            coordinates.push_back(fmt::format("{}={}", mesh.name(id), mesh.coordinate(rank, id)));
        }
        metadata("process_name", rank, Track::model, fmt::format("rank {} ({})", rank, fmt::join(coordinates, ", ")));
        metadata("thread_name", rank, Track::model, "steps of the model");
        metadata("thread_name", rank, Track::compute, "compute");
        metadata("thread_name", rank, Track::communication, "communication");
    }

    void write(std::int64_t rank, const TraceSpan& span) {
        switch (span.kind) {
            case TraceSpan::Kind::step: return write_step(rank, span);
            case TraceSpan::Kind::receive:
                return event(rank, span, Track::communication, "receive", [&] { json_.field("run", span.run); });
            case TraceSpan::Kind::send:
                return event(rank, span, Track::communication, "send", [&] { json_.field("run", span.run); });
            case TraceSpan::Kind::model_step:
                return event(rank, span, Track::model, fmt::format("step {}", span.run),
                             [&] { json_.field("run", span.run); });
        }
    }

private:
    void metadata(std::string_view what, std::int64_t rank, Track track, std::string_view name) {
        json_.object(
            [&] {
                json_.field("name", what);
                json_.field("ph", "M");
                json_.field("pid", rank);
                json_.field("tid", static_cast<std::int64_t>(track));
                json_.object(
                    "args", [&] { json_.field("name", name); }, one_line);
            },
            one_line);
    }

    template <class Args>
    void event(std::int64_t rank, const TraceSpan& span, Track track, std::string_view name, Args&& args) {
        json_.object(
            [&] {
                json_.field("name", name);
                json_.field("cat", track == Track::model           ? "model"
                                   : track == Track::communication ? "communication"
                                                                   : "compute");
                json_.field("ph", "X");
                json_.field("pid", rank);
                json_.field("tid", static_cast<std::int64_t>(track));
                json_.field("ts", static_cast<double>(span.start_nanoseconds) / 1e3);
                json_.field("dur", static_cast<double>(span.nanoseconds) / 1e3);
                json_.object("args", args, one_line);
            },
            one_line);
    }

    void write_step(std::int64_t rank, const TraceSpan& span) {
        const model::BlockUse& use = plan_.sequence.at(static_cast<std::size_t>(span.use));
        const plan::BlockPlan& block = plan_.blocks[static_cast<std::size_t>(use.block)];
        const plan::Step& step = block.steps.at(static_cast<std::size_t>(span.step));
        const auto common = [&] {
            json_.field("run", span.run);
            json_.field("block", block.name);
            json_.field("layer", use.layer);
            json_.field("step", span.step + 1);
            if (step.loop != 0) {
                json_.field("pass", span.pass);
            }
        };
        if (step.compute) {
            event(rank, span, Track::compute, op_name(plan_, block, *step.compute), [&] {
                common();
                compute_args(block, *step.compute);
            });
        } else {
            const plan::CollectiveStep& collective = *step.collective;
            const std::string name =
                fmt::format("{} {}", mesh::to_string(collective.kind), value_of(block, collective.input).name);
            event(rank, span, Track::communication, name, [&] {
                common();
                json_.list("axes", collective.names);
                json_.field("group_size", collective.group_size);
                operands(block, "inputs", {collective.input});
                operands(block, "outputs", {collective.output});
                json_.field("payload_bytes", collective.payload_bytes);
                json_.field("wire_bytes", collective.wire_bytes);
            });
        }
    }

    void compute_args(const plan::BlockPlan& block, const plan::ComputeStep& compute) {
        json_.field("kind", to_string(compute.kind));
        json_.field("module", compute.module);
        operands(block, "inputs", compute.inputs);
        operands(block, "outputs", compute.outputs);
        std::int64_t bytes = 0;
        for (const auto* ids : {&compute.inputs, &compute.outputs}) {
            for (const plan::ValueId id : *ids) {
                bytes += value_of(block, id).local_bytes;
            }
        }
        json_.field("bytes", bytes);
        json_.field("flops", compute.flops);
    }

    void operands(const plan::BlockPlan& block, std::string_view key, const std::vector<plan::ValueId>& ids) {
        std::vector<std::string> texts;
        for (const plan::ValueId id : ids) {
            const plan::Value& value = value_of(block, id);
            texts.push_back(
                fmt::format("{} {} {}", value.name, tensor::to_string(value.dtype), shape_text(value.local_shape)));
        }
        json_.list(key, texts);
    }

    JsonWriter& json_;
    const plan::Plan& plan_;
};

}  // namespace

void write_trace_json(std::ostream& out, const plan::Plan& plan, const std::vector<std::vector<TraceSpan>>& ranks) {
    JsonWriter json(out);
    TraceWriter writer(json, plan);
    const auto write_rank = [&](const std::vector<TraceSpan>& spans) {
        const std::int64_t rank = &spans - ranks.data();
        writer.name_tracks(rank);
        for (const TraceSpan& span : spans) {
            writer.write(rank, span);
        }
    };
    json.object([&] {
        json.field("displayTimeUnit", "ms");
        json.array("traceEvents", ranks, write_rank);
    });
}

}  // namespace shardplan::report
