#include "base/output_path.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace shardplan;
namespace fs = std::filesystem;

TEST_CASE("results go beside regular files, through links, and straight into what a rename would destroy") {
    const fs::path directory = fs::temp_directory_path() / ("output_path." + std::to_string(getpid()));
    fs::create_directory(directory);
    const std::string plain = (directory / "plain").string();
    const std::string link = (directory / "link").string();
    const std::string pipe = (directory / "pipe").string();
    std::ofstream(plain) << "x";
    fs::create_symlink("plain", link);
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);

    const base::OutputPath fresh = base::output_path((directory / "new").string(), ".part");
    CHECK(fresh.beside == fresh.final + ".part");
    CHECK(fresh.renames());
    CHECK(base::output_path(plain, ".part").renames());
    CHECK(fs::weakly_canonical(base::output_path(link, ".part").final) == fs::canonical(plain));
    fs::create_symlink("nothing yet", directory / "dangling");
    CHECK(base::output_path((directory / "dangling").string(), ".part").final == (directory / "nothing yet").string());
    CHECK(base::output_path(link, ".part").renames());
    for (const std::string& special : {pipe, std::string("/dev/null")}) {
        const base::OutputPath path = base::output_path(special, ".part");
        CHECK_FALSE(path.renames());
        CHECK(path.beside == special);
    }
    CHECK(base::same_place(plain, link));
    CHECK(base::same_place(plain, (directory / "." / "plain").string()));
    CHECK(base::same_place((directory / "absent").string(), (directory / "x" / ".." / "absent").string()));
    CHECK(base::same_place("not-here", "./not-here"));
    CHECK_FALSE(base::same_place(plain, (directory / "absent").string()));
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    const std::string open_pipe = "/dev/fd/" + std::to_string(ends[1]);
    CHECK(base::output_path(open_pipe, ".part").final == open_pipe);
    CHECK_FALSE(base::output_path(open_pipe, ".part").renames());
    close(ends[0]);
    close(ends[1]);
    fs::remove_all(directory);
}
