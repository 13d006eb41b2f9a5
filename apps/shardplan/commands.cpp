#include "commands.h"

namespace shardplan::app {

ExitCode dispatch(const Arguments& arguments, int argc, char** argv) {
    switch (arguments.command) {
        case Command::plan: return plan_command(arguments);
        case Command::run: return run_command(arguments, argc, argv);
        case Command::validate: return validate_command(arguments);
        case Command::schema: return schema_command(arguments);
        case Command::version: return version_command(arguments);
    }
    return ExitCode::internal;
}

}  // namespace shardplan::app
