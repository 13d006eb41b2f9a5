#include "report/range_text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace shardplan::report;

namespace {

/// Reads what fold_layers writes, by its documented rules.
std::vector<int> unfold_layers(std::string text) {
    if (text.empty()) {
        return {};
    }
    if (text[0] != '{') {
        return {std::stoi(text)};
    }
    std::vector<int> layers;
    std::vector<int> alone;
    std::istringstream parts(text.substr(1, text.size() - 2));
    for (std::string part; std::getline(parts, part, ',');) {
        const std::size_t dots = part.find("..");
        const int first = std::stoi(part);
        if (dots == std::string::npos) {
            layers.push_back(first);
            alone.push_back(first);
            continue;
        }
        const std::size_t n = alone.size();
        const bool stepped = n >= 2 && alone[n - 1] - alone[n - 2] == first - alone[n - 1];
        const int step = stepped ? first - alone[n - 1] : 1;
        for (int layer = first; layer <= std::stoi(part.substr(dots + 2)); layer += step) {
            layers.push_back(layer);
        }
        alone.clear();
    }
    return layers;
}

std::vector<std::int64_t> unfold_devices(const std::string& text) {
    std::vector<std::int64_t> devices;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const std::size_t dash = part.find('-');
        const std::size_t colon = part.find(':');
        const std::int64_t last = dash == std::string::npos ? std::stoll(part) : std::stoll(part.substr(dash + 1));
        const std::int64_t step = colon == std::string::npos ? 1 : std::stoll(part.substr(colon + 1));
        for (std::int64_t device = std::stoll(part); device <= last; device += step) {
            devices.push_back(device);
        }
    }
    return devices;
}

template <class Number>
std::vector<Number> any_set() {
    const auto numbers = *rc::gen::container<std::set<Number>>(rc::gen::inRange<Number>(0, 24));
    return {numbers.begin(), numbers.end()};
}

}  // namespace

TEST_CASE("layers fold") {
    CHECK(fold_layers({}) == "");
    CHECK(fold_layers({5}) == "5");
    CHECK(fold_layers({0, 1}) == "{0,1}");
    CHECK(fold_layers({0, 1, 2, 3}) == "{0..3}");
    CHECK(fold_layers({0, 2, 4, 6, 8}) == "{0,2,4..8}");
    CHECK(fold_layers({0, 2, 4}) == "{0,2,4}");
    CHECK(fold_layers({0, 1, 2, 3, 4, 6, 7, 8, 9, 10}) == "{0..4,6..10}");
    CHECK(fold_layers({5, 11, 17, 23}) == "{5,11,17..23}");
    CHECK(fold_layers({0, 2, 4, 5, 6, 7}) == "{0,2,4,5..7}");  // {0,2,4..7} would read as a step of 2
}

TEST_CASE("devices fold") {
    CHECK(fold_devices({}) == "");
    CHECK(fold_devices({0, 1, 2, 3, 8}) == "0-3,8");
    CHECK(fold_devices({0, 8}) == "0,8");
    CHECK(fold_devices({0, 4, 8, 12}) == "0-12:4");
    CHECK(fold_devices({0, 1, 4, 5}) == "0-1,4-5");
}

TEST_CASE("folded lists say what they were") {
    CHECK(rc::check([] {
        const auto layers = any_set<int>();
        RC_LOG() << fold_layers(layers) << '\n';
        RC_ASSERT(unfold_layers(fold_layers(layers)) == layers);
    }));
    CHECK(rc::check([] {
        const auto devices = any_set<std::int64_t>();
        RC_LOG() << fold_devices(devices) << '\n';
        RC_ASSERT(unfold_devices(fold_devices(devices)) == devices);
    }));
}

TEST_CASE("names with layers") {
    CHECK(folded_name("model.layers.{}.q.weight", {0, 1, 2}) == "model.layers.{0..2}.q.weight");
    CHECK(folded_name("model.layers.{}.q.weight", {7}) == "model.layers.7.q.weight");
    CHECK(folded_name("lm_head.weight", {-1}) == "lm_head.weight");
    CHECK(intervals_text({{0, 8}, {16, 32}}) == "[0:8, 16:32]");
    CHECK(intervals_text({}) == "[]");
}
