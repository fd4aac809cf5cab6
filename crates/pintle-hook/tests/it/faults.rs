//! Whatever goes wrong between a hook and its daemon ends in the refusal of the host, before the deadline.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_hook::frame::{self, DaemonAnswer, MAX_PAYLOAD_BYTES};

use crate::hook::{KEY, PAYLOAD, World, asked, check_refused, finish, own_file, question, ruled, say, until_gone};

/// A deadline that no answer of these tests comes near.
const LONG: u64 = 60_000;

#[test]
fn what_the_daemon_says_is_what_the_host_gets() {
    let world = World::new();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        say(&mut stream, &DaemonAnswer::Held, &bytes);
        say(&mut stream, &ruled(r#"{"whole":"answer"}"#), &bytes);
        question(&bytes)
    });
    let left = world.run(LONG);
    assert_eq!((left.code, left.stdout.as_str(), left.stderr.as_str()), (Some(0), r#"{"whole":"answer"}"#, ""));
    let question = daemon.join().unwrap();
    assert_eq!((question.host.as_str(), question.event.as_str()), ("claude", "PreToolUse"));
    assert_eq!((question.payload.as_slice(), question.deadline_ms), (PAYLOAD.as_bytes(), LONG));
    assert_eq!(question.cwd, world.dir.path().canonicalize().unwrap().to_str().unwrap());
}

/// Nobody finds the agent above a hook that has ended.
#[test]
fn a_hook_that_wants_no_answer_stays_until_it_was_seen() {
    let world = World::new();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // Its end would be no bytes, and no error.
        let stays = stream.read(&mut [0]).is_err();
        drop(stream);
        (question(&bytes).event, stays)
    });
    let mut command = world.command(LONG);
    command.args(["--event", "SessionEnd"]);
    let left = finish(command.spawn().unwrap(), PAYLOAD.as_bytes());
    assert_eq!(daemon.join().unwrap(), ("SessionEnd".to_owned(), true));
    assert_eq!((left.code, left.stdout.as_str(), left.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn only_variables_of_the_hosts_table_leave() {
    let world = World::new();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        say(&mut stream, &ruled("{}"), &bytes);
        question(&bytes)
    });
    let mut command = world.command(LONG);
    command.env("CLAUDE_CODE_MESSAGING_TOKEN", "secret").env("ANTHROPIC_API_KEY", "secret");
    finish(command.spawn().unwrap(), PAYLOAD.as_bytes());
    let question = daemon.join().unwrap();
    assert!(question.env.iter().all(|(_, value)| value != "secret"), "{question:?}");
}

#[test]
fn an_answer_of_somebody_else_is_none() {
    for (bad, why) in [
        (
            Box::new(|bytes: &[u8]| ruled("{}").to_bytes(&[6; 32], bytes)) as Box<dyn Fn(&[u8]) -> Vec<u8> + Send>,
            "code",
        ),
        (Box::new(|_: &[u8]| ruled("{}").to_bytes(&KEY, b"another question")), "code"),
        (
            Box::new(|bytes: &[u8]| {
                let mut newer = ruled("{}").to_bytes(&KEY, bytes);
                newer[5] = 9;
                newer
            }),
            "version 9",
        ),
        (Box::new(|_: &[u8]| b"{\"permissionDecision\":\"allow\"}".to_vec()), "not a frame"),
        (Box::new(|bytes: &[u8]| ruled("{}").to_bytes(&KEY, bytes)[..20].to_vec()), "malformed"),
    ] {
        let world = World::new();
        let daemon = world.daemon(move |mut stream| {
            let bytes = asked(&mut stream);
            frame::write(&mut stream, &bad(&bytes)).unwrap();
        });
        check_refused(&world.run(LONG), why);
        daemon.join().unwrap();
    }
}

#[test]
fn a_daemon_that_dies_leaves_a_refusal() {
    // Before it reads, before it answers, after `held`, and in the middle of its answer.
    for step in 0..4 {
        let world = World::new();
        let daemon = world.daemon(move |mut stream| {
            if step == 0 {
                return;
            }
            let bytes = asked(&mut stream);
            if step == 2 {
                say(&mut stream, &DaemonAnswer::Held, &bytes);
            }
            if step == 3 {
                let answer = ruled("{}").to_bytes(&KEY, &bytes);
                let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
                stream.write_all(&[&length[..], &answer[..answer.len() - 1]].concat()).unwrap();
            }
        });
        check_refused(&world.run(LONG), "refused: ");
        daemon.join().unwrap();
    }
}

#[test]
fn a_daemon_that_says_nothing_is_not_waited_for_beyond_the_deadline() {
    for held in [false, true] {
        let world = World::new();
        let daemon = world.daemon(move |mut stream| {
            let bytes = asked(&mut stream);
            if held {
                say(&mut stream, &DaemonAnswer::Held, &bytes);
            }
            until_gone(&mut stream);
        });
        let left = world.run(300);
        check_refused(&left, "did not answer in time");
        assert!(left.took >= Duration::from_millis(250), "{left:?}");
        daemon.join().unwrap();
    }
}

#[test]
fn a_socket_that_nobody_serves_is_not_waited_for() {
    let world = World::new();
    // It listens, and takes nobody in: its queue is filled first.
    let listener = UnixListener::bind(world.socket()).unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let first = std::os::unix::net::UnixStream::connect(world.socket()).unwrap();
    check_refused(&world.run(300), "did not answer in time");
    drop(first);
}

#[test]
fn a_key_that_is_not_the_users_alone_proves_nothing() {
    let world = World::new();
    std::fs::remove_file(world.key()).unwrap();
    let answer = |world: &World| {
        std::fs::remove_file(world.socket()).ok();
        world.daemon(|mut stream| {
            let bytes = asked(&mut stream);
            // A hook without a key does not wait for it.
            frame::write(&mut stream, &ruled("{}").to_bytes(&KEY, &bytes)).ok();
        })
    };
    let daemon = answer(&world);
    check_refused(&world.run(LONG), "refused: ");
    daemon.join().unwrap();
    std::fs::write(world.key(), KEY).unwrap();
    std::fs::set_permissions(world.key(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let daemon = answer(&world);
    check_refused(&world.run(LONG), "others may read or change it");
    daemon.join().unwrap();
}

#[test]
fn a_pipe_in_the_place_of_the_key_is_not_waited_for() {
    let world = World::new();
    std::fs::remove_file(world.key()).unwrap();
    nix::unistd::mkfifo(&world.key(), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        frame::write(&mut stream, &ruled("{}").to_bytes(&KEY, &bytes)).ok();
    });
    let left = world.run(LONG);
    check_refused(&left, "refused: ");
    assert!(left.took < Duration::from_secs(5), "{left:?}");
    daemon.join().unwrap();
}

#[test]
fn a_host_that_ends_its_hook_gets_the_refusal_first() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGALRM,
        Signal::SIGUSR1,
        Signal::SIGXFSZ,
        Signal::SIGIO,
        Signal::SIGSYS,
    ] {
        let world = World::new();
        let (tell, told) = mpsc::channel();
        let daemon = world.daemon(move |mut stream| {
            asked(&mut stream);
            tell.send(()).unwrap();
            until_gone(&mut stream);
        });
        let mut child = world.command(LONG).spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        child.stdin.take().unwrap().write_all(PAYLOAD.as_bytes()).unwrap();
        told.recv().unwrap();
        kill(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            pintle_guard::panic_deny("claude", "PreToolUse"),
            "{signal}"
        );
        daemon.join().unwrap();
    }
}

