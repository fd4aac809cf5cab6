//! A daemon that no longer answers ends, so that the next hook starts one that does. A thread of its own asks it, because
//! nothing that hangs can be trusted to notice it.

use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::folders::Folders;

/// How often the daemon is asked.
const EVERY: Duration = Duration::from_secs(2);

/// How many seconds without an answer end it: far longer than a store or a busy machine takes, and no longer than hooks wait
/// for a daemon.
const LIMIT: u32 = 10;

/// How many seconds it may take to its end once it was told to end. Questions under way are answered first.
const END_LIMIT: u32 = 45;

/// One tick of waiting. One that took much longer was a machine or a process that stood still, and does not count.
const TICK: Duration = Duration::from_secs(1);

/// How a daemon that hung ends.
const HUNG: i32 = 1;

/// What is asked at the moment, for the message.
type Stage = Arc<Mutex<String>>;

/// Watches the daemon that runs on the current runtime and reads its rules in `folders`, until the process ends. Once
/// `stop` is cancelled, it also sees to it that the end comes.
///
/// # Errors
/// The system starts no thread.
pub(crate) fn watch(folders: Arc<Folders>, stop: CancellationToken) -> std::io::Result<()> {
    let runtime = Handle::current();
    let watching = move || {
        while !stop.is_cancelled() {
            thread::sleep(EVERY);
            let (stage, asked) = (Stage::default(), folders.clone());
            let at = stage.clone();
            let answered = within(LIMIT, |answer| {
                runtime.spawn(async move {
                    asked.look(&at).await;
                    answer.send(()).ok();
                });
            });
            if answered == Waited::Hung && !stop.is_cancelled() {
                end_hung(&stage.lock().unwrap_or_else(PoisonError::into_inner), LIMIT);
            }
        }
        // Nobody answers: the process ends before, or it hangs.
        let (_kept, never) = channel();
        until(END_LIMIT, &never);
        end_hung("its own end", END_LIMIT);
    };
    thread::Builder::new().name("pintle-heartbeat".into()).spawn(watching).map(drop)
}

/// Ends the process at once: what it holds is the system's to give back.
fn end_hung(stage: &str, seconds: u32) -> ! {
    let stage = if stage.is_empty() { "its own threads" } else { stage };
    tracing::error!(
        "guard.hung: {stage} did not answer for {seconds} s; this daemon ends, and the next hook starts another"
    );
    process::exit(HUNG);
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Answered,
    /// Nobody can answer any more.
    Gone,
    Hung,
}

/// Starts `work` and waits for its answer, as [`until`] does.
fn within(limit: u32, work: impl FnOnce(Sender<()>)) -> Waited {
    let (answer, heard) = channel();
    work(answer);
    until(limit, &heard)
}

/// Waits for an answer for `limit` ticks in which this thread ran.
fn until(limit: u32, heard: &Receiver<()>) -> Waited {
    let mut ticks = 0;
    while ticks < limit {
        let began = Instant::now();
        match heard.recv_timeout(TICK) {
            Ok(()) => return Waited::Answered,
            Err(RecvTimeoutError::Disconnected) => return Waited::Gone,
            Err(RecvTimeoutError::Timeout) if began.elapsed() < TICK * 2 => ticks += 1,
            // The process was stopped, or the machine slept.
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Waited::Hung
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_is_told_from_what_hangs_and_from_what_is_gone() {
        let mut kept = None;
        assert_eq!(within(1, |answer| answer.send(()).unwrap()), Waited::Answered);
        assert_eq!(within(1, drop), Waited::Gone);
        assert_eq!(within(1, |answer| kept = Some(answer)), Waited::Hung);
        assert!(kept.is_some());
    }
}
