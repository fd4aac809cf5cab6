//! The person who is asked about a call, here or where the question waits.

use jiff::Timestamp;
use pintle_domain::approval::{Approval, ApprovalMode, ApprovalStanding, CallHandling, HooksDecision, handling};
use pintle_domain::clearing::ApprovalQuestion;
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
    question: ApprovalQuestion<'_>,
    (mode, present, now): (ApprovalMode, bool, Timestamp),
) -> Said {
    let approval = Approval::question(disk.fresh_id(), who, question, now);
    loop {
        match disk.ask(approval.clone(), now) {
            ApprovalStanding::Approved { id } => {
                disk.use_up(&id, now);
                return Said::Yes;
            }
            ApprovalStanding::Refused { .. } => return Said::No("a person refused the call".into()),
            ApprovalStanding::Expired => return Said::No("nobody answered in time".into()),
            ApprovalStanding::Waiting(waiting) => {
                assert_eq!(waiting.digest, Digest::of(who, question.call).to_string(), "another call is asked about");
                match handling(HooksDecision::Ask, mode, present) {
                    CallHandling::AskedHere | CallHandling::WaitsHere => {
                        let yes = !dice.once_in(3);
                        disk.answer(&waiting.id, yes, now);
                    }
                    CallHandling::Parked => return Said::Later,
                    CallHandling::Refused => return Said::No("nobody is there to ask".into()),
                    CallHandling::Runs => panic!("no mode turns an ask into leave"),
                }
            }
        }
    }
}