#[test]
fn no_signal_of_a_terminal_stops_it() {
    let world = World::new();
    let (tell, told) = mpsc::channel();
    let (go, gone_on) = mpsc::channel();
    let daemon = world.daemon(move |mut stream| {
        let bytes = asked(&mut stream);
        tell.send(()).unwrap();
        gone_on.recv().unwrap();
        say(&mut stream, &ruled("{}"), &bytes);
    });
    let mut child = world.command(LONG).spawn().unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    child.stdin.take().unwrap().write_all(PAYLOAD.as_bytes()).unwrap();
    told.recv().unwrap();
    for signal in [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU, Signal::SIGCHLD, Signal::SIGWINCH] {
        kill(pid, signal).unwrap();
    }
    go.send(()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), "{}");
    daemon.join().unwrap();
}

#[test]
fn whoever_reads_no_text_for_people_gets_the_refusal_all_the_same() {
    let world = World::new();
    own_file(&world.path("start"), b"");
    let (unread, full) = nix::unistd::pipe().unwrap();
    nix::fcntl::fcntl(&full, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
    while nix::unistd::write(&full, &[0; 4096]).is_ok() {}
    nix::fcntl::fcntl(&full, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::empty())).unwrap();
    let child = world.command(LONG).stderr(Stdio::from(full)).spawn().unwrap();
    let left = finish(child, PAYLOAD.as_bytes());
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), pintle_guard::panic_deny("claude", "PreToolUse")));
    drop(unread);
}

