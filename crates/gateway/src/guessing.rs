//! Who tries to be known by something that can be guessed: programs that agents started are counted apart from everybody
//! else at their address, so that they shut nobody else out.

use pintle_process::{PeerProcess, peer_of_pid, peer_of_tcp};

use crate::Shared;
use crate::door::{OtherEnd, Visit};
use crate::error::ApiError;
use crate::rates::Attempt;

impl Shared {
    /// Lets somebody try something that can be guessed, unless it failed too often from there.
    pub(crate) async fn may_try(&self, visit: Visit) -> Result<(), ApiError> {
        let rates = &self.guests.rates;
        rates.may_try(visit.from, Attempt::Guess)?;
        let Err(too_many) = rates.may_try(visit.from, Attempt::AgentsGuess) else { return Ok(()) };
        if self.is_of_agent(visit).await { Err(too_many) } else { Ok(()) }
    }

    /// As what a failed attempt counts.
    pub(crate) async fn counted_as(&self, attempt: Attempt, visit: Visit) -> Attempt {
        let is_agents = attempt == Attempt::Guess && self.is_of_agent(visit).await;
        if is_agents { Attempt::AgentsGuess } else { attempt }
    }

    /// Whether a program that an agent started is at the other end, or was: whoever left already says nothing of
    /// themselves. Where nobody knows the agents of others, those of this gateway are known all the same.
    async fn is_of_agent(&self, visit: Visit) -> bool {
        let agents = self.guests.agents.clone();
        let look = move || {
            let agents = || agents.now().unwrap_or_default();
            match visit.other_end {
                OtherEnd::Socket { theirs, ours } => peer_of_tcp((theirs, ours), &agents()),
                OtherEnd::Process(pid) => peer_of_pid(pid, &agents()),
                OtherEnd::Unknown => PeerProcess::Other,
            }
        };
        visit.other_end != OtherEnd::Unknown
            && !matches!(tokio::task::spawn_blocking(look).await, Ok(PeerProcess::Other))
    }
}
