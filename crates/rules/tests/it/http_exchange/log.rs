//! What those who watch for attacks read.

use pintle_egress::{Egress, KeepAlive};
use pintle_testkit::log::Log;

use super::{Names, of, post};

#[tokio::test]
async fn a_refusal_is_logged_without_the_secrets_of_its_url() {
    let (log, _listening) = Log::begin();
    let (exchange, _) = of(KeepAlive::new(Egress::new(vec![]).with_resolver(Names::of(&[&["10.0.0.1"]]))));
    drop(log.of("ssrf_block", async || drop(post(&exchange, "http://127.0.0.1/").await.unwrap_err())).await);
    for url in
        ["http://127.0.0.1:8080/a?token=hunter2#hunter2", "http://u:hunter2@x/", "https://inner.example/b?hunter2"]
    {
        post(&exchange, url).await.unwrap_err();
    }
    assert_eq!(
        log.lines(),
        [
            "WARN security.hook.ssrf_block url=http://127.0.0.1:8080/a reason=ssrf: IP 127.0.0.1 is in a blocked range",
            "WARN security.hook.ssrf_block url=http://x/ reason=ssrf: credentials in url",
            "WARN security.hook.ssrf_block url=https://inner.example/b \
             reason=ssrf: \"inner.example\" resolved to blocked IP 10.0.0.1",
        ]
    );
}
