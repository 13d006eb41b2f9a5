#include "model/op_rule.h"

#include <utility>

namespace shardplan::model {
namespace {

using Dims = std::vector<DimFactor>;

/// Collects the factors of one op and the dimensions made of them.
class RuleBuilder {
public:
    RuleBuilder(const Op& op, const Block& block) : op_(op), block_(block) {}

    int factor(std::string_view name, std::int64_t size, FactorKind kind = FactorKind::parallel) {
        rule_.factors.push_back({name, size, kind});
        return static_cast<int>(rule_.factors.size()) - 1;
    }
    const tensor::Shape& input_shape(std::size_t i) const {
        return block_.tensors[static_cast<std::size_t>(op_.inputs[i])].shape;
    }
    const tensor::Shape& output_shape() const { return block_.tensors[static_cast<std::size_t>(op_.output)].shape; }
    void input(const std::vector<int>& factors) { rule_.inputs.push_back(dims(factors)); }
    void output(const std::vector<int>& factors) { rule_.output = dims(factors); }
    OpRule& rule() { return rule_; }
    OpRule take() { return std::move(rule_); }

private:
    static Dims dims(const std::vector<int>& factors) {
        Dims result;
        for (const int f : factors) {
            result.push_back({f, false});
        }
        return result;
    }
    const Op& op_;
    const Block& block_;
    OpRule rule_;
};

constexpr std::string_view dim_names[] = {"b", "s", "e", "d"};

/// Every dimension parallel and the same in all operands; operands of rank 1 share the last dimension.
OpRule elementwise(const Op& op, RuleBuilder builder, bool linear) {
    std::vector<int> factors;
    for (std::size_t i = 0; i < builder.output_shape().size(); ++i) {
        factors.push_back(builder.factor(dim_names[i], builder.output_shape()[i]));
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const bool vector = builder.input_shape(i).size() == 1;
        builder.input(vector ? std::vector<int>{factors.back()} : factors);
    }
    builder.output(factors);
    builder.rule().linear = linear;
    return builder.take();
}

OpRule embedding(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int v = builder.factor("v", builder.input_shape(1)[0], FactorKind::contracting);
    const int e = builder.factor("e", out[2]);
    builder.input({b, s});
    builder.input({v, e});
    builder.output({b, s, e});
    return builder.take();
}

OpRule position_embedding(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int p = builder.factor("p", builder.input_shape(1)[0], FactorKind::contracting);
    const int e = builder.factor("e", out[2]);
    builder.input({b, s, e});
    builder.input({p, e});
    builder.output({b, s, e});
    return builder.take();
}

OpRule norm(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    std::vector<int> factors;
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
        factors.push_back(builder.factor(i == 2 ? "h" : dim_names[i], out[i]));
    }
    factors.push_back(builder.factor("e", out.back(), FactorKind::statistical));
    builder.input(factors);
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
        builder.input({factors.back()});
    }
    builder.output(factors);
    return builder.take();
}

OpRule linear(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int i = builder.factor("i", builder.input_shape(0)[2], FactorKind::contracting);
    const int o = builder.factor("o", out[2]);
    builder.input({b, s, i});
    builder.input(op.attributes.transposed ? std::vector<int>{i, o} : std::vector<int>{o, i});
    builder.output({b, s, o});
    builder.rule().multiply_adds = {{1.0, {b, s, i, o}}};
    return builder.take();
}

OpRule split_or_merge(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int h = builder.factor("h", op.attributes.heads);
    const int d = builder.factor("d", op.attributes.head_dim, FactorKind::whole);
    const std::vector<int> flat = {b, s, h};
    const std::vector<int> split = {b, s, h, d};
    builder.input(op.kind == OpKind::split_heads ? flat : split);
    builder.output(op.kind == OpKind::split_heads ? split : flat);
    builder.rule().linear = true;
    return builder.take();
}

OpRule rope(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int h = builder.factor("h", out[2]);
    const int d = builder.factor("d", out[3], FactorKind::whole);
    builder.input({b, s, h, d});
    builder.output({b, s, h, d});
    return builder.take();
}

OpRule attention(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int h = builder.factor("h", out[2]);
    const int d = builder.factor("d", builder.input_shape(0)[3], FactorKind::whole);
    const int v = builder.factor("v", out[3], FactorKind::whole);
    const int t = builder.factor("t", builder.input_shape(1)[1], FactorKind::statistical);
    builder.input({b, s, h, d});
    builder.input({b, t, h, d});
    if (op.inputs.size() > 2) {
        builder.input({b, t, h, v});
    }
    if (op.attributes.sinks) {
        builder.input({h});
    }
    builder.output({b, s, h, v});
    if (op.attributes.kv_heads != op.attributes.heads) {
        builder.rule().inputs[1][2].shared_prefix = true;
        if (op.inputs.size() > 2) {
            builder.rule().inputs[2][2].shared_prefix = true;
        }
    }
    builder.rule().multiply_adds = {{1.0, {b, s, h, d, t}}, {1.0, {b, s, h, v, t}}};
    return builder.take();
}

OpRule cache_write(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int c = builder.factor("c", out[1]);
    const int g = builder.factor("g", out[2]);
    const int d = builder.factor("d", out[3]);
    const int s = builder.factor("s", builder.input_shape(0)[1], FactorKind::whole);
    builder.input({b, s, g, d});
    builder.output({b, c, g, d});
    return builder.take();
}

