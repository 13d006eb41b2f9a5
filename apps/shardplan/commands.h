// One function per subcommand; each in a file of its own.
#pragma once

#include "arguments.h"
#include "exit_code.h"

namespace shardplan::app {

ExitCode plan_command(const Arguments& arguments);
ExitCode run_command(const Arguments& arguments, int argc, char** argv);
ExitCode validate_command(const Arguments& arguments);
ExitCode schema_command(const Arguments& arguments);
ExitCode version_command(const Arguments& arguments);

/// Calls the one that the command line names.
ExitCode dispatch(const Arguments& arguments, int argc, char** argv);

}  // namespace shardplan::app
