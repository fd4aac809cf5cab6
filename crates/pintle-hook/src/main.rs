//! `pintle-hook`: what a coding agent starts for each of its events.
//!
//! Whatever happens here, what leaves is one document that the host understands, before the host's deadline, with exit
//! code 0: the answer of the daemon, or the refusal that is compiled in for this host and event.

use std::time::Instant;

use pintle_hook::client;
use pintle_hook::options::Options;

fn main() {
    let began = Instant::now();
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => client::run(options, None, began),
        Err(why) => client::wrong_use(&why),
    }
}
