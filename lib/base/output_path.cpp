#include "base/output_path.h"

#include <filesystem>
#include <system_error>

namespace shardplan::base {

OutputPath output_path(const std::string& path, const std::string& suffix) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::file_status there = fs::status(path, ignored);
    if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
        return {path, path};  // the links of /proc to open pipes name no file: only opening them follows them
    }
    constexpr int most_links = 40;
    fs::path place = path;
    for (int i = 0; i < most_links && fs::is_symlink(place, ignored); ++i) {  // its target need not exist
        const fs::path target = fs::read_symlink(place, ignored);
        place = target.is_absolute() ? target : place.parent_path() / target;
    }
    const std::string final = place.string();
    return {final, final + suffix};
}

bool same_place(const std::string& one, const std::string& other) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (one == other || fs::equivalent(one, other, error)) {
        return one == other || fs::is_regular_file(one, error);
    }
    const auto absolute = [&](const std::string& path) {  // first, as what is relative and not there would stay so
        return fs::weakly_canonical(fs::absolute(path, error), error);
    };
    return absolute(one) == absolute(other) && !fs::exists(one, error);
}

}  // namespace shardplan::base
