//! Several real servers on one real PostgreSQL: what one of them knows, the others do too, and what one of them leaves,
//! another one takes up.

mod before;
mod dying;
mod joining;
mod journals;
mod keys;
mod load;
mod model;
mod pair;
mod terminals;
mod together;
mod under_load;
