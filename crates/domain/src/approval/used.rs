//! What the audit chain keeps of an approval that was used, and from then on gives no leave, whatever its row says; and of
//! one that was refused.

use super::Approval;
use crate::json::{Object, Value};

/// The action of an entry of the chain that says that an approval was used.
pub const APPROVAL_USED: &str = "approval_used";

/// The action of an entry of the chain that says that a person refused the call, or that nobody answered in time.
pub const APPROVAL_REFUSED: &str = "approval_refused";

/// The member of such an entry that names the approval.
const APPROVAL_ID: &str = "approval_id";

/// Most characters that an entry has of the name of a tool, or of who answered.
const NAME_CHARS: usize = 256;

impl Approval {
    /// What the audit chain keeps of it as a call uses it up. It has no member `hook_id`: by that name the chain says how
    /// changes left a rule, and this is none.
    pub fn used_by_call(&self, at: jiff::Timestamp) -> Object {
        self.entry(APPROVAL_USED, at)
    }

    /// What the audit chain keeps of it as a person refuses the call.
    pub fn refused_by_person(&self, at: jiff::Timestamp) -> Object {
        self.entry(APPROVAL_REFUSED, at)
    }

    fn entry(&self, action: &str, at: jiff::Timestamp) -> Object {
        let short = |text: &str| -> Value { text.chars().take(NAME_CHARS).collect::<String>().into() };
        let mut members = Object::new();
        members.insert("action".to_owned(), action.into());
        members.insert("actor".to_owned(), short(self.answered_by.as_deref().unwrap_or_default()));
        members.insert(APPROVAL_ID.to_owned(), self.id.as_str().into());
        members.insert("at".to_owned(), at.to_string().into());
        members.insert("digest".to_owned(), self.digest.as_str().into());
        members.insert("tenant_id".to_owned(), self.tenant_id.as_str().into());
        members.insert("tool".to_owned(), short(&self.tool));
        members
    }
}

/// The approval that was used, if that is what the body of an entry of the chain says.
pub fn used_approval(body: &Object) -> Option<&str> {
    let data = body.get("data")?.as_object()?;
    let is_use = data.get("action").and_then(Value::as_str) == Some(APPROVAL_USED);
    data.get(APPROVAL_ID).filter(|_| is_use)?.as_str()
}
