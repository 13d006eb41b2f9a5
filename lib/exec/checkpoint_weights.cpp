#include "exec/checkpoint_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace shardplan::exec {
namespace {

using base::Interval;
using tensor::DType;

/// Elements read at once: enough that the calls do not count, small enough for the cache.
constexpr std::int64_t chunk_elements = 1 << 16;

/// The stored indices of `range` along dimension `dim`, as intervals in order.
std::vector<Interval> stored_intervals(const model::FusedView& view, int dim, Interval range) {
    if (view.groups == 0 || dim != view.dim) {
        return {range};
    }
    std::vector<Interval> result;
    for (std::int64_t i = range.begin; i < range.end;) {
        const std::int64_t group = i / view.length;
        const std::int64_t end = std::min(range.end, (group + 1) * view.length);
        const std::int64_t shift = group * view.stride + view.offset - group * view.length;
        result.push_back({i + shift, end + shift});
        i = end;
    }
    return result;
}

class RunCollector {
public:
    RunCollector(const model::Parameter& parameter, std::span<const Interval> ranges) {
        // Flat stacks of experts have fewer dimensions in the checkpoint; their elements lie as in the parameter.
        const bool flat = parameter.stored_shape.size() != ranges.size();
        const tensor::Shape& shape = flat ? parameter.shape : parameter.stored_shape;
        std::int64_t stride = 1;
        for (const std::int64_t size : shape) {
            stride *= size;
        }
        for (std::size_t d = 0; d < ranges.size(); ++d) {
            stride /= std::max<std::int64_t>(shape[d], 1);
            strides_.push_back(stride);
            intervals_.push_back(stored_intervals(parameter.view, static_cast<int>(d), ranges[d]));
        }
    }

    std::vector<Run> collect() {
        visit(0, 0);
        return std::move(runs_);
    }

private:
    void visit(std::size_t dim, std::int64_t origin) {
        for (const Interval interval : intervals_[dim]) {
            if (dim + 1 == intervals_.size()) {
                append({origin + interval.begin, interval.size()});
                continue;
            }
            for (std::int64_t i = interval.begin; i < interval.end; ++i) {
                visit(dim + 1, origin + i * strides_[dim]);
            }
        }
    }

    void append(Run run) {
        if (!runs_.empty() && runs_.back().begin + runs_.back().count == run.begin) {
            runs_.back().count += run.count;
        } else if (run.count > 0) {
            runs_.push_back(run);
        }
    }

    std::vector<std::int64_t> strides_;
    std::vector<std::vector<Interval>> intervals_;
    std::vector<Run> runs_;
};

/// How much to read for `count` elements: runs of a few are followed by others at once (interleaved columns).
std::int64_t read_ahead(std::int64_t count) {
    constexpr std::int64_t few = 16;
    return count < few ? chunk_elements : std::min(chunk_elements, count);
}

float to_float(DType dtype, const std::byte* data, std::int64_t i) {
    const auto read = [&]<typename T>(T value) {
        std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
        return value;
    };
    switch (dtype) {
        case DType::f32: return read(0.0F);
        case DType::f64: return static_cast<float>(read(0.0));
        case DType::bf16: return tensor::float_from_bf16(read(std::uint16_t{0}));
        case DType::f16: return tensor::float_from_f16(read(std::uint16_t{0}));
        default: throw std::runtime_error(fmt::format("weights of {} cannot be read", tensor::to_string(dtype)));
    }
}

/// y[first ..] = n elements of `data`.
void convert(DType from, const std::byte* data, std::int64_t n, const tensor::View& y, std::int64_t first) {
    if (from == y.dtype) {
        const std::int64_t size = tensor::size_of(from);
        std::memcpy(y.data + first * size, data, static_cast<std::size_t>(n * size));
        return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
        const float value = to_float(from, data, i);
        if (y.dtype == DType::f32) {
            y.as<float>()[first + i] = value;
        } else {
            y.as<std::uint16_t>()[first + i] = tensor::bf16_from_float(value);
        }
    }
}

void read_exactly(int file, std::byte* data, std::int64_t bytes, std::int64_t offset, const std::string& what) {
    while (bytes > 0) {
        const ssize_t got = ::pread(file, data, static_cast<std::size_t>(bytes), offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            throw std::runtime_error(fmt::format("{}: {} bytes at offset {} cannot be read: {}", what, bytes, offset,
                                                 got == 0 ? "the file ends before" : std::strerror(errno)));
        }
        data += got;
        bytes -= got;
        offset += got;
    }
}

}  // namespace