/// The choice among the experts needs the scores of all of them.
OpRule route(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int x = builder.factor("x", out[2], FactorKind::whole);
    builder.input({b, s, x});
    if (op.inputs.size() > 1) {
        builder.input({x});
    }
    builder.output({b, s, x});
    return builder.take();
}

/// Experts (x) and their intermediate dimension (f) are summed over, hence may be cut; the activation stands between
/// the two products, so the inputs of the first (e) are whole.
OpRule experts(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const tensor::Shape& gate = builder.input_shape(2);
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const bool in_out = op.attributes.transposed;
    const int x = builder.factor("x", gate[0], FactorKind::contracting);
    const int f = builder.factor("f", gate[in_out ? 2 : 1], FactorKind::contracting);
    const int e = builder.factor("e", gate[in_out ? 1 : 2], FactorKind::whole);
    const int o = builder.factor("o", out[2]);
    builder.input({b, s, e});
    builder.input({b, s, x});
    for (int column = 0; column < 2; ++column) {
        builder.input(in_out ? std::vector<int>{x, e, f} : std::vector<int>{x, f, e});
    }
    builder.input(op.attributes.transposed_down ? std::vector<int>{x, f, o} : std::vector<int>{x, o, f});
    if (op.attributes.biased) {
        builder.input({x, f});
        builder.input({x, f});
        builder.input({x, o});  // where f is cut, the first part adds it
    }
    builder.output({b, s, o});
    const double share = static_cast<double>(op.attributes.routing.top_k) / static_cast<double>(gate[0]);
    builder.rule().multiply_adds = {{2.0 * share, {b, s, x, f, e}}, {share, {b, s, x, f, o}}};
    return builder.take();
}

OpRule gate_rows(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int e = builder.factor("e", out[2]);
    const int one = builder.factor("one", 1, FactorKind::whole);
    builder.input({b, s, e});
    builder.input({b, s, one});
    builder.output({b, s, e});
    builder.rule().linear = true;
    builder.rule().factor_input = 1;
    return builder.take();
}

OpRule take(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    std::vector<int> factors;
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
        factors.push_back(builder.factor(i == 2 ? "h" : dim_names[i], out[i]));
    }
    std::vector<int> all = factors;
    all.push_back(builder.factor("n", builder.input_shape(0).back(), FactorKind::whole));
    factors.push_back(builder.factor("m", out.back(), FactorKind::whole));
    builder.input(all);
    builder.output(factors);
    builder.rule().linear = true;
    return builder.take();
}

OpRule join(RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int h = builder.factor("h", out[2]);
    const int d = builder.factor("d", builder.input_shape(0)[3], FactorKind::whole);
    const int e = builder.factor("e", builder.input_shape(1)[3], FactorKind::whole);
    const int both = builder.factor("de", out[3], FactorKind::whole);
    const bool shared = builder.input_shape(1)[2] != out[2];
    builder.input({b, s, h, d});
    builder.input({b, s, shared ? builder.factor("one", 1, FactorKind::whole) : h, e});
    builder.output({b, s, h, both});
    builder.rule().linear = true;
    return builder.take();
}

/// The first dimension of the weight is heads times the width of one: it is cut by whole heads. What is not cut by
/// heads there (the other width) is summed over where it is the input's, else it is parallel.
OpRule head_linear(const Op& op, RuleBuilder builder) {
    const tensor::Shape& out = builder.output_shape();
    const bool transposed = op.attributes.transposed;
    const int b = builder.factor("b", out[0]);
    const int s = builder.factor("s", out[1]);
    const int h = builder.factor("h", out[2]);
    const int i =
        builder.factor("i", builder.input_shape(0)[3], transposed ? FactorKind::whole : FactorKind::contracting);
    const int o = builder.factor("o", out[3], transposed ? FactorKind::parallel : FactorKind::whole);
    builder.input({b, s, h, i});
    builder.input({h, transposed ? o : i});
    builder.output({b, s, h, o});
    builder.rule().linear = true;
    builder.rule().factor_input = 1;
    builder.rule().multiply_adds = {{1.0, {b, s, h, i, o}}};
    return builder.take();
}

}  // namespace

OpRule rule_of(const Op& op, const Block& block) {
    RuleBuilder builder(op, block);
    switch (op.kind) {
        case OpKind::embedding: return embedding(builder);
        case OpKind::position_embedding: return position_embedding(builder);
        case OpKind::norm: return norm(op, builder);
        case OpKind::linear: return linear(op, builder);
        case OpKind::split_heads:
        case OpKind::merge_heads: return split_or_merge(op, builder);
        case OpKind::rope:
        case OpKind::temperature: return rope(builder);
        case OpKind::attention: return attention(op, builder);
        case OpKind::cache_write: return cache_write(builder);
        case OpKind::route: return route(op, builder);
        case OpKind::experts: return experts(op, builder);
        case OpKind::gate_rows: return gate_rows(builder);
        case OpKind::take: return take(builder);
        case OpKind::join: return join(builder);
        case OpKind::head_linear: return head_linear(op, builder);
        case OpKind::add:
        case OpKind::scale: return elementwise(op, builder, true);
        case OpKind::bias_add:
        case OpKind::glu:
        case OpKind::activation:
        case OpKind::softcap:
        case OpKind::clip: return elementwise(op, builder, false);
    }
    return builder.take();
}

}  // namespace shardplan::model
