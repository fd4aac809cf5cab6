//! The table of faults.

use std::time::Duration;

use pintle_domain::fault::{Direction, Fault, ProtocolBreach};

use super::stage::{LONG, Stage, ask, ask_about, continues, fault, within};

fn cannot_start(detail: impl Into<String>) -> Fault {
    Fault::CannotStart { cause: detail.into().into() }
}

/// What a hook with this command says of itself when it cannot start, to `ready` and to a call alike.
async fn start_fault(stage: &Stage, argv: &[&str]) -> Fault {
    let mut spec = stage.spec(argv);
    spec.start_timeout = Duration::from_millis(300);
    let hook = stage.start(spec);
    let fault = within(hook.ready()).await.unwrap_err();
    assert_eq!(ask_about(&hook, 1, Duration::ZERO).await.unwrap_err(), fault, "{argv:?}");
    fault
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_named_with_the_reason() {
    let stage = Stage::new();
    let at = |name: &str| stage.path(name).display().to_string();
    stage.file("plain.sh", "#!/bin/sh\n", 0o644);
    stage.file("lost.sh", "#!/no/such/interpreter -x\n", 0o755);
    stage.file("windows.sh", "#!/bin/sh\r\nexit\r\n", 0o755);
    let table = [
        ("no-such-program", "program `no-such-program` was not found through PATH".to_owned()),
        ("./missing", format!("program `{}` does not exist", at("./missing"))),
        ("./plain.sh", format!("`{}` is not executable", at("./plain.sh"))),
        (
            "./lost.sh",
            format!("`{}` cannot run: its interpreter `/no/such/interpreter` does not exist", at("./lost.sh")),
        ),
        ("./windows.sh", format!("`{}` cannot run: its interpreter `/bin/sh\\r` does not exist", at("./windows.sh"))),
        ("", "the first word of its command is empty".to_owned()),
        ("/", "`/` is a folder, not a program".to_owned()),
    ];
    for (program, detail) in table {
        assert_eq!(start_fault(&stage, &[program]).await, cannot_start(detail));
    }
    let mut spec = stage.spec(&["sh"]);
    spec.dir = Some(stage.path("nowhere"));
    let hook = stage.start(spec);
    let detail = format!("its folder `{}` does not exist or is not a folder", at("nowhere"));
    assert_eq!(within(hook.ready()).await, Err(cannot_start(detail)));
}

#[tokio::test]
async fn a_handshake_that_fails_is_named_with_the_reason() {
    let table = [
        ("exit 1", "exited with status 1 before it answered hook.hello"),
        ("kill -KILL $$", "was killed by signal 9 before it answered hook.hello"),
        (r#"echo '{"id":1,"error":{"message":"no"}}'; read -r l; read -r l"#, "hook.hello returned an error: no"),
        (
            r#"echo '{"id":1,"result":[]}'; read -r l; read -r l"#,
            "hook.hello: expected an object as result, got an array",
        ),
        ("read -r l; read -r l", "no answer to hook.hello within 300 ms"),
    ];
    for (script, detail) in table {
        let stage = Stage::new();
        assert_eq!(start_fault(&stage, &["sh", "-c", script]).await, cannot_start(detail), "{script}");
    }
}

#[tokio::test]
async fn before_the_handshake_is_answered_nothing_else_is_sent() {
    let stage = Stage::new();
    start_fault(&stage, &["sh", "-c", "exec cat >all"]).await;
    stage.tracker.close();
    within(stage.tracker.wait()).await;
    let all = stage.text("all");
    assert!(all.lines().count() == 1 && all.contains("hook.hello"), "{all}");
}

#[tokio::test]
async fn any_object_null_or_nothing_passes_the_handshake() {
    for result in [r#","result":{"ok":false}"#, r#","result":{"x":1}"#, r#","result":null"#, ""] {
        let stage = Stage::new();
        let hook =
            stage.start(stage.spec(&["sh", "-c", &format!("echo '{{\"id\":1{result}}}'; read -r l; read -r l")]));
        assert_eq!(within(hook.ready()).await, Ok(()), "{result}");
    }
}

#[tokio::test]
async fn what_a_child_does_instead_of_answering_is_a_fault_of_its_kind() {
    let table = [
        ("exit 2", Fault::exited(2)),
        ("exit 0", Fault::exited(0)),
        ("kill -KILL $$", Fault::killed(9)),
        ("kill -SEGV $$", Fault::killed(11)),
        ("echo; exit 4", Fault::exited(4)),
        (r#"echo '{"id":2,"error":{"message":"boom"}}'"#, Fault::Protocol(ProtocolBreach::Returned("boom".into()))),
        ("exec >&-; exec sleep 1000", Fault::broke("closed its output and stayed")),
    ];
    for (script, expected) in table {
        let stage = Stage::new();
        let hook = stage.hook(&format!("read -r line; {script}")).await;
        assert_eq!(fault(ask(&hook).await), expected, "{script}");
    }
}

#[tokio::test]
async fn half_an_object_faults_its_call_at_once_ended_or_not() {
    for end in [r"\n'; read -r line; exec sleep 1000", "'"] {
        let stage = Stage::new();
        let hook = stage.hook(&format!(r#"read -r line; printf '{{"id":2,"result":{{"action":{end}"#)).await;
        let fault = fault(ask(&hook).await);
        assert!(matches!(&fault, Fault::Unreadable { cause } if !cause.shown().is_empty()), "{end}: {fault:?}");
    }
}

#[tokio::test]
async fn a_line_above_the_limit_faults_its_call_and_no_other() {
    let stage = Stage::new();
    let hook = stage
        .hook(
            r#"read -r line; printf '{"id":2,"x":"'; head -c 10485760 /dev/zero | tr '\0' x; echo '"}'
            read -r line; printf '{"x":"'; head -c 10485760 /dev/zero | tr '\0' x; echo '","id":3}'
            read -r line; head -c 10485760 /dev/zero | tr '\0' x; echo; echo '{"id":4}'; read -r line"#,
        )
        .await;
    let too_large = Fault::TooLarge { way: Direction::Reply, limit: 1 << 20 };
    assert_eq!(fault(ask(&hook).await), too_large);
    assert_eq!(fault(ask(&hook).await), too_large);
    assert!(continues(&ask(&hook).await), "the line without an id is nobody's answer");
    assert_eq!((hook.status().stray_lines, hook.status().restarts), (1, 0));
}

#[tokio::test]
async fn a_call_above_the_limit_is_not_sent() {
    let stage = Stage::new();
    let hook = stage.hook(r#"read -r line; echo "$line" >seen; echo '{"id":2}'; read -r line"#).await;
    assert_eq!(fault(ask_about(&hook, 1 << 20, LONG).await), Fault::TooLarge { way: Direction::Call, limit: 1 << 20 });
    assert!(continues(&ask_about(&hook, 900 << 10, LONG).await));
    assert_eq!(hook.status().oversized_calls, 1);
    let seen = stage.text("seen");
    assert!(seen.starts_with(r#"{"jsonrpc":"2.0","id":2,"method":"hook.before_tool","params":{"#));
    assert!(seen.len() > 900 << 10 && seen.ends_with("}}\n") | seen.ends_with("}\n"));
}

#[tokio::test]
async fn a_flood_on_standard_error_blocks_nothing_and_only_its_end_is_kept() {
    let stage = Stage::new();
    let flood = "head -c 33554432 /dev/zero | tr '\\0' y >&2; echo the end >&2;";
    let hook = stage.hook(&format!(r#"read -r line; {flood} echo '{{"id":2}}'; exit 7"#)).await;
    assert!(continues(&ask(&hook).await));
    stage.close(&hook).await;
    let tail = hook.stderr_tail();
    assert_eq!((tail.len(), tail.trim_start_matches('y')), (64 << 10, "the end\n"));
}

#[tokio::test]
async fn a_hook_that_hangs_harms_no_other() {
    let stage = Stage::new();
    let deaf = stage.hook("exec sleep 1000").await;
    let good = stage.hook(r#"while read -r line; do n=$((n+1)); echo "{\"id\":$((n+1))}"; done"#).await;
    let short = Duration::from_millis(200);
    // Far more than its pipe and its queue take.
    let blocked = futures_util::future::join_all((0..300).map(|_| ask_about(&deaf, 100 << 10, short)));
    let served = async {
        for _ in 0..50 {
            assert!(continues(&ask(&good).await));
        }
    };
    let (blocked, ()) = within(futures_util::future::join(blocked, served)).await;
    for reply in blocked {
        let fault = fault(reply);
        assert_eq!(fault, Fault::TimedOut { after: short });
    }
}
