//! How much of what hooks ask is in memory at once.

use std::io;
use std::time::Duration;

use pintle_hook::frame::MAX_FRAME_BYTES;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most questions that are worked at once; others wait, and are refused by their hooks when that takes too long.
const MAX_AT_ONCE: usize = 64;

/// Most questions that wait for a place although their hooks are gone. What people do asks for a few; with more the hooks
/// wait, so that nothing of it is lost.
const MAX_SEEN: usize = 1024;

/// The longest question that anybody may hand over at any time: nearly all are shorter, and as many as there are
/// connections cost little.
const SMALL_BYTES: usize = 64 * 1024;

/// How many KiB all longer questions have together: eight of the longest. A hook with a longer one waits until others are
/// worked.
const LARGE_KIB: usize = 8 * MAX_FRAME_BYTES.div_ceil(1024);

/// How long a hook may take to hand over what is left of its question.
const READ_TIME: Duration = Duration::from_secs(10);

/// The room for what hooks ask.
pub(super) struct QuestionRoom {
    places: Semaphore,
    seen: Semaphore,
    kib: Semaphore,
}

impl QuestionRoom {
    /// Room for all that a daemon takes.
    pub(super) fn new() -> Self {
        Self::of(MAX_AT_ONCE, MAX_SEEN, LARGE_KIB)
    }

    fn of(places: usize, seen: usize, kib: usize) -> Self {
        Self { places: Semaphore::new(places), seen: Semaphore::new(seen), kib: Semaphore::new(kib) }
    }

    /// A question as it comes in on `stream`, and what it takes of the room for long ones.
    pub(super) async fn read(&self, stream: &mut UnixStream) -> io::Result<(Vec<u8>, Option<SemaphorePermit<'_>>)> {
        let length = timed(READ_TIME, stream.read_u32()).await?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
        }
        // Until there is room it stays where it is, and its hook waits.
        let large = if length > SMALL_BYTES {
            let kib = u32::try_from(length.div_ceil(1024)).map_err(io::Error::other)?;
            Some(self.kib.acquire_many(kib).await.map_err(io::Error::other)?)
        } else {
            None
        };
        // A small one comes in one piece. What a longer one says of itself reserves nothing: room is made as it comes.
        let mut frame = Vec::with_capacity(length.min(SMALL_BYTES));
        let got = timed(READ_TIME, stream.take(length as u64).read_to_end(&mut frame)).await?;
        if got == length { Ok((frame, large)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// One of the places where questions are worked.
    pub(super) async fn place(&self) -> io::Result<SemaphorePermit<'_>> {
        self.places.acquire().await.map_err(io::Error::other)
    }

    /// Lets the hook at `stream` go, which wants no answer: its question is kept until it has a place.
    pub(super) async fn let_go(&self, stream: UnixStream) -> io::Result<SemaphorePermit<'_>> {
        let seen = self.seen.acquire().await.map_err(io::Error::other)?;
        drop(stream);
        Ok(seen)
    }
}

/// What `work` comes to within `limit`.
pub(super) async fn timed<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio_util::task::TaskTracker;

    use super::*;

    /// The end of a daemon, where a hook has begun to write `length` bytes.
    fn asked(tasks: &TaskTracker, length: usize) -> (UnixStream, tokio::task::JoinHandle<io::Result<()>>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let frame = [&u32::try_from(length).unwrap().to_be_bytes()[..], &vec![7; length]].concat();
        (ours, tasks.spawn(async move { theirs.write_all(&frame).await }))
    }

    #[tokio::test]
    async fn long_questions_wait_for_each_other_and_short_ones_for_nobody() {
        let room = QuestionRoom::of(1, 1, 100);
        let tasks = TaskTracker::new();
        let (mut one, mut two) = (asked(&tasks, SMALL_BYTES + 1), asked(&tasks, SMALL_BYTES + 1));
        let mut three = asked(&tasks, SMALL_BYTES);
        let (frame, large) = room.read(&mut one.0).await.unwrap();
        assert_eq!((frame.len(), large.is_some(), room.kib.available_permits()), (SMALL_BYTES + 1, true, 35));
        let waiting = room.read(&mut two.0);
        tokio::pin!(waiting);
        let (frame, small) = tokio::select! {
            _ = &mut waiting => panic!("there is no room"),
            read = room.read(&mut three.0) => read.unwrap(),
        };
        assert_eq!((frame.len(), small.is_none()), (SMALL_BYTES, true));
        drop(large);
        let (frame, _large) = waiting.await.unwrap();
        assert_eq!(frame.len(), SMALL_BYTES + 1);
        for hook in [one.1, two.1, three.1] {
            hook.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_small_question_has_as_much_room_as_it_needs() {
        let (room, tasks) = (QuestionRoom::new(), TaskTracker::new());
        for length in [0, 1, 1000, SMALL_BYTES] {
            let (mut hook, written) = asked(&tasks, length);
            let (frame, _) = room.read(&mut hook).await.unwrap();
            assert_eq!(frame, vec![7; length]);
            assert!(length < 32 || frame.capacity() == length, "{length}: {}", frame.capacity());
            written.await.unwrap().unwrap();
        }
        let (mut hook, mut cut) = UnixStream::pair().unwrap();
        cut.write_all(&[0, 0, 0, 9, 7]).await.unwrap();
        drop(cut);
        assert_eq!(room.read(&mut hook).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn hooks_that_want_no_answer_wait_where_too_many_were_let_go() {
        let room = QuestionRoom::of(1, 1, 1);
        let ((one, mut first), (two, mut second)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let kept = room.let_go(one).await.unwrap();
        assert_eq!(first.read(&mut [0]).await.unwrap(), 0);
        let waiting = room.let_go(two);
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("too many are kept"),
            () = std::future::ready(()) => {}
        }
        drop(kept);
        let _kept = waiting.await.unwrap();
        assert_eq!(second.read(&mut [0]).await.unwrap(), 0);
    }
}
