#include "config/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/object_reader.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

constexpr std::uint64_t largest_header = 100'000'000;
constexpr std::uint64_t length_bytes = 8;

/// One file while it is checked; fail() names it in every message.
class HeaderReader {
public:
    HeaderReader(const std::string& path, tensor::Checkpoint& checkpoint, diag::Diagnostics& diagnostics)
        : path_(path), checkpoint_(checkpoint), diagnostics_(diagnostics) {}

    void read() {
        const auto header = read_header();
        if (!header) {
            return;
        }
        Limits limits;
        limits.bytes = largest_header;
        limits.values = 10'000'000;
        limits.pointer_bytes = std::size_t{1} << 30;
        limits.locations = false;
        diag::Diagnostics problems;
        const auto document = parse_document(*header, path_, problems, limits);
        if (!document || !document->root.is_object()) {
            fail(document ? "the header is not an object" : "bad header: " + problems.all().front().message);
            return;
        }
        for (const auto& [name, value] : *document->root.object()) {
            name == "__metadata__" ? check_metadata(value) : read_tensor(name, value);
        }
        check_coverage();
    }

private:
    struct Extent {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::string name;
    };

    void fail(const std::string& message, std::string hint = "") {
        diagnostics_.report("SP7001", fmt::format("{}: {}", path_, message), "", std::move(hint));
    }

    std::optional<std::string> read_header() {
        std::error_code error;
        const std::uint64_t file_size = std::filesystem::file_size(path_, error);
        std::ifstream file(path_, std::ios::binary);
        if (error || !file) {
            diagnostics_.report(
                "SP1001", fmt::format("cannot read {}: {}", path_, error ? error.message() : "it cannot be opened"));
            return std::nullopt;
        }
        std::array<char, length_bytes> prefix{};
        file.read(prefix.data(), prefix.size());
        if (file.gcount() == std::ssize(prefix) && std::string_view(prefix.data(), prefix.size()) == "version ") {
            fail("this is a Git LFS pointer, not the file itself", "fetch the content: git lfs pull");
            return std::nullopt;
        }
        std::uint64_t length = 0;
        for (std::size_t i = 0; i < prefix.size(); ++i) {
            length |= std::uint64_t{static_cast<unsigned char>(prefix[i])} << (8 * i);
        }
        if (file_size < length_bytes || (length <= largest_header && length > file_size - length_bytes)) {
            fail(fmt::format("truncated: {} bytes, the header alone needs {}", file_size, length_bytes + length),
                 "download the file again");
            return std::nullopt;
        }
        if (length > largest_header) {
            fail(fmt::format("header of {} bytes, the limit is {}", length, largest_header),
                 "is it a safetensors file?");
            return std::nullopt;
        }
        std::string header(length, '\0');
        file.read(header.data(), static_cast<std::streamsize>(length));
        if (!file || !header.starts_with('{')) {
            fail(file ? "the header does not begin with '{'" : "read error");
            return std::nullopt;
        }
        data_begin_ = static_cast<std::int64_t>(length_bytes + length);
        data_size_ = static_cast<std::int64_t>(file_size) - data_begin_;
        return header;
    }

    void check_metadata(const ConfigValue& value) {
        const ConfigValue::Object* object = value.object();
        const auto is_text = [](const auto& entry) { return entry.second.string() != nullptr; };
        if (object == nullptr || !std::all_of(object->begin(), object->end(), is_text)) {
            fail("__metadata__ must be an object of strings");
        }
    }

    /// Integers >= 0, or nothing after a diagnostic.
    std::optional<std::vector<std::int64_t>> read_sizes(const std::string& name, const ConfigValue* value,
                                                        std::string_view field) {
        const ConfigValue::Array* array = value != nullptr ? value->array() : nullptr;
        const auto is_size = [](const ConfigValue& item) { return item.integer() != nullptr && *item.integer() >= 0; };
        if (array == nullptr || !std::all_of(array->begin(), array->end(), is_size)) {
            fail(fmt::format("tensor '{}': {} must be a list of integers from 0 on", name, field));
            return std::nullopt;
        }
        std::vector<std::int64_t> sizes;
        for (const ConfigValue& item : *array) {
            sizes.push_back(*item.integer());
        }
        return sizes;
    }

