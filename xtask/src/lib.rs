//! What the errands and the tidy test share: the files of the repository, ways to read them, and the map drawn from them.

pub mod manifests;
pub mod map;
pub mod paths;
pub mod rust;
pub mod test_plan;
pub mod tree;
