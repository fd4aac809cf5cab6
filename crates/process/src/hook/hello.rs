//! The handshake: the first call to every child.

use bytes::Bytes;
use pintle_dialects::process::frame::{self, RpcReply};
use pintle_dialects::process::wire;
use pintle_domain::fault::Fault;
use tokio::time::Instant;

use super::session::{Request, Session, Unanswered};

/// Says hello and waits for the answer; an error says why the child cannot be used.
pub(super) async fn greet(session: &Session) -> Result<(), String> {
    let spec = &session.spec;
    let request = Request {
        method: "hook.hello",
        params: Bytes::from(frame::hello(spec.name.as_str(), &spec.modes)),
        timeout: spec.start_timeout,
        deadline: Instant::now() + spec.start_timeout,
        prompt: false,
    };
    let RpcReply { body, warnings, .. } = session.call(request).await.map_err(|why| match why {
        Unanswered::Gone => "its child went away before it answered hook.hello".to_owned(),
        Unanswered::Fault(Fault::TimedOut { after }) => {
            format!("no answer to hook.hello within {} ms", after.as_millis())
        }
        Unanswered::Fault(fault) => format!("hook.hello: {}", fault.explained()),
    })?;
    session.warn_once(&warnings);
    session.warn_once(&wire::welcome(&body)?);
    Ok(())
}
