#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "comm/groups.h"

namespace shardplan::comm {

namespace {

std::string_view variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

TransportChoice transport_choice(std::string_view text) {
    if (text.empty() || text == "auto") {
        return TransportChoice::automatic;
    }
    if (text == "mpi") {
        return TransportChoice::mpi;
    }
    if (text == "shared") {
        return TransportChoice::shared;
    }
    throw std::runtime_error(fmt::format("SHARDPLAN_TRANSPORT is '{}', must be auto, mpi or shared", text));
}

}  // namespace

GroupOptions GroupOptions::from_environment() {
    GroupOptions options;
    const std::string_view check = variable("SHARDPLAN_CHECK_COLLECTIVES");
    options.check_calls = !check.empty() && check != "0";
    options.transport = transport_choice(variable("SHARDPLAN_TRANSPORT"));
    return options;
}

}  // namespace shardplan::comm