std::vector<Run> stored_runs(const model::Parameter& parameter, std::span<const Interval> ranges) {
    return RunCollector(parameter, ranges).collect();
}

tensor::Checkpoint::const_iterator find_tensor(const tensor::Checkpoint& checkpoint, const std::string& name,
                                               const std::string& optional_prefix) {
    const auto found = checkpoint.find(name);
    if (found != checkpoint.end() || optional_prefix.empty() || !name.starts_with(optional_prefix)) {
        return found;
    }
    const std::string bare = name.substr(optional_prefix.size());
    const auto without = checkpoint.find(bare);
    // Newer checkpoints of text and pictures have "model.language_model.layers", and the head outside.
    constexpr std::string_view root = "model.";
    return without == checkpoint.end() && bare.starts_with(root)
               ? checkpoint.find(std::string(root) + optional_prefix + bare.substr(root.size()))
               : without;
}

CheckpointWeights::CheckpointWeights(tensor::Checkpoint checkpoint, const model::ModelSpec& model)
    : checkpoint_(std::move(checkpoint)), optional_prefix_(model.names.optional_prefix) {
    for (const auto& [name, entry] : checkpoint_) {
        if (files_.contains(entry.file)) {
            continue;
        }
        const int file = ::open(entry.file.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) {
            const std::string why = std::strerror(errno);
            for (const auto& [path, open] : files_) {
                ::close(open);
            }
            throw std::runtime_error(fmt::format("{}: {}", entry.file, why));
        }
        files_[entry.file] = file;
    }
}

CheckpointWeights::~CheckpointWeights() {
    for (const auto& [path, file] : files_) {
        ::close(file);
    }
}

void CheckpointWeights::fill_part(const model::Parameter& parameter, int layer, std::span<const Interval> ranges,
                                  tensor::View y) const {
    const std::string name = model::name_in_layer(parameter.name, layer);
    const auto found = find_tensor(checkpoint_, name, optional_prefix_);
    if (found == checkpoint_.end() || found->second.shape != parameter.stored_shape) {
        throw std::runtime_error(fmt::format("the checkpoint has no tensor {} of shape {}", name,
                                             tensor::to_string(parameter.stored_shape)));
    }
    const tensor::CheckpointEntry& entry = found->second;
    const int file = files_.at(entry.file);
    const std::int64_t size = tensor::size_of(entry.dtype);
    std::vector<std::byte> chunk(static_cast<std::size_t>(chunk_elements * size));
    std::int64_t written = 0;
    std::int64_t first = 0;  // the chunk holds [first, first + held)
    std::int64_t held = 0;
    const std::int64_t stored = tensor::element_count(entry.shape);
    for (const Run& run : stored_runs(parameter, ranges)) {
        for (std::int64_t i = run.begin; i < run.begin + run.count;) {
            if (i < first || i >= first + held) {
                first = i;
                held = std::min(read_ahead(run.begin + run.count - i), stored - i);
                read_exactly(file, chunk.data(), held * size, entry.offset + i * size,
                             fmt::format("{}, tensor {}", entry.file, name));
            }
            const std::int64_t n = std::min(run.begin + run.count, first + held) - i;
            convert(entry.dtype, chunk.data() + (i - first) * size, n, y, written);
            written += n;
            i += n;
        }
    }
    if (written != y.count()) {
        throw std::runtime_error(
            fmt::format("{}: {} elements for a block of shape {}", name, written, tensor::to_string(y.shape)));
    }
}

}  // namespace shardplan::exec
