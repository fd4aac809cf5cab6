//! The names of sessions: as clients know them, and as they are kept. Pure.
//!
//! A client knows a conversation as `agent:AGENT:ws:direct:NAME`. It is kept as `agent:AGENT:ws:USER:NAME`, so two users
//! can give two conversations one name, and whose a session is stands in its key. Whoever sees only their own sees
//! `direct` in the place of their name; whoever sees those of others sees the names.

use pintle_domain::id::{SessionId, TurnId};

use crate::principal::Principal;

/// Longest key of a session, in bytes: it stands in rows and in listings.
const MAX_KEY_BYTES: usize = 256;

/// The place of a user's name where it is their own.
const OWN: &str = "direct";

/// The way by which a conversation is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Over the socket.
    Socket,
    /// Over HTTP.
    Http,
    /// Of an agent of others, at the model door: nobody but that agent goes on with it.
    Door,
}

impl Channel {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Socket => "ws",
            Self::Http => "http",
            Self::Door => "door",
        }
    }
}

/// The name of a session of this gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionName {
    pub(crate) agent: String,
    pub(crate) channel: Channel,
    pub(crate) user: String,
    pub(crate) conversation: String,
}

/// The beginning of the name of a conversation that is one request long.
const ONCE: char = '@';

/// Why a key is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadKey(pub(crate) String);

impl SessionName {
    /// Reads what a client calls a session; `direct` in it is `who` themselves.
    pub(crate) fn read(key: &str, who: &Principal) -> Result<Self, BadKey> {
        if key.len() > MAX_KEY_BYTES {
            return Err(BadKey(format!("it is longer than {MAX_KEY_BYTES} bytes")));
        }
        let mut name = Self::of_kept(key).ok_or_else(|| BadKey("expected agent:AGENT:ws:direct:NAME".into()))?;
        if name.user == OWN {
            name.user.clone_from(&who.user);
        } else if unescaped(&name.user).as_deref() == Some(who.user.as_str()) || who.sees_others() {
            name.user = unescaped(&name.user).ok_or_else(|| BadKey("the user in it cannot be read".into()))?;
        } else {
            return Err(BadKey("expected agent:AGENT:ws:direct:NAME".into()));
        }
        Ok(name)
    }

    /// The name of the session that is kept under `id`, if it is one of this gateway and of nobody's sub-agent.
    pub(crate) fn kept(id: &str) -> Option<Self> {
        let mut name = Self::of_kept(id)?;
        name.user = unescaped(&name.user)?;
        Some(name)
    }

    /// The name of a conversation that is one request long, the one that `turn` works.
    pub(crate) fn once(turn: &TurnId) -> String {
        format!("{ONCE}{turn}")
    }

    /// Whether it is one request long: kept to be looked at, and never continued.
    pub(crate) fn is_once(&self) -> bool {
        self.conversation.starts_with(ONCE)
    }

    /// Whether it can be kept.
    pub(crate) fn is_good(&self) -> bool {
        let id = self.id();
        id.as_str().len() <= MAX_KEY_BYTES && Self::kept(id.as_str()).as_ref() == Some(self)
    }

    fn of_kept(id: &str) -> Option<Self> {
        let mut parts = id.splitn(5, ':');
        let (head, agent, channel) = (parts.next()?, parts.next()?, parts.next()?);
        let (user, conversation) = (parts.next()?, parts.next()?);
        let channel =
            [Channel::Socket, Channel::Http, Channel::Door].into_iter().find(|known| known.word() == channel)?;
        let fits = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
        let good = head == "agent" && fits(agent) && fits(user) && fits(conversation) && !conversation.contains('/');
        good.then(|| Self {
            agent: agent.to_owned(),
            channel,
            user: user.to_owned(),
            conversation: conversation.to_owned(),
        })
    }

    /// The conversation that signatures are for, where each request of it has a session of its own.
    pub(crate) fn signed_as(&self) -> Option<String> {
        let Self { agent, channel, user, .. } = self;
        self.is_once().then(|| format!("agent:{agent}:{}:{}", channel.word(), escaped(user)))
    }

