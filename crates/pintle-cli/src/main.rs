//! The `pintle` command.

fn main() -> std::process::ExitCode {
    pintle_cli::cli::main()
}
