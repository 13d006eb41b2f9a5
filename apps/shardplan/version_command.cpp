#include <iostream>

#include "comm/session.h"
#include "commands.h"
#include "console.h"
#include "kernels/kernels.h"
#include "report/json_writer.h"
#include "report/schema_version.h"

namespace shardplan::app {

ExitCode version_command(const Arguments& arguments) {
    const std::string kernels = kernels::make_kernels(kernels::KernelSet::onednn)->describe();
    write_output(arguments.outputs.front(), [&](std::ostream& out) {
        if (arguments.outputs.front().format == Format::json) {
            report::JsonWriter json(out);
            json.object([&] {
                json.field("schema_version", report::schema_version);
                json.field("shardplan", SHARDPLAN_VERSION);
                json.field("compiler", __VERSION__);
                json.field("mpi", comm::mpi_version());
                json.field("kernels", kernels);
            });
            out << '\n';
            return;
        }
        out << "shardplan " << SHARDPLAN_VERSION << "\ncompiler  " << __VERSION__ << "\nmpi       "
            << comm::mpi_version() << "\nkernels   " << kernels << '\n';
    });
    return ExitCode::fine;
}

}  // namespace shardplan::app
