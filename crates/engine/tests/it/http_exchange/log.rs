//! What those who watch for attacks read.

use std::io;
use std::sync::{Arc, Mutex};

use pintle_engine::egress::{Egress, KeepAlive};

use super::{Names, of, post};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_refusal_is_logged_without_the_secrets_of_its_url() {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
    let guard = tracing::subscriber::set_default(subscriber.finish());
    let (exchange, _) = of(KeepAlive::new(Egress::new(vec![]).with_resolver(Names::of(&[&["10.0.0.1"]]))));
    // Another test may be the first to come by this place of the code, while nobody listens there.
    while written.0.lock().unwrap().is_empty() {
        tracing::callsite::rebuild_interest_cache();
        post(&exchange, "http://127.0.0.1/").await.unwrap_err();
    }
    written.0.lock().unwrap().clear();
    for url in
        ["http://127.0.0.1:8080/a?token=hunter2#hunter2", "http://u:hunter2@x/", "https://inner.example/b?hunter2"]
    {
        post(&exchange, url).await.unwrap_err();
    }
    drop(guard);
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
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
