//! Questions about calls of foreign agents, which make a refused call again under another id and in another turn.

use sha2::{Digest as _, Sha256};

use super::Approval;
use crate::hex::hex;
use crate::id::{CallId, TurnId};
use crate::identity::Identity;
use crate::json::{canonical, json};
use crate::tool::{CallPlace, ToolCall};

/// The seconds in which an approval of such a call is used by making the call again.
pub const USABLE_SECONDS: u32 = 600;

/// The turn that questions about such calls stand in: none.
const ANY_TURN: &str = "any";

/// `who` and `call` as a question about them has them: what makes the call the same call is its session, its tool, its
/// place and its arguments, and neither its turn nor its id.
pub fn by_content(who: &Identity, call: &ToolCall, place: &CallPlace) -> (Identity, ToolCall) {
    let content = json!([who.tenant_id, who.agent_id, who.session_id, call.tool, place, call.arguments]);
    let id = CallId::new(format!("same:{}", hex(&Sha256::digest(canonical(&content).as_bytes()))));
    (Identity { turn_id: TurnId::new(ANY_TURN), ..who.clone() }, ToolCall { id, ..call.clone() })
}

impl Approval {
    /// Whether it is about what a call is, whatever its turn and id.
    pub fn is_by_content(&self) -> bool {
        self.turn_id.as_str() == ANY_TURN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_made_again_is_the_same_and_another_one_is_not() {
        let who = |session: &str, turn: &str| Identity::top("main", session, TurnId::new(turn));
        let call = |id: &str, text: &str| ToolCall::new(id, "exec", [("command", text)]);
        let here = CallPlace::in_folder("/work");
        let of = |who: &Identity, call: &ToolCall, place: &CallPlace| {
            let (who, call) = by_content(who, call, place);
            (who.turn_id, call.id)
        };
        let first = of(&who("claude:1", "t1"), &call("a", "make"), &here);
        assert_eq!(first, of(&who("claude:1", "t2"), &call("b", "make"), &here));
        for other in [
            of(&who("claude:2", "t1"), &call("a", "make"), &here),
            of(&who("claude:1", "t1"), &call("a", "make all"), &here),
            of(&who("claude:1", "t1"), &call("a", "make"), &CallPlace::in_folder("/elsewhere")),
        ] {
            assert_ne!(first, other);
        }
    }
}
