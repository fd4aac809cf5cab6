//! What goes in and what comes out, in any amount.

use bytes::Bytes;
use futures_util::future::join_all;
use pintle_process::command::{CommandEnd, MAX_OUTPUT_BYTES, Stream};

use super::stage::{LONG, Stage, text};

/// More than any pipe holds.
const PAYLOAD_BYTES: usize = 4 << 20;

#[tokio::test]
async fn the_payload_comes_whole_and_then_an_end() {
    let stage = Stage::new();
    for bytes in [0, 1, 1 << 20, PAYLOAD_BYTES] {
        let ran = stage.run_with("wc -c", vec![b'x'; bytes]).await;
        assert_eq!((ran.end, text(&ran.stdout).trim()), (CommandEnd::Exit(0), bytes.to_string().as_str()));
    }
    let ran = stage.run_with("cat", r#"{"ToolName":"exec"}"#).await;
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(0), r#"{"ToolName":"exec"}"#));
}

#[tokio::test]
async fn a_payload_need_not_be_read() {
    let stage = Stage::new();
    let commands = [
        "exec <&-; echo ok",
        "head -c 1 >/dev/null; echo ok",
        "echo ok",
        // Its outputs end first.
        "echo ok; exec >&- 2>&-; head -c 1048577 >/dev/null",
    ];
    for command in commands {
        for bytes in [1 << 20, PAYLOAD_BYTES] {
            let ran = stage.run_with(command, vec![b'x'; bytes]).await;
            let heard = (ran.end, text(&ran.stdout), text(&ran.stderr));
            assert_eq!(heard, (CommandEnd::Exit(0), "ok\n", ""), "{command} {bytes}");
        }
    }
    assert!(stage.tasks.is_empty());
}

#[tokio::test]
async fn both_flow_at_once() {
    let stage = Stage::new();
    // It writes more than a pipe holds before it has read all, in both directions.
    let ran = stage.run_with("head -c 1000000 | tee /dev/stderr", vec![b'x'; PAYLOAD_BYTES]).await;
    assert_eq!((ran.end, ran.stdout.len(), ran.stderr.len()), (CommandEnd::Exit(0), 1_000_000, 1_000_000));
}

#[tokio::test]
async fn output_is_read_to_its_bound_and_no_further() {
    let stage = Stage::new();
    let full = format!("head -c {MAX_OUTPUT_BYTES} /dev/zero");
    let ran = stage.run(&format!("{full}; {full} >&2; exit 2")).await;
    let lengths = (ran.end, ran.stdout.len(), ran.stderr.len());
    assert_eq!(lengths, (CommandEnd::Exit(2), MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES));
    let ran = stage.run(&format!("{full}; echo")).await;
    assert_eq!((ran.end, ran.stdout.len()), (CommandEnd::TooMuch { stream: Stream::Stdout }, MAX_OUTPUT_BYTES));
    let ran = stage.run(&format!("{full} >&2; echo >&2; sleep 1000")).await;
    assert_eq!((ran.end, ran.stderr.len()), (CommandEnd::TooMuch { stream: Stream::Stderr }, MAX_OUTPUT_BYTES));
    stage.cleaned().await;
}

#[tokio::test]
async fn noise_before_the_answer_is_kept() {
    let stage = Stage::new();
    let ran = stage.run(r#"cat >/dev/null; echo checking; echo; echo '{"decision":"block"}'"#).await;
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(0), "checking\n\n{\"decision\":\"block\"}\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_run_at_once() {
    let stage = Stage::new();
    let spec = stage.spec("cat; exit 2");
    let runs =
        (0..64).map(|i| spec.run(Bytes::from(format!("payload {i}")), stage.limit(LONG), &stage.cancel, &stage.tasks));
    for (i, ran) in join_all(runs).await.into_iter().enumerate() {
        assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(2), format!("payload {i}").as_str()));
    }
    stage.cleaned().await;
}
