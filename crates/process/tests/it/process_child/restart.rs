//! Children that fall are started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pintle_domain::fault::Fault;

use pintle_process::hook::unchecked;

use super::stage::{HELLO, Stage, ask, ask_about, continues, fault, within};

/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_next_child_shakes_hands_anew_and_counts_from_one() {
    let stage = Stage::new();
    let script = r#"
        while read -r line; do
            echo "$line" | cut -d, -f2,3 >>seen
            case $line in
                *hook.hello*) echo '{"id":1}' ;;
                *) if [ -e fell ]; then echo '{"id":2}'; else touch fell; exit 3; fi ;;
            esac
        done"#;
    let hook = stage.start(stage.spec(&["sh", "-c", script]));
    within(hook.ready()).await.unwrap();
    assert_eq!(fault(ask(&hook).await), Fault::exited(3));
    assert_eq!(hook.status().fault, Some(Fault::exited(3)));
    // The restart is not due before this call's deadline, so it faults at once and names the last exit.
    assert_eq!(fault(ask_about(&hook, 1, Duration::ZERO).await), Fault::exited(3));
    assert!(continues(&ask(&hook).await), "a call with time waits for the restart");
    assert_eq!((hook.status().up, hook.status().restarts, hook.status().fault), (true, 1, None));
    let round = "\"id\":1,\"method\":\"hook.hello\"\n\"id\":2,\"method\":\"hook.before_tool\"\n";
    assert_eq!(stage.text("seen"), round.repeat(2));
    stage.close(&hook).await;
}

#[tokio::test]
async fn the_check_runs_before_every_start() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["sh", "-c", &format!("{HELLO} read -r line; exit 3")]);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    spec.before_spawn = Arc::new(move || match counted.fetch_add(1, Ordering::Relaxed) {
        0 => unchecked()(),
        _ => Err("changed since it was trusted".into()),
    });
    let hook = stage.start(spec);
    within(hook.ready()).await.unwrap();
    assert_eq!(fault(ask(&hook).await), Fault::exited(3));
    let refused = Fault::CannotStart { cause: "changed since it was trusted".into() };
    within(async { while fault(ask_about(&hook, 1, Duration::from_millis(400)).await) != refused {} }).await;
    assert!(runs.load(Ordering::Relaxed) > 1);
    assert_eq!(hook.status().fault, Some(refused));
    stage.close(&hook).await;
}

#[tokio::test]
async fn what_was_swapped_between_its_check_and_its_handshake_is_never_asked() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["sh", "-c", &format!("{HELLO} while read -r line; do echo '{{}}'; done")]);
    spec.before_spawn = Arc::new(|| Ok(Box::new(|| Err("changed since it was trusted".into()))));
    let hook = stage.start(spec);
    let refused = Fault::CannotStart { cause: "changed since it was trusted".into() };
    assert_eq!(within(hook.ready()).await, Err(refused.clone()));
    assert_eq!(fault(ask(&hook).await), refused);
    stage.close(&hook).await;
}

#[tokio::test]
async fn three_timeouts_without_a_line_end_the_child() {
    let stage = Stage::new();
    let script = r#"if [ -e hung ]; then read -r line; echo '{"id":2}'; read -r line; fi
        touch hung; while read -r line; do :; done"#;
    let hook = stage.hook(script).await;
    let short = Duration::from_millis(50);
    for _ in 0..3 {
        assert_eq!(fault(ask_about(&hook, 1, short).await), Fault::TimedOut { after: short });
    }
    assert!(continues(&ask(&hook).await), "the next child answers");
    assert_eq!(hook.status().restarts, 1);
    stage.close(&hook).await;
}

#[tokio::test]
async fn a_call_waits_only_for_a_hook_that_shook_hands_before() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["sh", "-c", "exec cat >/dev/null"]);
    spec.start_timeout = Duration::from_millis(50);
    let hook = stage.start(spec);
    let silent = Fault::CannotStart { cause: "no answer to hook.hello within 50 ms".into() };
    // The call that comes while it is being started waits for that, and no later one does: here for ever.
    assert_eq!(fault(within(ask_about(&hook, 1, FOREVER)).await), silent);
    assert_eq!(within(hook.ready()).await, Err(silent.clone()));
    for _ in 0..3 {
        assert_eq!(fault(within(ask_about(&hook, 1, FOREVER)).await), silent);
    }
    assert_eq!(hook.status().restarts, 0, "none of them waited for the next start");
    stage.close(&hook).await;
}
