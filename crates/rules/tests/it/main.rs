//! Rules from outside: their language, their administration, what they send and what they understand.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod condition;
#[cfg(test)]
mod http_exchange;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod payload_page;
#[cfg(test)]
mod ssrf;
