//! The hosts against what was recorded of them.

#[cfg(test)]
mod adopting;
#[cfg(test)]
mod by_another_name;
#[cfg(test)]
mod everyday;
#[cfg(test)]
mod foreign_tools;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod in_other_programs;
#[cfg(test)]
mod loops;
#[cfg(test)]
mod model;
#[cfg(test)]
mod other_texts;
#[cfg(test)]
mod other_ways;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod protects;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shells;
#[cfg(test)]
mod taken_away;
#[cfg(test)]
mod told_in_code;
#[cfg(test)]
mod transcripts;
#[cfg(test)]
mod unguarded;
#[cfg(test)]
mod unknown_words;
#[cfg(test)]
mod ways_in;
#[cfg(test)]
mod without_settings;
mod working_files;
