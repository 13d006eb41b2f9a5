#include <ostream>

#include "commands.h"
#include "config/job_schema.h"
#include "console.h"

namespace shardplan::app {

ExitCode schema_command(const Arguments& arguments) {
    write_output(arguments.outputs.front(), [](std::ostream& out) { out << config::job_schema(); });
    return ExitCode::fine;
}

}  // namespace shardplan::app
