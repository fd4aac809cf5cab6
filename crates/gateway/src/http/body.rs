//! The body of a request, as it comes in: bounded in length, and cut where nothing comes.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

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

/// All of a body, which has at most `most` bytes.
pub(crate) async fn whole(mut body: Body, most: usize) -> Result<Bytes, BadBody> {
    let mut bytes = Vec::new();
    loop {
        let Ok(frame) = timeout(IDLE, body.frame()).await else {
            let seconds = IDLE.as_secs();
            return Err(bad(
                StatusCode::REQUEST_TIMEOUT,
                "body_timeout",
                format!("no data of the body arrived for {seconds} s"),
            ));
        };
        match frame {
            None => return Ok(bytes.into()),
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Some(Err(error)) => {
                return Err(bad(StatusCode::BAD_REQUEST, "invalid_request", format!("the body broke off: {error}")));
            }
        }
        if bytes.len() > most {
            return Err(bad(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!(
                    "the body has more than {most} bytes; `gateway.max_body` sets how many are taken, and files go to /v1/media"
                ),
            ));
        }
    }
}

fn bad(status: StatusCode, code: &'static str, message: String) -> BadBody {
    BadBody { status, code, error: ApiError::invalid(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_of_which_nothing_comes_is_cut() {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let began = tokio::time::Instant::now();
        let cut = whole(Body::from_stream(never), 10).await.unwrap_err();
        assert_eq!((cut.status, cut.code, began.elapsed()), (StatusCode::REQUEST_TIMEOUT, "body_timeout", IDLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_taken_as_long_as_something_comes() {
        let slow = futures_util::stream::unfold(0, |sent| async move {
            tokio::time::sleep(IDLE / 2).await;
            (sent < 5).then(|| (Ok::<_, std::io::Error>(Bytes::from_static(b"xx")), sent + 1))
        });
        assert_eq!(whole(Body::from_stream(slow), 10).await, Ok(Bytes::from_static(b"xxxxxxxxxx")));
        let long = whole(Body::from("x".repeat(11)), 10).await.unwrap_err();
        assert_eq!((long.status, long.code), (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"));
    }
}
