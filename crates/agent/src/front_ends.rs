//! What an agent has to do with those who keep its conversations in its place.

use domain::history::{HistoryKey, SignedContent, Trust};
use domain::identity::Identity;
use domain::json::Rendered;
use domain::message::Message;
use domain::skill::Skills;

/// The trust in histories that come with requests, and the signatures that leave so that they can be believed.
#[derive(Clone, Debug, Default)]
pub struct FrontEnds {
    /// Signs what leaves, and knows it again. Without one nothing is signed, and every message of the user's in a history
    /// passes the gates.
    pub key: Option<HistoryKey>,
    /// Whether a system message in a history must be one that the host sent; any other is then the user's.
    pub verify: bool,
}

impl FrontEnds {
    /// The signature; empty where there is no key.
    pub(crate) fn sign(&self, signed: SignedContent<'_>) -> String {
        self.key.as_ref().map(|key| key.sign(signed)).unwrap_or_default()
    }

    /// The trust that a history of `who` is held against.
    pub(crate) fn trust<'a>(
        &'a self,
        who: &'a Identity,
        skills: &'a Skills,
        held: &'a [Rendered<Message>],
    ) -> Trust<'a> {
        let (tenant, session) = (who.tenant_id.as_str(), who.session_id.as_str());
        Trust { key: self.key.as_ref(), tenant, session, verify: self.verify, skills, held }
    }
}