    /// Under which id it is kept.
    pub(crate) fn id(&self) -> SessionId {
        let Self { agent, channel, user, conversation } = self;
        SessionId::new(format!("agent:{agent}:{}:{}:{conversation}", channel.word(), escaped(user)))
    }

    /// What `who` calls it.
    pub(crate) fn shown_to(&self, who: &Principal) -> String {
        let Self { agent, channel, user, conversation } = self;
        let user = if *user == who.user { OWN.to_owned() } else { escaped(user) };
        format!("agent:{agent}:{}:{user}:{conversation}", channel.word())
    }
}

/// The user whose session is kept under `id`, or who had it begun: sub-agents work in sessions named after it.
pub(crate) fn user_of(id: &str) -> Option<String> {
    SessionName::kept(id.split('/').next().unwrap_or_default()).map(|name| name.user)
}

/// What stands in the keys of all sessions of `user`, and in few others.
pub(crate) fn own_part(user: &str) -> String {
    format!(":{}:", escaped(user))
}

/// What stands for `user` in the keys of their sessions.
pub(crate) fn part_of(user: &str) -> String {
    escaped(user)
}

/// The name of a user as a part of a key: without what separates parts, and never the word for oneself.
fn escaped(user: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
    let all: String = user
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    if all == OWN { format!("%64{}", &OWN[1..]) } else { all }
}

/// The name that [`escaped`] made a part of a key.
fn unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let user = String::from_utf8(bytes).ok()?;
    // One name has one key.
    (escaped(&user) == part).then_some(user)
}

#[cfg(test)]
mod tests {
    use pintle_rules::admin::CallerRole;
    use proptest::prelude::*;

    use super::*;
    use crate::principal::somebody;

    #[test]
    fn two_users_have_two_conversations_of_one_name() {
        let key = "agent:main:ws:direct:c:1";
        let (anna, ben) = (somebody("anna", CallerRole::Operator), somebody("ben", CallerRole::Operator));
        let of_anna = SessionName::read(key, &anna).unwrap();
        assert_eq!(of_anna.id().as_str(), "agent:main:ws:anna:c:1");
        assert_eq!(SessionName::read(key, &ben).unwrap().id().as_str(), "agent:main:ws:ben:c:1");
        assert_eq!(of_anna.shown_to(&anna), key);
        assert_eq!(of_anna.shown_to(&ben), "agent:main:ws:anna:c:1");
        assert_eq!(SessionName::kept("agent:main:ws:anna:c:1"), Some(of_anna));
    }

    #[test]
    fn nobody_below_admin_names_the_session_of_another() {
        let theirs = "agent:main:ws:anna:c";
        assert!(SessionName::read(theirs, &somebody("ben", CallerRole::Operator)).is_err());
        assert!(SessionName::read(theirs, &somebody("anna", CallerRole::Viewer)).is_ok());
        assert!(SessionName::read(theirs, &somebody("root", CallerRole::Admin)).is_ok());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let anna = somebody("anna", CallerRole::Admin);
        for key in [
            "",
            "main",
            "agent:main",
            "agent::ws:direct:c",
            "agent:main:cli:direct:c",
            "agent:main:ws:direct:",
            "agent:main:ws:direct:a\nb",
            "agent:main:ws:%:c",
            "agent:main:ws:%64:c",
            // It would be that of a sub-agent.
            "agent:main:ws:direct:c/delegate:x:y",
        ] {
            assert!(SessionName::read(key, &anna).is_err(), "{key}");
        }
        assert!(SessionName::read(&format!("agent:main:ws:direct:{}", "c".repeat(256)), &anna).is_err());
    }

    #[test]
    fn a_sub_agent_works_for_the_user_of_the_session_above() {
        assert_eq!(user_of("agent:main:ws:anna:c/delegate:helper:t1"), Some("anna".into()));
        assert_eq!(user_of("cli:123"), None);
    }

    proptest! {
        #[test]
        fn every_name_comes_back(user in "\\PC{1,20}") {
            let part = escaped(&user);
            prop_assert!(!part.contains(':') && !part.contains('/') && part != OWN);
            prop_assert_eq!(unescaped(&part), Some(user));
        }
    }
}
