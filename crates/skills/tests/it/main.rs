//! Folders of skills, hostile ones among them.

#[cfg(test)]
mod skills;
