//! The engine from outside: real children, real pipes.

mod command;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod http_exchange;
#[cfg(test)]
mod outbox;
mod process_child;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod ssrf;
