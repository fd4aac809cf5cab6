//! An endpoint's answer: the body of a 2xx response.

use super::members::Read;
use super::output::{read, reply_text, said, unreadable};
use super::{HandlerReply, ReplyFault};

/// The reply that the body of a response gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BodyReply {
    /// The reply; nothing, which allows, where the body is not JSON.
    pub said: HandlerReply,
    /// Whether it was empty or no JSON.
    pub non_json: bool,
}

/// Reads the body of a 2xx response. One that is empty or no JSON allows, unless the hook is `strict`.
///
/// # Errors
/// A fault for JSON that is not an object, for a broken or encoded reply, and for all that `strict` does not let pass: no
/// JSON, members that are near a known one and none.
pub fn body(bytes: &[u8], strict: bool) -> Result<BodyReply, ReplyFault> {
    let text = reply_text(bytes)?;
    match read(&text)? {
        Read::Object(members) => match said(members)? {
            HandlerReply { warnings, .. } if strict && !warnings.is_empty() => {
                Err(unreadable(format!("{} (the hook is `strict`)", warnings.join("; "))))
            }
            said => Ok(BodyReply { said, non_json: false }),
        },
        Read::Other(kind) => Err(unreadable(format!("must be a JSON object, got {kind}"))),
        Read::NotJson(_) if !strict => Ok(BodyReply { said: HandlerReply::default(), non_json: true }),
        Read::NotJson(_) if text.is_empty() => {
            Err(unreadable("must be a JSON object, got nothing (the hook is `strict`)"))
        }
        Read::NotJson(why) => Err(unreadable(format!("must be JSON (the hook is `strict`): {why}"))),
    }
}
