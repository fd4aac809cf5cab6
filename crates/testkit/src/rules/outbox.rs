//! The outbox of the model.

use jiff::Timestamp;
use pintle_domain::store::{OnKept, OutboxJob, OutboxStore, StoreError};

use super::{MemoryRules, whole_micros};

impl OutboxStore for MemoryRules {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        let kept = self.transaction(|rule_state| {
            for job in jobs {
                if rule_state.jobs.iter().all(|other| other.id != job.id) {
                    rule_state.jobs.push(OutboxJob { next_at: whole_micros(job.next_at), ..job });
                }
            }
            Ok(())
        });
        done(kept);
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let mut rule_state = self.rule_state()?;
        rule_state.jobs.sort_by(|a, b| (a.next_at, &a.id).cmp(&(b.next_at, &b.id)));
        let due = rule_state.jobs.iter_mut().filter(|job| job.next_at <= now).take(limit);
        let taken = due.map(|job| {
            job.next_at = whole_micros(until);
            job.clone()
        });
        Ok(taken.collect())
    }

    fn jobs_left(&self) -> Result<u64, StoreError> {
        Ok(self.rule_state()?.jobs.len() as u64)
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.rule_state()?.jobs.retain(|job| job.id != id);
        Ok(())
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        let mut rule_state = self.rule_state()?;
        for job in rule_state.jobs.iter_mut().filter(|job| job.id == id) {
            job.attempts = attempts;
            job.next_at = whole_micros(next_at);
        }
        Ok(())
    }
}
