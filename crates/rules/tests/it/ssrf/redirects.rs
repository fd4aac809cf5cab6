//! An allowed server that sends on to inner ones.

use pintle_egress::{Allow, Egress};

use super::stage::Stage;
use crate::http_exchange::server::{Do, Server};
use crate::http_exchange::{fault, post};

const STATUSES: [u16; 10] = [300, 301, 302, 303, 304, 305, 306, 307, 308, 399];

/// Each status, to each inner address: none is followed. Says how many there were.
pub(super) async fn run(stage: &Stage) -> usize {
    let canaries = stage.canaries().into_iter().map(|at| format!("http://{at}/inner"));
    let others = ["http://169.254.169.254/latest/meta-data/", "//127.0.0.1:{P}/", "/again", "file:///etc/passwd"];
    let others = others.map(|location| location.replace("{P}", &stage.port.to_string()));
    let mut ran = 0;
    for location in canaries.chain(others) {
        for status in STATUSES {
            let answer = format!(
                "HTTP/1.1 {status} x\r\nlocation: {location}\r\nrefresh: 0;url={location}\r\ncontent-length: 0\r\n\r\n"
            );
            let server = Server::start(move |_| Do::Say(answer.clone().into_bytes())).await;
            // Even with leave to go there, nobody does.
            let allow = vec![Allow::cidr("127.0.0.1", vec![server.at.port(), stage.port]).unwrap()];
            let exchange = stage.exchange(Egress::new(allow));
            let text = fault(post(&exchange, &server.url()).await);
            assert_eq!(text, format!("unexpected status {status}"), "{location}");
            assert_eq!(server.log().seen.len(), 1, "{location}");
            ran += 1;
        }
    }
    ran
}
