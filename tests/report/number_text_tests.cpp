#include "report/number_text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace shardplan::report;

TEST_CASE("counts have separators") {
    CHECK(count_text(0) == "0");
    CHECK(count_text(999) == "999");
    CHECK(count_text(1000) == "1,000");
    CHECK(count_text(-1234567) == "-1,234,567");
    CHECK(count_text(-999) == "-999");
    CHECK(count_text(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("bytes have a unit and two decimals") {
    CHECK(bytes_text(999) == "999 B");
    CHECK(bytes_text(1000) == "1.00 kB");
    CHECK(bytes_text(999'994) == "999.99 kB");
    CHECK(bytes_text(999'996) == "1.00 MB");
    CHECK(bytes_text(16'060'522'496) == "16.06 GB");
    CHECK(bytes_text(std::numeric_limits<std::int64_t>::max()) == "9.22 EB");
    CHECK(exact_bytes_text(16'060'522'496) == "16.06 GB (16,060,522,496 B)");
    CHECK(exact_bytes_text(512) == "512 B");
}

TEST_CASE("other quantities") {
    CHECK(flops_text(1.5e12) == "1.50 TFLOP");
    CHECK(flops_text(12.0) == "12.00 FLOP");
    CHECK(seconds_text(0.0000125) == "12.50 us");
    CHECK(seconds_text(0.0125) == "12.50 ms");
    CHECK(seconds_text(12.5) == "12.50 s");
    CHECK(percent_text(0.0123) == "1.23 %");
    CHECK(error_text(0.00125) == "1.25e-03");
}
