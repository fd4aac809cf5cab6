//! What was measured, as a table.

use std::fmt;
use std::time::Duration;

/// Durations, of which the larger ones are asked for.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// One more.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// All of another one.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The one that `part` of a thousand are not above; zero where there is none.
    pub fn at(&self, part: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * part).div_ceil(1000).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |part| self.at(part).as_secs_f64() * 1e3;
        write!(f, "{:.2} / {:.2} / {:.2} ms", ms(500), ms(990), ms(1000))
    }
}

/// What came of the turns.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Turns with a whole answer.
    pub turns: usize,
    /// Why the others failed.
    pub failed: Vec<String>,
    /// From when a message was sent until its turn had begun.
    pub starts: Times,
    /// From when the model wrote a piece until its frame was read.
    pub pieces: Times,
}

impl Heard {
    pub(crate) fn extend(&mut self, other: Self) {
        self.turns += other.turns;
        self.failed.extend(other.failed);
        self.starts.extend(other.starts);
        self.pieces.extend(other.pieces);
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Idle clients that stayed to the end.
    pub idle: usize,
    /// Those that were closed before it.
    pub closed: usize,
    /// Memory of the server for each idle client, in bytes.
    pub bytes_per_idle: u64,
    /// What the server's clients heard.
    pub heard: Heard,
    /// The same from a server that does nothing but pass pieces on.
    pub floor: Option<Heard>,
    /// Memory of the server over time, in KiB.
    pub memory_kib: Vec<u64>,
    /// Processor time of the server and of this process, as parts of one core, while turns ran.
    pub cores: [f64; 2],
    /// How long turns ran.
    pub took: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floor = |of: &dyn Fn(&Heard) -> String| self.floor.as_ref().map(of).unwrap_or_default();
        let row = |f: &mut fmt::Formatter<'_>, what: &str, measured: String, floor: String| {
            writeln!(f, "| {what} | {measured} | {floor} |")
        };
        writeln!(f, "| what | measured | floor |\n|---|---|---|")?;
        let turns = |heard: &Heard| format!("{}, {} failed", heard.turns + heard.failed.len(), heard.failed.len());
        row(f, "turns", turns(&self.heard), floor(&turns))?;
        let idle = format!("{}, {} closed", self.idle + self.closed, self.closed);
        row(f, "idle clients", idle, String::new())?;
        let per_idle = format!("{:.1} KiB", kib(self.bytes_per_idle));
        row(f, "memory of the server for each idle client", per_idle, String::new())?;
        let starts = |heard: &Heard| heard.starts.to_string();
        row(f, "message sent to turn begun: median / p99 / most", starts(&self.heard), floor(&starts))?;
        let pieces = |heard: &Heard| format!("{} ({})", heard.pieces, heard.pieces.count());
        row(f, "piece of the model to frame read: median / p99 / most", pieces(&self.heard), floor(&pieces))?;
        let memory: Vec<String> = self.memory_kib.iter().map(|kib| format!("{}", kib / 1024)).collect();
        row(f, "memory of the server over time", format!("{} MiB", memory.join(", ")), String::new())?;
        let [server, own] = self.cores;
        row(f, "cores at work: server", format!("{server:.2}"), String::new())?;
        row(f, "cores at work: clients and model", format!("{own:.2}"), String::new())?;
        row(f, "how long", format!("{:.0} s", self.took.as_secs_f64()), String::new())
    }
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_a_time_is_the_nearest_one() {
        let times = Times((1..=200).rev().map(Duration::from_millis).collect());
        let at = |part| times.at(part).as_millis();
        assert_eq!((at(500), at(990), at(1000)), (100, 198, 200));
        assert_eq!(Times::default().at(990), Duration::ZERO);
        assert_eq!(times.to_string(), "100.00 / 198.00 / 200.00 ms");
    }
}
