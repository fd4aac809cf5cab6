//! The socket: hooks of this user ask, one question a connection.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use listenfd::ListenFd;
use nix::fcntl::{FcntlArg, FdFlag, Flock, fcntl};
use nix::unistd::geteuid;
use pintle_hook::frame::{DaemonAnswer, Question, Ruled};
use pintle_hook::key::KEY_BYTES;
use pintle_process::ProcessStat;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{SemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::daemon_process::{DaemonOf, DaemonProcess, gateway_guards, sign};
use super::host_process::HookStarter;
use super::places::GuardPlaces;
use super::question_room::{QuestionRoom, timed};
use super::working::{Asked, Desk};
use crate::error::CliError;

/// How long a hook may take to take its answer.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// How long questions that were asked before the end may take until their answer: longer than any hook waits for the first
/// word.
const END_TIME: Duration = Duration::from_secs(30);

/// How long is waited for the lock, which commands have that keep something, for some milliseconds: a hook waits hardly
/// longer for a daemon.
const LOCK_TIME: Duration = Duration::from_millis(100);

/// How often a daemon looks whether its socket is still where hooks look for it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After how long without a question the memory of the program's code is given back, once for each such silence. In a
/// gateway, which may have other work, what that needs is mapped again at once.
const REST_AFTER: Duration = Duration::from_secs(5);

/// Hooks that listen to the daemon: its socket, which nobody else has.
pub(crate) struct Listening {
    listener: UnixListener,
    /// Where it listens.
    pub(super) places: GuardPlaces,
    key: [u8; KEY_BYTES],
    /// Whether a service manager made the socket, which starts the next daemon and takes the socket away.
    pub(crate) is_handed_over: bool,
    /// The socket's file: device and number.
    file: (u64, u64),
    /// Held for as long as it listens.
    _alone: Flock<File>,
}

impl Listening {
    /// Listens at `places`, as part of the command `of`.
    ///
    /// # Errors
    /// Another daemon does, or the socket or the key cannot be made.
    pub(crate) fn open(places: &GuardPlaces, of: DaemonOf) -> Result<Self, CliError> {
        let failed = |error: io::Error| {
            CliError::failed(format!("the guard cannot listen at {}: {error}", places.socket.display()))
        };
        places.make().map_err(failed)?;
        let handed_over = handed_over(&places.socket)?;
        let alone = places.alone_within(LOCK_TIME).map_err(failed)?.ok_or_else(|| guarded(places))?;
        if of == DaemonOf::Serve && handed_over.is_none() && is_heard(&places.socket) {
            return Err(failed(io::Error::other("a service manager does, which starts a daemon")));
        }
        sign(&alone, of).map_err(failed)?;
        if let Err(error) = places.bound_log() {
            tracing::warn!(%error, "the log stays as long as it is");
        }
        let key = places.key().map_err(failed)?;
        let is_handed_over = handed_over.is_some();
        let listener = handed_over.map_or_else(|| bound(&places.socket), UnixListener::from_std).map_err(failed)?;
        let file = file_at(&places.socket).map_err(failed)?;
        match of {
            DaemonOf::GuardServe => {
                fs::write(places.pid_file(), format!("{}\n", std::process::id())).map_err(failed)?;
            }
            // Whoever ends the process that is named there means a daemon, not a gateway.
            DaemonOf::Serve => {
                fs::remove_file(places.pid_file()).ok();
            }
        }
        Ok(Self { listener, places: places.clone(), key, is_handed_over, file, _alone: alone })
    }

    /// Waits until hooks no longer find this socket where they look: somebody removed it, or put another one there. Its log
    /// stays short meanwhile.
    async fn is_lost(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.places.bound_log() {
                tracing::debug!(%error, "the log stays as long as it is");
            }
            if file_at(&self.places.socket).ok() != Some(self.file) {
                tracing::warn!(
                    "the socket is gone from {}: no hook is heard here any more",
                    self.places.socket.display()
                );
                return;
            }
        }
    }

    /// Answers until `stop`, or until nobody has asked for `idle`, if that ends it.
    pub(crate) async fn serve(self, desk: Arc<Desk>, (stop, idle): (CancellationToken, Option<Duration>)) {
        let tasks = TaskTracker::new();
        let (began, heard) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let room = QuestionRoom::new();
        let (key, user) = (self.key, geteuid().as_raw());
        let desk = Arc::new(Counter { desk, key, user, began, heard: heard.clone(), room });
        let lost = self.is_lost();
        tokio::pin!(lost);
        let last_heard = || began + Duration::from_millis(heard.load(Ordering::Relaxed));
        let mut rested = None;
        loop {
            let silent_since = last_heard();
            let over = idle.map(|idle| silent_since + idle);
            let rest = (rested != Some(silent_since)).then(|| silent_since + REST_AFTER);
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                // Nobody could ask it, and the lock would keep the next one out.
                () = &mut lost => break,
                () = sleep_until(over) => {
                    // Somebody may wait for a person, and somebody may have asked since.
                    if last_heard() > silent_since || !tasks.is_empty() {
                        continue_later().await;
                        continue;
                    }
                    break;
                }
                () = sleep_until(rest) => {
                    // Somebody may have asked since, and be followed by others.
                    if last_heard() == silent_since {
                        pintle_process::give_back_code()
                            .unwrap_or_else(|error| tracing::debug!(%error, "the code stays in memory"));
                        rested = Some(silent_since);
                    }
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (desk, stop) = (desk.clone(), stop.clone());
                    tasks.spawn(async move {
                        let taken = desk.take(stream, &stop).await;
                        taken.unwrap_or_else(|error| tracing::warn!("a hook was not answered: {error}"));
                    });
                }
                Err(error) => {
                    tracing::warn!("no hook can be heard: {error}");
                    continue_later().await;
                }
            }
        }
        if !self.is_handed_over && file_at(&self.places.socket).ok() == Some(self.file) {
            fs::remove_file(&self.places.socket).ok();
        }
        fs::remove_file(self.places.pid_file()).ok();
        tasks.close();
        // One that looks at files which never answer must not keep the lock from the next daemon.
        if tokio::time::timeout(END_TIME, tasks.wait()).await.is_err() {
            tracing::warn!("questions are left that nobody answers: their hooks refuse");
        }
        desk.desk.close().await;
    }
}

