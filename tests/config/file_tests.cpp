#include "config/file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace shardplan;

TEST_CASE("files are read whole, and what cannot be read is named") {
    const auto directory = std::filesystem::temp_directory_path() / "shardplan_file_tests";
    std::filesystem::create_directories(directory);
    const std::string path = (directory / "a.json").string();
    std::ofstream(path, std::ios::binary) << std::string("{\0}", 3);

    diag::Diagnostics diagnostics;
    CHECK(config::read_file(path, 3, diagnostics) == std::string("{\0}", 3));
    CHECK_FALSE(diagnostics.has_errors());

    CHECK_FALSE(config::read_file(path, 2, diagnostics));
    CHECK_FALSE(config::read_file((directory / "b.json").string(), 100, diagnostics, "/model"));
    CHECK_FALSE(config::read_file(directory.string(), 100, diagnostics));
    CHECK_FALSE(config::read_file("", 100, diagnostics));
    REQUIRE(diagnostics.all().size() == 4);
    CHECK(diagnostics.all()[0].code == "SP1009");
    CHECK(diagnostics.all()[1].code == "SP1001");
    CHECK(diagnostics.all()[1].pointer == "/model");
    CHECK(diagnostics.all()[1].message.find("b.json: No such file") != std::string::npos);
    CHECK(diagnostics.all()[2].message.find("it is a directory") != std::string::npos);
    std::filesystem::remove_all(directory);
}
