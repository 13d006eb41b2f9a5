#include "base/output_path.h"

#include <filesystem>
#include <system_error>

namespace shardplan::base {

OutputPath output_path(const std::string& path, const std::string& suffix) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    constexpr int most_links = 40;
    fs::path place = path;
    for (int i = 0; i < most_links && fs::is_symlink(place, ignored); ++i) {  // its target need not exist
        const fs::path target = fs::read_symlink(place, ignored);
        place = target.is_absolute() ? target : place.parent_path() / target;
    }
    const std::string final = place.string();
    const fs::file_status status = fs::status(final, ignored);
    const bool special = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
    return {final, special ? final : final + suffix};
}

}  // namespace shardplan::base
