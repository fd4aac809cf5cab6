//! A store that is gone while it is served: the log says so once, however many ask it.

use nix::sys::signal::Signal;

use super::http_client::{CHAT, post, says};
use super::server::Server;
use crate::run::{DONE, scripted};

#[test]
fn a_database_that_was_removed_is_one_line_of_the_log() {
    let mut server = Server::start(scripted(DONE, "[gateway]\ndrain_delay_s = 0\n"));
    std::fs::remove_file(server.env.path("data/pintle/pintle.db")).unwrap();
    let mut seen = server.until("gateway.store_unavailable");
    for _ in 0..20 {
        assert_eq!(post(&server, CHAT, "", &says("go")).status, 503);
    }
    server.signal(Signal::SIGTERM);
    seen += &server.ended().1;
    let lines: Vec<&str> = seen.lines().filter(|line| line.contains("was moved or deleted")).collect();
    let about_it = lines.iter().filter(|line| line.contains("pintle_gateway")).count();
    assert_eq!(about_it, 1, "{lines:#?}");
    assert!(lines[0].contains("restart the program") && lines.len() <= 3, "{lines:#?}");
}
