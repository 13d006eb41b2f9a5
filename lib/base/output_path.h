// Where a result is written so that nobody sees half of it: beside its place and renamed, but straight into what is no
// regular file (a device, a pipe), which a rename would destroy; a symbolic link is followed.
#pragma once

#include <stdexcept>
#include <string>

namespace shardplan::base {

/// A result cannot be written; the message has the path and the reason.
struct OutputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct OutputPath {
    std::string final;   ///< where the result belongs
    std::string beside;  ///< where it is written first; `final` itself where there is nothing to rename
    bool renames() const { return beside != final; }
};

/// `suffix` tells the name beside apart.
OutputPath output_path(const std::string& path, const std::string& suffix);

/// Whether what is written to `one` and to `other` would end in the same file, be it there or not.
bool same_place(const std::string& one, const std::string& other);

}  // namespace shardplan::base