#[test]
fn a_word_that_is_no_text_is_refused_in_words() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    let word = std::ffi::OsStr::from_bytes(b"\xff");
    let output = world.command(LONG).arg(word).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()));
    assert!(String::from_utf8(output.stderr).unwrap().contains("is not UTF-8"));
}

#[test]
fn a_deadline_that_no_clock_reaches_is_one_of_a_day() {
    let world = World::new();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        say(&mut stream, &ruled("{}"), &bytes);
        question(&bytes)
    });
    let left = world.run(u64::MAX);
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), "{}"), "{left:?}");
    assert_eq!(daemon.join().unwrap().deadline_ms, 24 * 60 * 60 * 1000);
}

#[test]
fn a_host_that_never_ends_its_input_gets_the_refusal() {
    let world = World::new();
    let mut child = world.command(300).spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), pintle_guard::panic_deny("claude", "PreToolUse"));
}

#[test]
fn whoever_takes_its_input_away_does_not_make_it_wait() {
    let world = World::new();
    let mut child = world.command(5_000).spawn().unwrap();
    let of = format!("/proc/{}", child.id());
    let leads_to = |file: &str| std::fs::read_link(format!("{of}/fd/{file}")).ok();
    let never_waits = |file: &str| {
        let said = std::fs::read_to_string(format!("{of}/fdinfo/{file}")).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
        let flags = flags.and_then(|flags| i32::from_str_radix(flags, 8).ok());
        flags.is_some_and(|flags| flags & nix::fcntl::OFlag::O_NONBLOCK.bits() != 0)
    };
    // The pipe is open there once more.
    let found = loop {
        let mut others = (3..10).map(|file| file.to_string());
        let found = others.any(|file| leads_to(&file) == leads_to("0") && never_waits(&file));
        if found || child.try_wait().unwrap().is_some() {
            break found;
        }
        std::thread::yield_now();
    };
    assert!(found);
    let left = finish(child, PAYLOAD.as_bytes());
    check_refused(&left, "refused: ");
}

#[test]
fn of_input_that_is_too_long_the_daemon_hears_so_much_that_it_refuses_it() {
    let world = World::new();
    let daemon = world.daemon(|mut stream| {
        let bytes = asked(&mut stream);
        say(&mut stream, &ruled("{}"), &bytes);
        question(&bytes)
    });
    let left = finish(world.command(LONG).spawn().unwrap(), &vec![b' '; MAX_PAYLOAD_BYTES + 10]);
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), "{}"), "{left:?}");
    assert_eq!(daemon.join().unwrap().payload.len(), MAX_PAYLOAD_BYTES + 1);
}

#[test]
fn a_command_line_that_no_installation_wrote_is_refused_in_words() {
    let world = World::new();
    let mut command = world.command(LONG);
    let output = command.arg("--more").stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`--more` needs a value"));
}

#[test]
fn whoever_types_it_reads_what_it_is() {
    for (word, said) in [("--help", "pintle guard install"), ("--version", env!("CARGO_PKG_VERSION"))] {
        let program = env!("CARGO_BIN_EXE_pintle-hook");
        let output = Command::new(program).arg(word).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains(said), "{word}");
    }
}

#[test]
fn an_event_that_cannot_be_refused_gets_silence_or_its_document() {
    let world = World::new();
    own_file(&world.path("start"), b"");
    let mut command = world.command(LONG);
    command.args(["--event", "SessionEnd"]);
    let left = finish(command.spawn().unwrap(), b"{}");
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), pintle_guard::panic_deny("claude", "SessionEnd")));
}