    void read_tensor(const std::string& name, const ConfigValue& value) {
        if (value.object() == nullptr || value.object()->size() != 3) {
            fail(fmt::format("tensor '{}' must have dtype, shape and data_offsets, and nothing else", name));
            return;
        }
        const ConfigValue* dtype_name = value.find("dtype");
        const bool named = dtype_name != nullptr && dtype_name->string() != nullptr;
        const auto dtype = tensor::parse_safetensors_dtype(named ? *dtype_name->string() : "");
        if (!dtype) {
            fail(fmt::format("tensor '{}': dtype {} is not supported", name,
                             dtype_name != nullptr ? describe(*dtype_name) : "(none)"));
        }
        const auto shape = read_sizes(name, value.find("shape"), "shape");
        const auto offsets = read_sizes(name, value.find("data_offsets"), "data_offsets");
        if (!dtype || !shape || !offsets) {
            return;
        }
        if (check_extent(name, *dtype, *shape, *offsets)) {
            const std::int64_t begin = (*offsets)[0];
            extents_.push_back({begin, (*offsets)[1], name});
            const auto [other, fresh] =
                checkpoint_.try_emplace(name, tensor::CheckpointEntry{path_, *dtype, *shape, data_begin_ + begin});
            if (!fresh) {
                fail(fmt::format("tensor '{}' is in {} too", name, other->second.file));
            }
        }
    }

    bool check_extent(const std::string& name, tensor::DType dtype, const tensor::Shape& shape,
                      const std::vector<std::int64_t>& offsets) {
        if (offsets.size() != 2 || offsets[0] > offsets[1]) {
            fail(fmt::format("tensor '{}': data_offsets must be [begin, end]", name));
            return false;
        }
        if (offsets[1] > data_size_) {
            fail(fmt::format("truncated: tensor '{}' ends at byte {} of the data, which has {}", name, offsets[1],
                             data_size_),
                 "download the file again");
            return false;
        }
        try {
            const std::int64_t bytes = tensor::byte_count(shape, dtype);
            if (bytes != offsets[1] - offsets[0]) {
                fail(fmt::format("tensor '{}': shape {} of {} needs {} bytes, data_offsets span {}", name,
                                 tensor::to_string(shape), tensor::safetensors_name(dtype), bytes,
                                 offsets[1] - offsets[0]));
                return false;
            }
        } catch (const base::OverflowError&) {
            fail(fmt::format("tensor '{}': the size of shape {} does not fit in 64 bits", name,
                             tensor::to_string(shape)));
            return false;
        }
        return true;
    }

    /// The extents must tile the data; only asked when each alone is right.
    void check_coverage() {
        if (diagnostics_.has_errors()) {
            return;
        }
        std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        std::int64_t covered = 0;
        for (const Extent& extent : extents_) {
            if (extent.begin != covered) {
                fail(fmt::format("tensor '{}' begins at byte {} of the data, the one before ends at {}: {}",
                                 extent.name, extent.begin, covered,
                                 extent.begin < covered ? "they overlap" : "a hole"));
                return;
            }
            covered = extent.end;
        }
        if (covered != data_size_) {
            fail(fmt::format("{} bytes after the last tensor", data_size_ - covered));
        }
    }

    const std::string& path_;
    tensor::Checkpoint& checkpoint_;
    diag::Diagnostics& diagnostics_;
    std::int64_t data_begin_ = 0;
    std::int64_t data_size_ = 0;
    std::vector<Extent> extents_;
};

}  // namespace

void read_safetensors_file(const std::string& path, tensor::Checkpoint& checkpoint, diag::Diagnostics& diagnostics) {
    diag::Diagnostics found;
    HeaderReader(path, checkpoint, found).read();
    for (const diag::Diagnostic& diagnostic : found.all()) {
        diagnostics.add(diagnostic);
    }
}

}  // namespace shardplan::config
