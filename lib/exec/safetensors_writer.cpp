#include "exec/safetensors_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "base/output_path.h"
#include "exec/checkpoint_weights.h"

namespace shardplan::exec {
namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
        }
        if (static_cast<unsigned char>(c) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

/// Padded with blanks so that the data begins at a multiple of 8, as the format recommends.
std::string header_of(const std::vector<TensorToWrite>& tensors) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
    std::int64_t offset = 0;
    for (const TensorToWrite& tensor : tensors) {
        const std::int64_t end = base::checked_add(offset, tensor::byte_count(tensor.shape, tensor.dtype));
        header += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(tensor.name),
                              tensor::safetensors_name(tensor.dtype), fmt::join(tensor.shape, ","), offset, end);
        offset = end;
    }
    header += '}';
    header.append((8 - header.size() % 8) % 8, ' ');
    return header;
}

/// A file that vanishes unless it is completed.
class NewFile {
public:
    explicit NewFile(const std::string& path)
        : path_(base::output_path(path, ".part")), file_(std::fopen(path_.beside.c_str(), "wb")) {
        if (file_ == nullptr) {
            fail();
        }
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    ~NewFile() {
        if (file_ != nullptr) {
            std::fclose(file_);
            remove_part();
        }
    }

    void write(const void* data, std::size_t bytes) {
        if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) {
            fail();
        }
    }
    void complete() {
        std::FILE* file = std::exchange(file_, nullptr);
        const bool closed = std::fclose(file) == 0;
        if (!closed || (path_.renames() && std::rename(path_.beside.c_str(), path_.final.c_str()) != 0)) {
            const int error = errno;
            remove_part();
            errno = error;
            fail();
        }
    }

private:
    [[noreturn]] void fail() const {
        throw base::OutputError(fmt::format("{} cannot be written: {}", path_.final, std::strerror(errno)));
    }
    void remove_part() const {
        if (path_.renames()) {
            std::remove(path_.beside.c_str());
        }
    }
    base::OutputPath path_;
    std::FILE* file_;
};

/// Puts a part (row-major elements of `size` bytes) into its places in the stored tensor.
void place_part(const model::Parameter& parameter, std::int64_t size, const std::vector<std::byte>& part,
                std::vector<std::byte>& stored) {
    const std::byte* source = part.data();
    for (const Run& run : stored_runs(parameter, whole_ranges(parameter.shape))) {
        std::memcpy(stored.data() + run.begin * size, source, static_cast<std::size_t>(run.count * size));
        source += run.count * size;
    }
}

std::vector<std::byte> stored_tensor(const std::vector<model::Parameter>& parts, int layer, tensor::DType dtype,
                                     const WeightSource& source) {
    const std::int64_t size = tensor::size_of(dtype);
    std::vector<std::byte> stored(static_cast<std::size_t>(tensor::byte_count(parts.front().stored_shape, dtype)));
    for (const model::Parameter& part : parts) {
        std::vector<std::byte> values(static_cast<std::size_t>(tensor::byte_count(part.shape, dtype)));
        source.fill(part, layer, whole_ranges(part.shape), {values.data(), dtype, part.shape});
        place_part(part, size, values, stored);
    }
    return stored;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
    NewFile file(path);
    const std::string header = header_of(tensors);
    const auto length = static_cast<std::uint64_t>(header.size());
    file.write(&length, sizeof length);
    file.write(header.data(), header.size());
    for (const TensorToWrite& tensor : tensors) {
        const std::vector<std::byte> data = tensor.data();
        if (std::ssize(data) != tensor::byte_count(tensor.shape, tensor.dtype)) {
            throw std::logic_error(
                fmt::format("{}: {} bytes for shape {}", tensor.name, data.size(), tensor::to_string(tensor.shape)));
        }
        file.write(data.data(), data.size());
    }
    file.complete();
}

void save_weights(const std::string& directory, const model::Graph& graph, tensor::DType dtype,
                  const WeightSource& source) {
    std::map<std::string, std::vector<model::Parameter>> parts;  // by pattern of the checkpoint name
    std::map<std::string, std::pair<std::string, int>> tensors;  // name -> pattern, layer
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
        const std::vector<int> layers = model::layers_of(graph, static_cast<int>(p));
        for (model::Parameter& part : model::stored_parts(model::without_padding(graph.parameters[p]))) {
            for (const int layer : layers) {
                tensors[model::name_in_layer(part.name, layer)] = {part.name, layer};
            }
            parts[part.name].push_back(std::move(part));
        }
    }
    std::vector<TensorToWrite> list;
    for (const auto& [name, place] : tensors) {
        const auto& own = parts.at(place.first);
        list.push_back({name, dtype, own.front().stored_shape, [&own, layer = place.second, dtype, &source] {
                            return stored_tensor(own, layer, dtype, source);
                        }});
    }
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) {
        throw base::OutputError(fmt::format("cannot create directory '{}': {}", directory, error.message()));
    }
    write_safetensors((std::filesystem::path(directory) / "model.safetensors").string(), list);
}

void write_logits(const std::string& path, const FloatTensor& logits) {
    write_safetensors(path, {{"logits", tensor::DType::f32, logits.shape, [&] {
                                  const auto bytes = std::as_bytes(std::span(logits.values));
                                  return std::vector<std::byte>(bytes.begin(), bytes.end());
                              }}});
}

}  // namespace shardplan::exec
