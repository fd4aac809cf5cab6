//! The child by itself, for tests and measurements; the product runs it by a hidden command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle_sandbox::worker_main()
}
