//! The person who is asked about a call, here or where the question waits.

use jiff::Timestamp;
use pintle_domain::approval::{Approval, Came, Handling, Mode, Standing, handling};
use pintle_domain::clearing::Question;
use pintle_domain::identity::Identity;
use pintle_domain::tool::Digest;

use super::disk::Disk;
use super::evidence::Said;
use super::world::Dice;

/// Brings a question to a person, or to the place where it waits for one.
pub(crate) fn ask_person(
    disk: &mut Disk,
    dice: &mut fastrand::Rng,
    who: &Identity,
    question: Question<'_>,
    (mode, present, now): (Mode, bool, Timestamp),
) -> Said {
    let asked = || (question.by, question.why);
    let approval = Approval::question(disk.fresh_id(), who, question.call, asked(), now);
    loop {
        match disk.ask(approval.clone(), now) {
            Standing::Approved { id } => {
                disk.use_up(&id, now);
                return Said::Yes;
            }
            Standing::Refused { .. } => return Said::No("a person refused the call".into()),
            Standing::Expired => return Said::No("nobody answered in time".into()),
            Standing::Waiting(waiting) => {
                assert_eq!(waiting.digest, Digest::of(who, question.call).to_string(), "another call is asked about");
                match handling(Came::Ask, mode, present) {
                    Handling::AskedHere | Handling::WaitsHere => {
                        let yes = !dice.once_in(3);
                        disk.answer(&waiting.id, yes, now);
                    }
                    Handling::Parked => return Said::Later,
                    Handling::Refused => return Said::No("nobody is there to ask".into()),
                    Handling::Runs => panic!("no mode turns an ask into leave"),
                }
            }
        }
    }
}
