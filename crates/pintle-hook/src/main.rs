//! `pintle-hook`: what a coding agent starts for each of its events.
//!
//! Whatever happens here, what leaves is one document that the host understands, before the host's deadline, with exit
//! code 0: the answer of the daemon, or the refusal that is compiled in for this host and event.

use std::ffi::OsString;
use std::time::Instant;

use pintle_hook::client;
use pintle_hook::options::{Options, about};

fn main() {
    let began = Instant::now();
    let words: Result<Vec<String>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let words = words.unwrap_or_else(|word| client::wrong_use(&format!("`{}` is not UTF-8", word.display())));
    if let Some(text) = about(&words) {
        return client::say(&text);
    }
    match Options::parse(words) {
        Ok(options) => client::run(options, None, began),
        Err(why) => client::wrong_use(&why),
    }
}
