#include "report/json_writer.h"
#include "report/run_text.h"
#include "report/schema_version.h"

namespace shardplan::report {
namespace {

void write_prediction(JsonWriter& json, std::string_view key, std::string_view counted, const Prediction& prediction) {
    json.object(
        key,
        [&] {
            json.field("predicted", prediction.predicted);
            json.field(counted, prediction.counted);
            json.field("equal", prediction.equal());
        },
        JsonLayout::one_line);
}

void write_comparison(JsonWriter& json, std::string_view key, const std::optional<VerifyResult>& found) {
    if (!found) {
        json.field(key, nullptr);
        return;
    }
    const VerifyResult& verify = *found;
    json.object(key, [&] {
        json.field("passed", verify.passed);
        json.field("tolerance", verify.tolerance);
        json.field("elements", verify.elements);
        json.field("max_abs", verify.max_abs);
        json.field("max_rel", verify.max_rel);
        json.field("rms_rel", verify.rms_rel);
        json.list("worst_index", verify.worst_index);
        json.field("expected", verify.expected);
        json.field("actual", verify.actual);
        json.field("routing_ties", verify.routing_ties);
        if (verify.own_rms > 0.0) {
            json.field("own_rms", verify.own_rms);
        }
    });
}

void write_generated(JsonWriter& json, const RunSummary& run) {
    if (!run.generated) {
        return;
    }
    json.object("generated", [&] {
        json.array("ids", run.generated->ids, [&](const auto& sequence) { json.items(sequence); });
        if (run.generated->mismatches) {
            json.field("mismatches", *run.generated->mismatches);
        }
        if (run.generated->changed_by_rounding) {
            json.field("changed_by_rounding", *run.generated->changed_by_rounding);
        }
    });
}

void write_counts(JsonWriter& json, const RunSummary& run) {
    json.array("collectives", run.collectives, [&](const CollectiveCount& row) {
        json.object([&] {
            json.field("kind", row.kind);
            write_prediction(json, "calls", "counted", row.calls);
            write_prediction(json, "wire_bytes_total", "counted", row.bytes);
            if (row.most) {
                json.field("worst_wire_bytes_total", *row.most);
                json.field("holds", row.holds());
            }
            if (row.routed) {
                json.field("routed_wire_bytes_total", *row.routed);
            }
        });
    });
    json.array("memory", run.memory, [&](const MemoryCount& row) {
        json.object([&] {
            json.field("category", row.category);
            write_prediction(json, "bytes", "allocated", row.bytes);
        });
    });
    json.field("kernel_scratch_bytes", run.kernel_scratch_bytes);
    json.field("planned_bytes", run.planned_bytes);
    json.field("peak_resident_bytes", run.resident_bytes);
}

void write_times(JsonWriter& json, const RunSummary& run) {
    json.object("time", [&] {
        json.field("step_seconds", run.step_seconds);
        json.field("mean_step_seconds", run.mean_step_seconds);
        json.field("tokens_per_second", run.tokens_per_second);
        json.field("step_flops", run.step_flops);
        json.field("step_bytes", run.step_bytes);
        json.field("flops_per_second", run.step_seconds > 0.0 ? run.step_flops / run.step_seconds : 0.0);
        json.field("bytes_per_second",
                   run.step_seconds > 0.0 ? static_cast<double>(run.step_bytes) / run.step_seconds : 0.0);
        json.field("outside_seconds", run.outside_seconds);
        json.array("steps", run.times, [&](const StepTime& time) {
            json.object(
                [&] {
                    json.field("kind", time.kind);
                    json.field("calls", time.calls);
                    json.field("seconds", time.seconds);
                },
                JsonLayout::one_line);
        });
    });
}

}  // namespace

void write_run_json(std::ostream& out, const RunSummary& run) {
    JsonWriter json(out);
    json.object([&] {
        json.field("schema_version", schema_version);
        json.field("job", run.job);
        json.field("plan_hash", run.plan_hash);
        json.field("mesh", run.mesh);
        json.field("provider", run.provider);
        json.field("kernels", run.kernels);
        json.field("ranks", run.ranks);
        json.field("threads", run.threads);
        json.field("oversubscribed", run.oversubscribed);
        json.array("binding", run.binding, [&](const RankBinding& rank) {
            json.object(
                [&] {
                    json.field("host", rank.host);
                    json.field("cores", rank.cores);
                    json.field("threads", rank.threads);
                },
                JsonLayout::one_line);
        });
        json.field("passed", run.passed());
        json.field("predictions_hold", run.predictions_hold());
        write_comparison(json, "verify", run.verify);
        if (run.rounding) {
            write_comparison(json, "rounding", run.rounding);
        }
        write_generated(json, run);
        write_counts(json, run);
        write_times(json, run);
        json.list("notes", run.notes, JsonLayout::lines);
    });
}

}  // namespace shardplan::report
