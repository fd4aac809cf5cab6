//! New names of people, as far as whoever gives them may.

use pintle_domain::person_name::{HostOwners, flaw};
use pintle_rules::admin::Caller;

use super::name;
use crate::error::ApiError;

/// A new name of a person, which looks like nobody else's as far as one can tell from it alone, and is not one of the
/// `owners` of the host.
pub(super) fn person<'a>(what: &str, text: &'a str, by: &Caller, owners: &HostOwners) -> Result<&'a str, ApiError> {
    let text = name(what, text)?;
    if let Some(flaw) = flaw(text) {
        return Err(ApiError::invalid(format!("{what} {flaw}")));
    }
    if by.name != text
        && let Some(owner) = owners.reserved(text, by.role)
    {
        return Err(ApiError::invalid(format!("{what} \"{owner}\" is reserved for whoever owns the host")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use pintle_rules::admin::CallerRole;

    use super::*;
    use crate::identity_admin::label;

    fn said(text: &str, by: &str, role: CallerRole) -> Result<String, String> {
        let by = Caller { name: by.to_owned(), role, ..Caller::cli() };
        let owners = HostOwners::named(vec!["anna".to_owned()]);
        person("userId", text, &by, &owners).map(str::to_owned).map_err(|error| error.message)
    }

    #[test]
    fn nobody_gets_a_name_that_may_be_taken_for_another_one() {
        use CallerRole::{Admin, Owner};
        let invalid = |why: &str| Err(format!("userId {why}"));
        for (text, by, role, expected) in [
            ("ben", "adm", Admin, Ok("ben".to_owned())),
            ("\u{430}dm", "adm", Admin, invalid("mixes Cyrillic and Latin letters: it would look like another name")),
            ("a\u{7}", "adm", Admin, invalid("has control characters")),
            ("System", "cli", Owner, invalid("\"system\" is reserved for whoever owns the host")),
            ("Anna", "adm", Admin, invalid("\"anna\" is reserved for whoever owns the host")),
            ("anna", "cli", Owner, Ok("anna".to_owned())),
            ("system", "system", Owner, Ok("system".to_owned())),
        ] {
            assert_eq!(said(text, by, role), expected, "{text} by {by}");
        }
    }

    #[test]
    fn no_key_and_no_tenant_gets_a_name_in_which_something_is_hidden() {
        let said = |text: &'static str| label("name", text).map_err(|error| error.message);
        assert_eq!(said("build server"), Ok("build server"));
        let why = "name has a character that is not seen or turns the direction of reading: U+202E";
        assert_eq!(said("build\u{202e}revres"), Err(why.to_owned()));
    }
}
