#include <csignal>
#include <exception>
#include <iostream>
#include <new>

#include "base/output_path.h"
#include "commands.h"
#include "console.h"

int main(int argc, char** argv) {
    using namespace shardplan::app;
    std::signal(SIGINT, [](int) { std::_Exit(value_of(ExitCode::interrupted)); });
    try {
        const Parsed parsed = parse_arguments(argc, argv);
        if (parsed.help) {
            write_output({}, [&](std::ostream& out) { out << *parsed.help; });
            return 0;
        }
        return value_of(dispatch(parsed.arguments, argc, argv));
    } catch (const UsageError& error) {
        std::cerr << "shardplan: " << error.what() << "\nRun 'shardplan --help' for the options.\n";
        return value_of(ExitCode::failure);
    } catch (const shardplan::base::OutputError& error) {
        std::cerr << "shardplan: " << error.what() << '\n';
        return value_of(ExitCode::failure);
    } catch (const std::bad_alloc&) {
        std::cerr << "shardplan: not enough memory\n";
        return value_of(ExitCode::failure);
    } catch (const std::exception& error) {
        std::cerr << "shardplan: internal error: " << error.what() << '\n';
        return value_of(ExitCode::internal);
    }
}
