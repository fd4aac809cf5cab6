//! Equality and look-ups, walking into lists and maps as far as the budget goes.

use std::cmp::Ordering;

use super::fault::Fault;
use super::kind::Kind;
use super::meter::Meter;
use super::number;
use super::value::{List, Map, Value};

/// Whether two values are equal. Values of different types are not, but numbers are by what they denote.
pub(super) fn same<'a>(a: &Value<'a>, b: &Value<'a>, meter: &mut Meter) -> Result<bool, Fault<'a>> {
    // What is inside waits here, so that no depth of it can use up the stack.
    let mut inside = Vec::new();
    if !alike(a, b, &mut inside, meter)? {
        return Ok(false);
    }
    while let Some((a, b)) = inside.pop() {
        if !alike(&a, &b, &mut inside, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Two values of which both must be equal.
type Pair<'a> = (Value<'a>, Value<'a>);

/// Whether two values are equal, if all that is put `inside` is.
fn alike<'a>(a: &Value<'a>, b: &Value<'a>, inside: &mut Vec<Pair<'a>>, meter: &mut Meter) -> Result<bool, Fault<'a>> {
    match (a, b) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Type(a), Value::Type(b)) => Ok(a == b),
        (Value::Text(a), Value::Text(b)) => same_bytes(a.as_str().as_bytes(), b.as_str().as_bytes(), meter),
        (Value::Bytes(a), Value::Bytes(b)) => same_bytes(a.as_slice(), b.as_slice(), meter),
        (Value::List(a), Value::List(b)) => pair_lists(a, b, inside, meter),
        (Value::Map(a), Value::Map(b)) => pair_maps(a, b, inside, meter),
        _ => Ok(number::order(a, b) == Some(Ordering::Equal)),
    }
}

fn same_bytes<'a>(a: &[u8], b: &[u8], meter: &mut Meter) -> Result<bool, Fault<'a>> {
    if a.len() != b.len() {
        return Ok(false);
    }
    meter.bytes(a.len())?;
    Ok(a == b)
}

fn pair_lists<'a>(
    a: &List<'a>,
    b: &List<'a>,
    inside: &mut Vec<Pair<'a>>,
    meter: &mut Meter,
) -> Result<bool, Fault<'a>> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for index in 0..a.len() {
        meter.spend(1)?;
        let (Some(a), Some(b)) = (a.get(index)?, b.get(index)?) else { return Ok(false) };
        inside.push((a, b));
    }
    Ok(true)
}

fn pair_maps<'a>(a: &Map<'a>, b: &Map<'a>, inside: &mut Vec<Pair<'a>>, meter: &mut Meter) -> Result<bool, Fault<'a>> {
    if a.len() != b.len() {
        return Ok(false);
    }
    meter.items(a.len())?;
    for key in a.keys() {
        let (Some(a), Some(b)) = (look_up(a, &key, meter)?, look_up(b, &key, meter)?) else { return Ok(false) };
        inside.push((a, b));
    }
    Ok(true)
}

/// The value of `map` at `key`. A number finds the same number of another kind.
pub(super) fn look_up<'a>(map: &Map<'a>, key: &Value<'a>, meter: &mut Meter) -> Result<Option<Value<'a>>, Fault<'a>> {
    match map {
        Map::Made(entries) => meter.items(entries.len())?,
        Map::Empty | Map::Json(_) | Map::Shell(_) | Map::Command(_) => meter.spend(1)?,
    }
    match key {
        Value::Text(key) => {
            meter.bytes(key.as_str().len())?;
            map.get(key.as_str())
        }
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => {
            let Map::Made(entries) = map else { return Ok(None) };
            for (at, value) in entries.iter() {
                if same(at, key, meter)? {
                    return Ok(Some(value.clone()));
                }
            }
            Ok(None)
        }
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Type(_) => {
            Err(Fault::binary("_[_]", Kind::Map, key.kind()))
        }
    }
}

/// Whether `of` holds `item`: a list an equal one, a map such a key.
pub(super) fn holds<'a>(of: &Value<'a>, item: &Value<'a>, meter: &mut Meter) -> Result<bool, Fault<'a>> {
    match of {
        Value::List(list) => {
            for index in 0..list.len() {
                meter.spend(1)?;
                let held = list.get(index)?;
                if held.map_or(Ok(false), |held| same(&held, item, meter))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(look_up(map, item, meter)?.is_some()),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Text(_)
        | Value::Bytes(_)
        | Value::Type(_) => Err(Fault::binary("@in", item.kind(), of.kind())),
    }
}

/// The order of two values of which one is before the other.
pub(super) fn order<'a>(
    what: &'static str,
    a: &Value<'a>,
    b: &Value<'a>,
    meter: &mut Meter,
) -> Result<Ordering, Fault<'a>> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            meter.bytes(a.len().min(b.len()))?;
            Ok(a.cmp(b))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            let (a, b) = (a.as_slice(), b.as_slice());
            meter.bytes(a.len().min(b.len()))?;
            Ok(a.cmp(b))
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        _ if a.kind().is_number() && b.kind().is_number() => {
            number::order(a, b).ok_or(Fault::Words("NaN cannot be ordered"))
        }
        _ => Err(Fault::binary(what, a.kind(), b.kind())),
    }
}
