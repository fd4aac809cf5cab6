//! The outbox of the model.

use domain::store::{Done, OutboxJob, OutboxStore, StoreError};
use jiff::Timestamp;

use super::{MemoryRules, whole_micros};

impl OutboxStore for MemoryRules {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: Done) {
        let kept = self.transaction(|books| {
            for job in jobs {
                if books.jobs.iter().all(|other| other.id != job.id) {
                    books.jobs.push(OutboxJob { next_at: whole_micros(job.next_at), ..job });
                }
            }
            Ok(())
        });
        done(kept);
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let mut books = self.books()?;
        books.jobs.sort_by(|a, b| (a.next_at, &a.id).cmp(&(b.next_at, &b.id)));
        let due = books.jobs.iter_mut().filter(|job| job.next_at <= now).take(limit);
        let taken = due.map(|job| {
            job.next_at = whole_micros(until);
            job.clone()
        });
        Ok(taken.collect())
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.books()?.jobs.retain(|job| job.id != id);
        Ok(())
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        let mut books = self.books()?;
        for job in books.jobs.iter_mut().filter(|job| job.id == id) {
            job.attempts = attempts;
            job.next_at = whole_micros(next_at);
        }
        Ok(())
    }
}