/// Why nobody else guards with the home of `places`.
fn guarded(places: &GuardPlaces) -> CliError {
    let of_daemon = |pid: &str| {
        CliError::failed(format!("another daemon guards with this home{pid}"))
            .hint("`pintle guard status` shows it, `pintle guard stop` ends it")
    };
    match places.daemon() {
        Some(DaemonProcess { pid, of: DaemonOf::Serve, .. }) => CliError::failed(gateway_guards(pid)),
        Some(DaemonProcess { pid, of: DaemonOf::GuardServe, .. }) => of_daemon(&format!(" (pid {pid})")),
        None => of_daemon(""),
    }
}

/// Whether somebody listens at `socket` already: no daemon where nobody has the lock, but a service manager. One whose
/// socket is taken away has one that no hook finds.
fn is_heard(socket: &Path) -> bool {
    net::UnixStream::connect(socket).is_ok()
}

/// The socket that a service manager made for this process, if one did: it must be the one that hooks look for.
fn handed_over(socket: &Path) -> Result<Option<net::UnixListener>, CliError> {
    let refused = |what: String| {
        let hint = format!("the unit needs `ListenStream={}` and `SocketMode=0600`", socket.display());
        CliError::failed(format!("the guard cannot take the socket of the service manager: {what}")).hint(hint)
    };
    let taken = ListenFd::from_env().take_unix_listener(0);
    let Some(listener) = taken.map_err(|error| refused(error.to_string()))? else { return Ok(None) };
    let address = listener.local_addr().map_err(|error| refused(error.to_string()))?;
    if address.as_pathname() != Some(socket) {
        return Err(refused(format!("it listens at {address:?}")));
    }
    let mode = fs::metadata(socket).map_err(|error| refused(error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(refused(format!("others may open it (mode {:o})", mode & 0o777)));
    }
    // What the hooks of people start must not hold it.
    let closed = fcntl(&listener, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(io::Error::from);
    let ready = closed.and_then(|_| listener.set_nonblocking(true));
    ready.map_err(|error| refused(error.to_string()))?;
    Ok(Some(listener))
}

/// A socket of this process's own. Nobody else listens there: whoever did has the lock.
fn bound(socket: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Waits a while before the same is tried again.
async fn continue_later() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn sleep_until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// A question, as it came.
#[derive(Clone, Copy)]
struct TakenQuestion<'a> {
    question: &'a Question,
    bytes: &'a [u8],
    /// The process of the host that started the hook, and since when that runs.
    process: Option<(u32, u64)>,
}

/// Takes questions in.
struct Counter {
    desk: Arc<Desk>,
    key: [u8; KEY_BYTES],
    /// The user of this process, whose hooks alone are answered.
    user: u32,
    began: Instant,
    /// The milliseconds from `began` to the newest question.
    heard: Arc<AtomicU64>,
    room: QuestionRoom,
}

impl Counter {
    async fn take(&self, mut stream: UnixStream, stop: &CancellationToken) -> io::Result<()> {
        // Looked for first: nobody finds a host above a hook, or above a shell of a hook, that has ended.
        let peer = stream.peer_cred()?;
        if peer.uid() != self.user {
            return Err(io::Error::other(format!("user {} asked", peer.uid())));
        }
        let hook = peer.pid().and_then(|pid| u32::try_from(pid).ok()).and_then(ProcessStat::of);
        let started = hook.and_then(|hook| HookStarter::of(&hook));
        let (asked, _long) = self.room.read(&mut stream).await?;
        let question = Question::of_bytes(&asked).map_err(io::Error::other)?;
        let process = started.and_then(|started| started.process_of(&question.host));
        if question.wants_answer() {
            // Whoever has not said all of it yet takes nobody's place.
            let _place = self.place().await?;
            let taken = TakenQuestion { question: &question, bytes: &asked, process };
            let ruled = self.ruled(&mut stream, taken, stop).await?;
            let answer = DaemonAnswer::Ruled(ruled).to_bytes(&self.key, &asked);
            return timed(WRITE_TIME, write(&mut stream, &answer)).await;
        }
        drop(asked);
        // A hook that wants no answer ends once its connection does: it was seen, and waits for no place.
        let _seen = self.room.let_go(stream).await?;
        let _place = self.place().await?;
        let (held, _) = mpsc::channel(1);
        // The hook is gone, as it should.
        drop(self.desk.answer(Asked { question: &question, process, held, gone: stop.child_token() }).await);
        Ok(())
    }

    /// One of the places where questions are worked, for one that has come in whole.
    async fn place(&self) -> io::Result<SemaphorePermit<'_>> {
        let place = self.room.place().await?;
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(since, Ordering::Relaxed);
        Ok(place)
    }

    async fn ruled(
        &self,
        stream: &mut UnixStream,
        taken: TakenQuestion<'_>,
        stop: &CancellationToken,
    ) -> io::Result<Ruled> {
        let TakenQuestion { question, bytes: asked, process } = taken;
        let (held, mut rung) = mpsc::channel(1);
        let gone = stop.child_token();
        let answer = self.desk.answer(Asked { question, process, held, gone: gone.clone() });
        tokio::pin!(answer);
        loop {
            let mut byte = [0];
            tokio::select! {
                ruled = &mut answer => return Ok(ruled),
                Some(()) = rung.recv() => {
                    timed(WRITE_TIME, write(stream, &DaemonAnswer::Held.to_bytes(&self.key, asked))).await?;
                }
                // A hook says nothing more: it is gone, or it is none. Its call is cleared to its end all the same, so
                // that the record says what became of it.
                _ = stream.read(&mut byte), if !gone.is_cancelled() => gone.cancel(),
            }
        }
    }
}

async fn write(stream: &mut UnixStream, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], frame].concat()).await?;
    stream.flush().await
}
