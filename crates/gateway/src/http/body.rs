//! The body of a request, as it comes in: bounded in length, and cut where nothing comes.

use std::error::Error as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, Sleep, sleep};

use crate::error::ApiError;

/// How long nothing may come of a body that is not complete. Source: the page of the gateway.
const IDLE: Duration = Duration::from_secs(30);

/// Why a body was not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BadBody {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) error: ApiError,
}

/// Nothing came of a body for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no data of the body arrived for {} s", IDLE.as_secs())]
struct Idle;

/// `body`, cut where nothing comes of it for too long, whoever reads it.
pub(super) fn timed(body: Body) -> Body {
    Body::new(Timed { body, idle: None, waits: false })
}

struct Timed {
    body: Body,
    /// Rings where nothing came; made by the first wait.
    idle: Option<Pin<Box<Sleep>>>,
    /// Whether it is waited for since the last piece came.
    waits: bool,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.waits = false;
            return Poll::Ready(frame);
        }
        let idle = this.idle.get_or_insert_with(|| Box::pin(sleep(IDLE)));
        if !std::mem::replace(&mut this.waits, true) {
            idle.as_mut().reset(Instant::now() + IDLE);
        }
        idle.as_mut().poll(context).map(|()| Some(Err(Error::new(Idle))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How long a body may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// In bytes.
    pub(super) most: usize,
    /// What to do about a longer one.
    pub(super) hint: &'static str,
}

/// All of a body.
pub(super) async fn whole(mut body: Body, Bound { most, hint }: Bound) -> Result<Bytes, BadBody> {
    let too_large = || {
        let why = format!("the body has more than {most} bytes; {hint}");
        bad(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", why)
    };
    // What is announced as too long is not waited for.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|announced| announced <= most) {
        all(&mut body, most).await?.ok_or_else(too_large)
    } else {
        Err(too_large())
    }
}

/// All of a body; `None` once it has more than `most` bytes.
async fn all(body: &mut Body, most: usize) -> Result<Option<Bytes>, BadBody> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Err(error) if is_idle(&error) => {
                return Err(bad(StatusCode::REQUEST_TIMEOUT, "body_timeout", Idle.to_string()));
            }
            Err(error) => {
                return Err(bad(StatusCode::BAD_REQUEST, "invalid_request", format!("the body broke off: {error}")));
            }
        }
        if bytes.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(bytes.into()))
}

/// Whether nothing came for too long.
fn is_idle(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.is::<Idle>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn bad(status: StatusCode, code: &'static str, message: String) -> BadBody {
    BadBody { status, code, error: ApiError::invalid(message) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const TEN: Bound = Bound { most: 10, hint: "send less" };

    #[tokio::test(start_paused = true)]
    async fn a_body_of_which_nothing_comes_is_cut() {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let began = Instant::now();
        let cut = whole(timed(Body::from_stream(never)), TEN).await.unwrap_err();
        assert_eq!((cut.status, cut.code, began.elapsed()), (StatusCode::REQUEST_TIMEOUT, "body_timeout", IDLE));
        assert_eq!(cut.error.message, "no data of the body arrived for 30 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_taken_as_long_as_something_comes() {
        let slow = futures_util::stream::unfold(0, |sent| async move {
            tokio::time::sleep(IDLE / 2).await;
            (sent < 5).then(|| (Ok::<_, std::io::Error>(Bytes::from_static(b"xx")), sent + 1))
        });
        let slow = Body::from_stream(Box::pin(slow));
        assert_eq!(whole(timed(slow), TEN).await, Ok(Bytes::from_static(b"xxxxxxxxxx")));
        let long = whole(timed(Body::from("x".repeat(11))), TEN).await.unwrap_err();
        assert_eq!((long.status, long.code), (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"));
        assert_eq!(long.error.message, "the body has more than 10 bytes; send less");
    }

    /// A body of this length of which nothing comes.
    pub(in crate::http) struct Announced(pub(in crate::http) u64);

    impl HttpBody for Announced {
        type Data = Bytes;
        type Error = Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
            Poll::Pending
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_announced_as_too_long_is_refused_at_once() {
        let cut = |length: u64| whole(timed(Body::new(Announced(length))), TEN);
        let began = Instant::now();
        for length in [11, 99_999_999_999, u64::MAX] {
            let long = cut(length).await.unwrap_err();
            assert_eq!((long.status, long.code), (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"), "{length}");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(cut(10).await.unwrap_err().code, "body_timeout");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_no_slow_one() {
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
        let cut = whole(timed(Body::from_stream(broken)), TEN).await.unwrap_err();
        assert_eq!((cut.status, cut.code), (StatusCode::BAD_REQUEST, "invalid_request"));
    }
}
