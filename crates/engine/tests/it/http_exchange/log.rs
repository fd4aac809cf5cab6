//! What those who watch for attacks read.

use pintle_engine::egress::{Egress, KeepAlive};

use super::{Names, of, post};
use crate::written::Written;

#[tokio::test]
async fn a_refusal_is_logged_without_the_secrets_of_its_url() {
    let (written, guard) = Written::begin();
    let (exchange, _) = of(KeepAlive::new(Egress::new(vec![]).with_resolver(Names::of(&[&["10.0.0.1"]]))));
    written.of("ssrf_block", async || drop(post(&exchange, "http://127.0.0.1/").await.unwrap_err())).await;
    for url in
        ["http://127.0.0.1:8080/a?token=hunter2#hunter2", "http://u:hunter2@x/", "https://inner.example/b?hunter2"]
    {
        post(&exchange, url).await.unwrap_err();
    }
    drop(guard);
    let text = written.take();
    let lines: Vec<&str> = text.lines().map(|line| line.split_once("block: ").unwrap().1).collect();
    assert_eq!(
        lines,
        [
            "security.hook.ssrf_block url=http://127.0.0.1:8080/a reason=ssrf: IP 127.0.0.1 is in a blocked range",
            "security.hook.ssrf_block url=http://x/ reason=ssrf: credentials in url",
            "security.hook.ssrf_block url=https://inner.example/b \
             reason=ssrf: \"inner.example\" resolved to blocked IP 10.0.0.1",
        ]
    );
}
