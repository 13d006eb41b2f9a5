#include "config/file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace shardplan::config {
namespace {

struct Closer {
    void operator()(std::FILE* file) const {
        if (file != stdin) {
            std::fclose(file);
        }
    }
};

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::size_t limit, diag::Diagnostics& diagnostics,
                                     const std::string& pointer) {
    const std::string shown = path == "-" ? "standard input" : path.empty() ? "''" : path;
    const auto fail = [&](const std::string& why, std::string hint = "") {
        diagnostics.report("SP1001", fmt::format("cannot read {}: {}", shown, why), pointer, std::move(hint));
        return std::nullopt;
    };
    if (path.empty()) {
        return fail("the name of the file is empty");
    }
    std::error_code ignored;
    if (path != "-" && std::filesystem::is_directory(path, ignored)) {
        return fail("it is a directory", "name the file in it");
    }
    const std::unique_ptr<std::FILE, Closer> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
    if (!file) {
        return fail(std::strerror(errno));
    }
    std::string text;
    std::array<char, 65536> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
        text.append(buffer.data(), count);
        if (text.size() > limit) {
            diagnostics.report("SP1009", fmt::format("{} is larger than the limit of {} bytes", shown, limit), pointer);
            return std::nullopt;
        }
    }
    if (std::ferror(file.get()) != 0) {
        return fail("read error");
    }
    return text;
}

}  // namespace shardplan::config
