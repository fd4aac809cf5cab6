//! What rules of the store are given by their host.

use super::*;

#[test]
fn the_environment_says_the_edition_before_the_configuration_and_that_before_the_store() {
    let check = |vars: &[(&str, &str)], said: (Option<Edition>, &str)| {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        edition_of(said, &Env { vars, ..Env::default() }).map_err(|error| error.message)
    };
    let (lite, standard) = (Ok(Edition::Lite), Ok(Edition::Standard));
    assert_eq!(check(&[], (None, "sqlite://pintle.db")), lite);
    assert_eq!(check(&[], (None, IN_MEMORY)), lite);
    assert_eq!(check(&[], (None, "postgres://h/d")), standard);
    assert_eq!(check(&[], (None, "postgresql://h/d")), standard);
    assert_eq!(check(&[], (Some(Edition::Lite), "postgres://h/d")), lite);
    assert_eq!(check(&[("GOCLAW_EDITION", "standard")], (Some(Edition::Lite), IN_MEMORY)), standard);
    let both = [("GOCLAW_EDITION", "standard"), ("PINTLE_EDITION", "lite")];
    assert_eq!(check(&both, (None, "postgres://h/d")), lite);
    assert_eq!(check(&[("GOCLAW_EDITION", "standard"), ("PINTLE_EDITION", "")], (None, IN_MEMORY)), standard);
    let why = "PINTLE_EDITION is \"Lite\", expected lite or standard";
    assert_eq!(check(&[("PINTLE_EDITION", "Lite")], (None, IN_MEMORY)), Err(why.to_owned()));
}
