//! What a child's misdeeds leave in the log, and that a log that cannot be written ends nothing.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pintle_engine::handler::Handler as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::stage::{HELLO, Stage, ask, ask_about, continues, fault, within};

/// Keeps warnings and errors, a line each. One that fails panics instead, as a log on a closed stream may.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    fails: bool,
}

impl Log {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.target().starts_with("pintle_process") && *of.level() <= if self.fails { Level::INFO } else { Level::WARN }
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert!(!self.fails, "failed printing to stderr");
        let mut line = Line(String::new());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0.trim_end().to_owned());
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[tokio::test]
async fn a_flood_is_a_few_lines_and_a_count() {
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    let stage = Stage::new();
    let hook = stage.hook(r#"yes tick | head -n 3000; read -r line; echo '{"id":2,"result":{}}'; read -r line"#).await;
    assert!(continues(&ask(&hook).await));
    stage.close(&hook).await;
    assert_eq!(hook.status().stray_lines, 3000);
    let lines = log.lines();
    assert_eq!(lines.len(), 6, "{lines:#?}");
    assert!(lines[..5].iter().all(|line| line.contains("line=\"tick\"")), "{lines:#?}");
    assert_eq!(lines[5], "message=further lines of this child answered nothing hook=h more=2995");
}

#[tokio::test]
async fn a_hook_that_stays_down_is_logged_once() {
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    let stage = Stage::new();
    // The first start fails and is told by `ready` alone.
    let hook = stage.start(stage.spec(&["no-such-program"]));
    within(hook.ready()).await.unwrap_err();
    within(async {
        while hook.status().restarts < 2 {
            // A hook that never was up has no call wait for it.
            fault(ask_about(&hook, 1, Duration::from_secs(2)).await);
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.close(&hook).await;
    assert_eq!(log.lines(), Vec::<String>::new());
    // One that was up and falls is news, and not again while it stays down in the same way.
    let stage = Stage::new();
    let script = format!("if [ -e fell ]; then exit 4; fi; {HELLO} read -r line; touch fell; exit 3");
    let hook = stage.start(stage.spec(&["sh", "-c", &script]));
    within(hook.ready()).await.unwrap();
    within(async {
        while hook.status().restarts < 3 {
            fault(ask_about(&hook, 1, Duration::from_secs(2)).await);
        }
    })
    .await;
    stage.close(&hook).await;
    let down = |fault: &str| format!("message=the hook is down hook=h fault=\"{fault}\"");
    assert_eq!(log.lines(), [down("exited with status 3"), down("exited with status 4")]);
}

#[tokio::test]
async fn a_log_that_panics_leaves_nobody_waiting() {
    let log = Log { fails: true, ..Log::default() };
    let _kept = tracing::subscriber::set_default(log);
    let stage = Stage::new();
    let hook = stage.start(stage.spec(&["no-such-program"]));
    within(hook.ready()).await.unwrap_err();
    fault(within(ask(&hook)).await);
    within(hook.close()).await;
}
