//! Nothing outlives a hook.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use pintle_domain::fault::Fault;
use pintle_engine::handler::Handler as _;

use super::stage::{HELLO, LONG, Stage, ask, ask_about, continues, fault, within};

/// A child that hears neither the end of its input nor TERM, with a grandchild that does not either. All of them
/// hold `held` open.
const STUBBORN: &str = r#"trap '' TERM; exec 9>held
    sh -c 'trap "" TERM; echo "here $$" >&9; while :; do sleep 1000; done' >/dev/null 2>&1 &
    while :; do sleep 1000; done"#;

#[tokio::test]
async fn a_child_that_ignores_everything_is_killed_with_its_children() {
    let stage = Stage::new();
    let mut held = stage.fifo("held");
    let hook = stage.hook(STUBBORN).await;
    assert!(held.line().await.unwrap().starts_with("here "));
    let short = Duration::from_millis(50);
    assert_eq!(fault(ask_about(&hook, 1, short).await), Fault::TimedOut { after: short });
    stage.close(&hook).await;
    assert_eq!(held.rest().await, "");
    assert_eq!(fault(ask(&hook).await), Fault::Unavailable { cause: "the hook is closed".into() });
}

#[tokio::test]
async fn a_dropped_hook_takes_its_children_along() {
    let stage = Stage::new();
    let mut held = stage.fifo("held");
    let hook = stage.hook(STUBBORN).await;
    assert!(held.line().await.unwrap().starts_with("here "));
    drop(hook);
    assert_eq!(held.rest().await, "");
}

#[test]
fn a_runtime_that_ends_takes_all_children_along() {
    let stage = Stage::new();
    let host = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (hook, mut reader) = host.block_on(async {
        let mut held = stage.fifo("held");
        let flags = OFlag::O_NONBLOCK.bits();
        let reader = OpenOptions::new().read(true).custom_flags(flags).open(stage.path("held")).unwrap();
        let hook = stage.hook(STUBBORN).await;
        assert!(held.line().await.unwrap().starts_with("here "));
        (hook, reader)
    });
    drop(host);
    drop(hook);
    // A plain read, since the first reader belonged to the runtime that ended. It blocks while anybody is left.
    let (tell, told) = std::sync::mpsc::channel();
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    std::thread::spawn(move || tell.send(reader.read_to_end(&mut Vec::new()).map_err(|error| error.kind())));
    assert!(told.recv_timeout(LONG).unwrap().is_ok());
}

#[tokio::test]
async fn a_call_under_way_is_answered_while_the_hook_closes() {
    let stage = Stage::new();
    let mut seen = stage.fifo("seen");
    // It answers once its input has ended.
    let hook = stage.hook(r#"exec 9>seen; read -r line; echo read >&9; read -r line; echo '{"id":2}'"#).await;
    let (reply, ()) = within(futures_util::future::join(ask(&hook), async {
        assert_eq!(seen.line().await.unwrap(), "read\n");
        hook.close().await;
    }))
    .await;
    assert!(continues(&reply));
}

#[tokio::test]
async fn closing_during_the_handshake_ends_the_child() {
    let stage = Stage::new();
    let mut held = stage.fifo("held");
    let hook = stage.start(stage.spec(&["sh", "-c", "exec 9>held; echo here >&9; read -r line; read -r line"]));
    assert_eq!(held.line().await.unwrap(), "here\n");
    stage.close(&hook).await;
    assert_eq!(held.rest().await, "");
    assert_eq!(hook.ready().await, Err(Fault::Unavailable { cause: "the hook is closed".into() }));
}

#[tokio::test]
async fn a_child_inherits_three_descriptors_and_leads_its_group() {
    let stage = Stage::new();
    // A descriptor that is not closed at exec by itself.
    let file = std::fs::File::create(stage.path("open")).unwrap();
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let script = r#"read -r line; ls -l /proc/$$/fd >fds
        cut -d' ' -f5 /proc/$$/stat >group; echo $$ >>group
        echo '{"id":2}'; read -r line"#;
    let hook = stage.hook(script).await;
    assert!(continues(&ask_about(&hook, 1, LONG).await));
    drop(file);
    let fds = stage.text("fds");
    // The shell itself keeps copies of its own three while it redirects.
    let strange = |line: &&str| !["pipe:[", "/fds", "total "].iter().any(|own| line.contains(own));
    assert_eq!(fds.lines().filter(strange).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!((4..=5).contains(&fds.lines().count()), "{fds}");
    let group = stage.text("group");
    let ids: Vec<&str> = group.lines().collect();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]));
    stage.close(&hook).await;
}

/// Names the folder of the stage to the process that plays the host.
const HOST: &str = "PINTLE_TEST_HOST";

/// Plays both parts: run by the test runner it starts itself again as a host, which it then kills.
#[tokio::test]
async fn a_killed_host_takes_its_child_along() {
    if let Some(folder) = std::env::var_os(HOST) {
        let stage = Stage::new();
        // Neither the end of its input nor TERM would end this child.
        let mut spec =
            stage.spec(&["sh", "-c", &format!("{HELLO} trap '' TERM; exec 9>held; echo here >&9; exec sleep 1000")]);
        spec.dir = Some(folder.into());
        let hook = stage.start(spec);
        hook.ready().await.unwrap();
        return std::future::pending().await;
    }
    let stage = Stage::new();
    let mut held = stage.fifo("held");
    let name = "process_child::close::a_killed_host_takes_its_child_along";
    let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(HOST, stage.folder.path())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    assert_eq!(held.line().await.unwrap(), "here\n");
    host.kill().await.unwrap();
    assert_eq!(held.rest().await, "");
}
