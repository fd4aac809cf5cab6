//! Who is asked about a call that needs a person: the one before the host, or somebody elsewhere.

use crate::host::AskSupport;

/// What becomes of a call that needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskWay {
    /// The host asks the person before it.
    Host,
    /// It waits for an answer from elsewhere, as long as the host lets it.
    Hold,
    /// It is refused at once, in the name of its approval.
    Deny,
}

/// What a configuration wants of that; nothing where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskWishes {
    /// Where somebody sits before the host.
    pub attended: Option<AskWay>,
    /// Where nobody does.
    pub headless: Option<AskWay>,
}

/// What becomes of a call that needs a person, at a host that asks as `asks` has it. `attended`: whether somebody sits
/// before it, as far as it says. Where it does not say, the stricter of the two wishes counts, and the host asks only if
/// it refuses where nobody is there.
pub fn ask_way(asks: AskSupport, attended: Option<bool>, wishes: AskWishes) -> AskWay {
    let held = |way: AskWay| if way == AskWay::Host { AskWay::Hold } else { way };
    let headless = held(wishes.headless.unwrap_or(AskWay::Hold));
    match (attended, asks) {
        (Some(false), _) => headless,
        (Some(true), AskSupport::Never) => held(wishes.attended.unwrap_or(AskWay::Hold)),
        (Some(true), AskSupport::AsksOrRefuses | AskSupport::AsksOnly) => wishes.attended.unwrap_or(AskWay::Host),
        (None, _) if headless == AskWay::Deny => AskWay::Deny,
        (None, AskSupport::AsksOrRefuses) => wishes.attended.unwrap_or(AskWay::Hold),
        (None, AskSupport::AsksOnly | AskSupport::Never) => held(wishes.attended.unwrap_or(AskWay::Hold)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_only_where_it_cannot_let_the_call_run() {
        use AskSupport::{AsksOnly, AsksOrRefuses, Never};
        use AskWay::{Deny, Hold, Host};
        for (asks, attended, wanted, headless, way) in [
            (AsksOrRefuses, Some(true), None, None, Host),
            (AsksOnly, Some(true), None, None, Host),
            (Never, Some(true), None, None, Hold),
            (Never, Some(true), Some(Host), None, Hold),
            (AsksOrRefuses, Some(true), Some(Hold), Some(Deny), Hold),
            (AsksOrRefuses, Some(true), Some(Deny), None, Deny),
            (AsksOrRefuses, Some(false), Some(Host), None, Hold),
            (AsksOrRefuses, Some(false), None, Some(Deny), Deny),
            (AsksOrRefuses, Some(false), None, Some(Host), Hold),
            (AsksOrRefuses, None, None, None, Hold),
            (AsksOrRefuses, None, Some(Host), None, Host),
            (AsksOrRefuses, None, Some(Host), Some(Deny), Deny),
            (AsksOnly, None, Some(Host), None, Hold),
            (AsksOnly, None, Some(Deny), None, Deny),
            (Never, None, Some(Host), None, Hold),
        ] {
            let wishes = AskWishes { attended: wanted, headless };
            assert_eq!(ask_way(asks, attended, wishes), way, "{asks:?} {attended:?} {wishes:?}");
        }
    }
}
