//! The `pintle` command.

fn main() -> std::process::ExitCode {
    pintle::cli::main()
}
