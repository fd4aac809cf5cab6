//! What is counted by rows, so that all nodes count together: turns in flight, open connections.

use std::collections::BTreeSet;

use crate::id::TenantId;

/// The kinds of what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseKind {
    /// A turn in flight.
    Turn,
    /// An open connection.
    Connection,
}

impl UseKind {
    /// As it is kept.
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Connection => "connection",
        }
    }
}

/// One of what is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayUse {
    /// A UUID; of a turn, its id.
    pub id: String,
    /// What.
    pub kind: UseKind,
    /// Whose.
    pub tenant: TenantId,
    /// Who of them it counts for.
    pub who: String,
    /// Which process has it.
    pub node: String,
}

/// The room that there is for one more of what is counted.
#[derive(Clone, Copy, Debug)]
pub struct UseRoom<'a> {
    /// So many of its kind for the same tenant and the same `who`; of turns, so many that wait for a person.
    pub limit: u32,
    /// For a turn, the room that its tenant has for all its users.
    pub turns: Option<TurnRoom<'a>>,
    /// The ids of those that are over: they count no more.
    pub ended: &'a [String],
}

/// The room for turns of one tenant. The id of a turn that is counted is that of the turn, so that one that waits for a
/// person counts once, whether a node works it or none does.
#[derive(Clone, Copy, Debug)]
pub struct TurnRoom<'a> {
    /// So many for all users of the tenant.
    pub limit: u32,
    /// The user, as they stand in the keys of their sessions.
    pub user: &'a str,
}

/// A turn of a gateway that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParkedTurn {
    /// The key of its session.
    pub session: String,
    /// Its id.
    pub turn: String,
}

impl ParkedTurn {
    /// The user who asked for it, as they stand in the key, where somebody can come back for it and it is nobody's below
    /// another turn.
    fn user(&self) -> Option<&str> {
        let mut parts = self.session.splitn(5, ':');
        let (head, _agent, channel) = (parts.next()?, parts.next()?, parts.next()?);
        let (user, conversation) = (parts.next()?, parts.next()?);
        let is_kept = !conversation.starts_with('@') && !conversation.contains('/');
        (head == "agent" && ["ws", "http"].contains(&channel) && is_kept).then_some(user)
    }
}

impl UseRoom<'_> {
    /// Whether the turn `one` fits in, beside those that are counted, as ids with their `who`, and those that are `parked`.
    pub fn fits(
        &self,
        room: TurnRoom<'_>,
        one: &GatewayUse,
        counted: &[(String, String)],
        parked: &[ParkedTurn],
    ) -> bool {
        let others = || counted.iter().filter(|(id, _)| *id != one.id);
        let is_worked = |turn: &str| turn == one.id || counted.iter().any(|(id, _)| id == turn);
        let waiting: BTreeSet<(&str, &str)> =
            parked.iter().filter_map(|it| Some((it.user()?, it.turn.as_str()))).collect();
        let own = waiting.iter().filter(|(user, turn)| *user == room.user && *turn != one.id).count();
        let all = others().count() + waiting.iter().filter(|(_, turn)| !is_worked(turn)).count();
        let is_below = |count: usize, limit: u32| u32::try_from(count).is_ok_and(|count| count < limit);
        is_below(own, self.limit) && is_below(all, room.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_wait_count_for_their_user_and_their_tenant_once() {
        let one = |user: &str| GatewayUse {
            id: "new".into(),
            kind: UseKind::Turn,
            tenant: TenantId::default_tenant(),
            who: user.into(),
            node: "n".into(),
        };
        let fits = |user: &str, counted: &[&str], parked: &[(&str, &str)]| {
            let counted: Vec<(String, String)> =
                counted.iter().map(|id| ((*id).to_owned(), id[..1].to_owned())).collect();
            let parked: Vec<ParkedTurn> = parked
                .iter()
                .map(|(session, turn)| ParkedTurn { session: (*session).to_owned(), turn: (*turn).to_owned() })
                .collect();
            let turns = TurnRoom { limit: 4, user };
            let room = UseRoom { limit: 2, turns: Some(turns), ended: &[] };
            room.fits(turns, &one(user), &counted, &parked)
        };
        let (of_a, other_of_a) = ("agent:main:ws:a:one", "agent:main:http:a:two");
        assert!(fits("a", &["a1", "a2", "a3"], &[]), "those that work are the tenant's alone");
        assert!(!fits("b", &["a1", "a2", "c1", "c2"], &[]), "which has no more");
        assert!(fits("a", &["a1", "a2"], &[(of_a, "a1")]), "one that waits counts once, whoever works it");
        assert!(fits("a", &["a1"], &[(of_a, "t")]));
        assert!(
            !fits("a", &[], &[(of_a, "t"), (other_of_a, "u"), (other_of_a, "u")]),
            "two that wait are enough for one"
        );
        assert!(!fits("a", &["a1", "a2"], &[(of_a, "a1"), (other_of_a, "a2")]), "also where a node works them");
        assert!(fits("b", &[], &[(of_a, "t"), (other_of_a, "u")]), "not of another");
        assert!(fits("a", &[], &[(of_a, "t"), (other_of_a, "new")]), "it goes on");
        let below = "agent:main:ws:a:one/delegate:x:t";
        let not_theirs = [(below, "t"), ("cli:a", "u"), ("agent:main:http:a:@v", "v"), ("agent:main:ws:b:x:a:y", "w")];
        assert!(fits("a", &["a1"], &not_theirs));
    }
}
