#include "exec/seeded_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "exec/models.h"

using namespace shardplan;
using base::Interval;

namespace {

std::vector<float> fill(const exec::WeightSource& source, const model::Parameter& parameter, int layer,
                        const std::vector<Interval>& ranges) {
    tensor::Shape shape;
    for (const Interval range : ranges) {
        shape.push_back(range.size());
    }
    std::vector<float> values(static_cast<std::size_t>(tensor::element_count(shape)), -99.0F);
    source.fill(parameter, layer, ranges,
                {reinterpret_cast<std::byte*>(values.data()), tensor::DType::f32, std::move(shape)});
    return values;
}

double rms(const std::vector<float>& values, double mean) {
    double sum = 0.0;
    for (const float v : values) {
        sum += (v - mean) * (v - mean);
    }
    return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("any block of a parameter is that block of the whole, whatever the cut") {
    for (const char* family : {"llama", "gpt2", "falcon"}) {
        const model::Graph graph = model::build_graph(test::tiny_model(family), {});
        const exec::SeededWeights source(7, graph.model);
        for (const model::Parameter& parameter : graph.parameters) {
            CAPTURE(parameter.name);
            const std::vector<float> whole = fill(source, parameter, 1, exec::whole_ranges(parameter.shape));
            const std::int64_t rows = parameter.shape[0];
            const std::int64_t columns = parameter.shape.size() == 2 ? parameter.shape[1] : 1;
            for (const std::int64_t parts : {2, 4}) {
                const Interval row{rows / parts, rows / parts * 2};
                const Interval column{columns / 2, columns};
                const bool matrix = parameter.shape.size() == 2;
                const auto block = fill(source, parameter, 1, matrix ? std::vector{row, column} : std::vector{row});
                std::vector<float> expected;
                for (std::int64_t r = row.begin; r < row.end; ++r) {
                    for (std::int64_t c = matrix ? column.begin : 0; c < columns; ++c) {
                        expected.push_back(whole[static_cast<std::size_t>(r * columns + c)]);
                    }
                }
                CHECK(block == expected);
            }
        }
    }
}

TEST_CASE("values depend on seed, name, layer and part") {
    const model::Graph graph = model::build_graph(test::tiny_gpt2(), {});
    std::set<float> firsts;
    std::size_t count = 0;
    for (const model::Parameter& parameter : graph.parameters) {
        for (const std::uint64_t seed : {1U, 2U}) {
            for (const int layer : {0, 1}) {
                const bool layered = parameter.name.find("{}") != std::string::npos;
                if (layered || layer == 0) {
                    const exec::SeededWeights source(seed, graph.model);
                    firsts.insert(fill(source, parameter, layer, exec::whole_ranges(parameter.shape))[0]);
                    ++count;
                }
            }
        }
    }
    CHECK(firsts.size() == count);
}

TEST_CASE("scales: linears by fan-in, norms around their neutral value, a tied table as a head") {
    model::ModelSpec model = test::tiny_gemma2();
    const model::Graph graph = model::build_graph(model, {});
    const exec::SeededWeights source(5, graph.model);
    for (const model::Parameter& parameter : graph.parameters) {
        CAPTURE(parameter.name);
        const auto values = fill(source, parameter, 0, exec::whole_ranges(parameter.shape));
        if (parameter.kind == model::ParameterKind::norm_weight) {
            CHECK(parameter.norm_offset == 1.0);
            CHECK(rms(values, 0.0) == doctest::Approx(0.1).epsilon(0.5));
        } else if (parameter.kind == model::ParameterKind::embedding) {
            CHECK(rms(values, 0.0) == doctest::Approx(1.0 / std::sqrt(32.0)).epsilon(0.1));
        } else {
            CHECK(rms(values, 0.0) ==
                  doctest::Approx(1.0 / std::sqrt(static_cast<double>(parameter.shape[1]))).epsilon(0.15));
        }
    }
}

TEST_CASE("bf16 weights are the rounded f32 weights") {
    const model::Graph graph = model::build_graph(test::tiny_llama(), {});
    const exec::SeededWeights source(9, graph.model);
    const model::Parameter& parameter = graph.parameters[1];
    const auto ranges = exec::whole_ranges(parameter.shape);
    const std::vector<float> exact = fill(source, parameter, 0, ranges);
    std::vector<std::uint16_t> rounded(exact.size());
    source.fill(parameter, 0, ranges,
                {reinterpret_cast<std::byte*>(rounded.data()), tensor::DType::bf16, parameter.shape});
    CHECK(std::equal(exact.begin(), exact.end(), rounded.begin(),
                     [](float a, std::uint16_t b) { return tensor::bf16_from_float(a) == b; }));
}
