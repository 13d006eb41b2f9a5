#include "report/plan_json.h"

#include <fmt/format.h>

#include <ostream>
#include <streambuf>
#include <string_view>

#include "base/hash.h"
#include "report/diagnostics_text.h"
#include "report/enum_text.h"
#include "report/job_json.h"
#include "report/json_writer.h"
#include "report/pipeline_text.h"
#include "report/schema_version.h"
#include "report/steps_json.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

constexpr auto one_line = JsonLayout::one_line;

void write_provider(JsonWriter& json, const plan::Plan& plan) {
    json.object("provider", [&] {
        json.field("name", to_string(plan.provider.kind));
        json.list("reasons", plan.provider.reasons, JsonLayout::lines);
    });
}

void write_tensors(JsonWriter& json, const plan::Plan& plan) {
    json.array("tensors", plan.stored, [&](const plan::StoredTensor& tensor) {
        json.object([&] {
            json.field("name", stored_name(tensor));
            json.field("pattern", tensor.name);
            json.field("part", tensor.part);
            json.field("kind", text_of(tensor.kind));
            json.field("role", tensor.role);
            const bool in_layers = !tensor.layers.empty() && tensor.layers.front() >= 0;
            json.list("layers", in_layers ? tensor.layers : std::vector<int>{});
            json.list("shape", tensor.shape);
            json.field("dtype", tensor::to_string(tensor.dtype));
            write_spec_axes_json(json, tensor.spec);
            json.field("spec", to_string(tensor.spec));
            json.list("local_shape", tensor.local_shape);
            json.field("bytes", tensor.bytes);
            json.field("bytes_per_device", tensor.bytes_per_device);
            json.field("replicas", tensor.replicas);
            json.field("reason", tensor.reason);
        });
    });
}

void write_activations(JsonWriter& json, const plan::Plan& plan) {
    json.array("activations", plan.activations, [&](const plan::ActivationSpec& activation) {
        json.object([&] {
            json.field("name", activation.name);
            write_spec_axes_json(json, activation.spec);
            json.field("spec", to_string(activation.spec));
            json.field("reason", activation.reason);
        });
    });
}

void write_sequence(JsonWriter& json, const plan::Plan& plan) {
    json.array("sequence", plan.sequence, [&](const model::BlockUse& use) {
        json.object(
            [&] {
                json.field("block", use.block);
                json.field("layer", use.layer);
            },
            one_line);
    });
}

void write_collectives(JsonWriter& json, const plan::Plan& plan) {
    json.array("collectives", plan.collectives, [&](const plan::CollectiveTotal& total) {
        json.object([&] {
            json.field("kind", to_string(total.kind));
            json.list("axes", total.axes);
            json.field("count", total.count);
            json.field("payload_bytes", total.payload_bytes);
            json.field("wire_bytes", total.wire_bytes);
            json.field("wire_bytes_total", total.wire_bytes_total);
            if (total.worst_wire_bytes_total > 0) {
                json.field("worst_wire_bytes_total", total.worst_wire_bytes_total);
            }
        });
    });
}

void write_totals(JsonWriter& json, const plan::Plan& plan) {
    json.object("totals", [&] {
        json.field("parameters", plan.totals.parameters);
        json.field("parameter_bytes", plan.totals.parameter_bytes);
        json.field("flops_per_device", plan.totals.flops_per_device);
        json.field("step", plan.job.workload.step_name());
        json.field("unsharded_fraction", plan.totals.unsharded_fraction);
    });
    json.object("memory", [&] {
        json.object("per_device", [&] {
            json.field("parameters", plan.memory.parameters);
            json.field("cache", plan.memory.cache);
            json.field("arena", plan.memory.arena);
            json.field("activations", plan.memory.activations);
            json.field("communication", plan.memory.communication);
            json.field("total", plan.memory.total());
        });
    });
}

/// Takes characters and keeps their hash only.
class HashBuffer : public std::streambuf {
public:
    std::uint64_t hash() const { return hash_; }

protected:
    int_type overflow(int_type c) override {
        const char character = traits_type::to_char_type(c);
        hash_ = base::fnv1a({&character, 1}, hash_);
        return traits_type::not_eof(c);
    }
    std::streamsize xsputn(const char* text, std::streamsize length) override {
        hash_ = base::fnv1a({text, static_cast<std::size_t>(length)}, hash_);
        return length;
    }

private:
    std::uint64_t hash_ = base::fnv1a("");
};

}  // namespace

void write_plan_json(std::ostream& out, const plan::Plan& plan, const std::vector<diag::Diagnostic>& diagnostics) {
    JsonWriter json(out);
    json.object([&] {
        json.field("schema_version", schema_version);
        write_job_json(json, plan.job);
        write_mesh_json(json, "mesh", plan.mesh.original());
        write_mesh_json(json, "refined_mesh", plan.mesh.refined());
        write_provider(json, plan);
        json.field("token_order", plan.token_order.plain() ? "plain" : "zigzag");
        json.field("token_order_parts", plan.token_order.parts());
        write_tensors(json, plan);
        write_activations(json, plan);
        write_blocks_json(json, plan);
        write_sequence(json, plan);
        write_pipeline_json(json, plan);
        write_collectives(json, plan);
        write_totals(json, plan);
        json.list("notes", plan.notes, JsonLayout::lines);
        write_diagnostics_json(json, "diagnostics", diagnostics);
    });
}

std::uint64_t plan_hash(const plan::Plan& plan) {
    HashBuffer buffer;
    std::ostream out(&buffer);
    write_plan_json(out, plan, {});
    return buffer.hash();
}

std::string hash_text(std::uint64_t hash) {
    return fmt::format("{:016x}", hash);
}

}  // namespace shardplan::report
