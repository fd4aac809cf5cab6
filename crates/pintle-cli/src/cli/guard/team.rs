//! The rules of a team, as `pintle guard status` shows them.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use pintle_host::config::{Config, RulesFrom};
use pintle_host::team_rules::{Contact, TeamFolder, TeamInForce, TeamStanding, Told};
use serde_json::{Value, json};

use crate::clean::clean;
use crate::moment::moment;

const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// How the rules of a team stand on this machine.
pub(super) struct TeamStatus {
    from: Result<RulesFrom, String>,
    standing: TeamStanding,
    contact: Contact,
    told: Told,
    now: Timestamp,
}

impl TeamStatus {
    /// Those of the gateway that `config` names, if it names one.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let from = config.rules_from.clone()?;
        Some(Self::kept(from, &config.home))
    }

    fn kept(from: Result<RulesFrom, String>, home: &Path) -> Self {
        let folder = TeamFolder::of(home);
        let standing = TeamStanding::of(&from, &folder);
        // What is damaged is said by the standing.
        let (contact, told) = (folder.contact().unwrap_or_default(), folder.told().unwrap_or_default());
        // How it went with another gateway says nothing of this one.
        let is_of_it = from.as_ref().is_ok_and(|from| contact.is_of(from.url.as_str()));
        let contact = if is_of_it { contact } else { Contact::default() };
        let told = if is_of_it { told } else { Told { away: None, ..told } };
        Self { from, standing, contact, told, now: Timestamp::now() }
    }

    /// Whether the rules are in force, and the gateway does not refuse to say which they are.
    pub(super) fn is_well(&self) -> bool {
        self.is_in_force() && self.contact.turned_away.is_none()
    }

    fn is_in_force(&self) -> bool {
        matches!(self.standing, TeamStanding::InForce(_))
    }

    fn url(&self) -> Option<String> {
        self.from.as_ref().ok().map(|from| from.url.as_str().trim_end_matches('/').to_owned())
    }

    /// How long ago the gateway last said that these are the rules, in seconds.
    fn age_s(&self) -> Option<i64> {
        self.contact.confirmed.map(|at| self.now.duration_since(at).as_secs().max(0))
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let since = |it: &Option<(Timestamp, String)>| it.as_ref().map(|(at, why)| json!({"since": at, "why": why}));
        let mut value = json!({
            "url": self.url(),
            "state": if self.is_in_force() { "in_force" } else { "shut" },
            "confirmed": self.contact.confirmed,
            "age_s": self.age_s(),
            "away": since(&self.contact.away),
            "refused": since(&self.contact.turned_away),
            "records": {"told": self.told.count, "refused": self.told.refused.0, "away": since(&self.told.away)},
        });
        let more = match &self.standing {
            TeamStanding::Shut { why } => json!({"why": why}),
            TeamStanding::InForce(team) => json!({
                "tenant": team.statement.tenant.slug,
                "version": team.statement.version,
                "rules": team.rules.len(),
                "signer": team.signer,
                "cannot_run": cannot_run(team).map(|(name, why)| json!({"rule": name, "why": why})).collect::<Vec<_>>(),
            }),
        };
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        value
    }

    /// For people.
    pub(super) fn write(&self, text: &mut String) -> std::fmt::Result {
        match &self.standing {
            TeamStanding::Shut { why } => writeln!(text, "team    {BAD}shut{BAD:#}: {}", clean(why))?,
            TeamStanding::InForce(team) => self.write_rules(text, team)?,
        }
        if let Some((since, why)) = &self.contact.turned_away {
            writeln!(text, "  {BAD}refused{BAD:#}    since {}: {}", moment(*since), clean(why))?;
        }
        if let Some((since, why)) = &self.contact.away {
            writeln!(text, "  {BAD}away{BAD:#}       since {}: {}", moment(*since), clean(why))?;
        }
        if self.is_in_force() && (self.contact.turned_away.is_some() || self.contact.away.is_some()) {
            writeln!(text, "             the last good rules stay in force")?;
        }
        let Told { count, refused: (refused, why), away, .. } = &self.told;
        if let Some((since, why)) = away {
            writeln!(text, "  records    not told since {}: {}; they wait", moment(*since), clean(why))?;
        }
        if *count > 0 {
            writeln!(text, "  records    {count} told")?;
        }
        if *refused > 0 {
            writeln!(text, "  records    {refused} not taken: {}", clean(why))?;
        }
        Ok(())
    }

    fn write_rules(&self, text: &mut String, team: &TeamInForce) -> std::fmt::Result {
        let many = match team.rules.len() {
            1 => "1 rule".to_owned(),
            count => format!("{count} rules"),
        };
        let (tenant, version) = (clean(&team.statement.tenant.slug), team.statement.version);
        writeln!(
            text,
            "team    {GOOD}in force{GOOD:#}: {many} of {tenant}, version {version}, from {}",
            clean(&team.from)
        )?;
        if let Some(at) = self.contact.confirmed {
            writeln!(text, "  confirmed  {} ago, {}", age(self.age_s().unwrap_or_default()), moment(at))?;
        }
        writeln!(text, "  {DIM}signer     {}{DIM:#}", clean(&team.signer))?;
        for (name, why) in cannot_run(team) {
            writeln!(text, "  {BAD}refused{BAD:#}    what {} guards: {why}", clean(name))?;
        }
        Ok(())
    }
}

/// The rules that cannot run here, and why.
fn cannot_run(team: &TeamInForce) -> impl Iterator<Item = (&str, String)> {
    team.rules.iter().filter_map(|rule| Some((rule.label(), rule.row(&team.from).err()?.to_string())))
}

/// A time in the largest unit of which there is one.
fn age(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let ages = [0, 59, 60, 3599, 3600, 86_399, 86_400, 900_000].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "10 d"]);
    }
}
