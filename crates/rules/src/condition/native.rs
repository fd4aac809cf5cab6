//! The functions of one or two values.

use std::rc::Rc;

use super::fault::{Fault, shown};
use super::meter::Meter;
use super::node::{Texts, Unary};
use super::number::{RANGE_INT, RANGE_UINT, Sum, cut_to_int, cut_to_uint, reckon};
use super::text::Text;
use super::value::{Bytes, List, Value};

/// Applies a function of one value.
pub(super) fn unary<'a>(fun: Unary, of: Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault<'a>> {
    match fun {
        Unary::Size => size(&of, meter).map(Value::Int),
        Unary::Type => Ok(Value::Type(of.kind())),
        Unary::Bool => to_bool(of),
        Unary::Int => to_int(of, meter).map(Value::Int),
        Unary::Uint => to_uint(of, meter).map(Value::Uint),
        Unary::Double => to_double(of, meter).map(Value::Double),
        Unary::String => to_text(of, meter),
        Unary::Bytes => to_bytes(of, meter),
    }
}

/// How many characters, bytes, items or keys.
fn size<'a>(of: &Value<'a>, meter: &mut Meter) -> Result<i64, Fault<'a>> {
    let size = match of {
        Value::Text(text) => {
            meter.bytes(text.as_str().len())?;
            text.as_str().chars().count()
        }
        Value::Bytes(bytes) => bytes.as_slice().len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Type(_) => {
            return Err(Fault::unary(Unary::Size.name(), of.kind()));
        }
    };
    i64::try_from(size).map_err(|_| RANGE_INT)
}

fn to_bool<'a>(of: Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    match &of {
        Value::Bool(_) => Ok(of),
        Value::Text(text) => match text.as_str() {
            "1" | "t" | "true" | "T" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "F" | "FALSE" | "False" => Ok(Value::Bool(false)),
            other => Err(unreadable("bool", other)),
        },
        other => Err(Fault::unary(Unary::Bool.name(), other.kind())),
    }
}

fn to_int<'a>(of: Value<'a>, meter: &mut Meter) -> Result<i64, Fault<'a>> {
    match &of {
        Value::Int(it) => Ok(*it),
        Value::Uint(it) => i64::try_from(*it).map_err(|_| RANGE_INT),
        Value::Double(it) => cut_to_int(*it),
        Value::Text(text) => {
            meter.bytes(text.as_str().len())?;
            text.as_str().parse().map_err(|_| unreadable("int", text.as_str()))
        }
        other => Err(Fault::unary(Unary::Int.name(), other.kind())),
    }
}

fn to_uint<'a>(of: Value<'a>, meter: &mut Meter) -> Result<u64, Fault<'a>> {
    match &of {
        Value::Uint(it) => Ok(*it),
        Value::Int(it) => u64::try_from(*it).map_err(|_| RANGE_UINT),
        Value::Double(it) => cut_to_uint(*it),
        Value::Text(text) => {
            meter.bytes(text.as_str().len())?;
            text.as_str().parse().map_err(|_| unreadable("uint", text.as_str()))
        }
        other => Err(Fault::unary(Unary::Uint.name(), other.kind())),
    }
}

fn to_double<'a>(of: Value<'a>, meter: &mut Meter) -> Result<f64, Fault<'a>> {
    match &of {
        Value::Double(it) => Ok(*it),
        Value::Int(it) => Ok(*it as f64),
        Value::Uint(it) => Ok(*it as f64),
        Value::Text(text) => {
            meter.bytes(text.as_str().len())?;
            text.as_str().parse().map_err(|_| unreadable("double", text.as_str()))
        }
        other => Err(Fault::unary(Unary::Double.name(), other.kind())),
    }
}

fn to_text<'a>(of: Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault<'a>> {
    match &of {
        Value::Text(_) => Ok(of),
        Value::Bool(it) => Ok(Value::seen(if *it { "true" } else { "false" })),
        Value::Int(it) => Ok(Value::made(&it.to_string())),
        Value::Uint(it) => Ok(Value::made(&it.to_string())),
        Value::Double(it) => Ok(Value::made(&it.to_string())),
        Value::Bytes(bytes) => {
            meter.bytes(bytes.as_slice().len())?;
            let text = str::from_utf8(bytes.as_slice());
            text.map(Value::made).map_err(|_| Fault::Words("string(): the bytes are not UTF-8"))
        }
        other => Err(Fault::unary(Unary::String.name(), other.kind())),
    }
}

fn to_bytes<'a>(of: Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault<'a>> {
    match &of {
        Value::Bytes(_) => Ok(of),
        Value::Text(Text::Seen(text)) => Ok(Value::Bytes(Bytes::Seen(text.as_bytes()))),
        Value::Text(Text::Made(text)) => {
            meter.bytes(text.len())?;
            Ok(Value::Bytes(Bytes::Made(Rc::from(text.as_bytes()))))
        }
        other => Err(Fault::unary(Unary::Bytes.name(), other.kind())),
    }
}

fn unreadable<'a>(kind: &str, text: &str) -> Fault<'a> {
    Fault::Told(format!("{kind}(): cannot read \"{}\"", shown(text)))
}

/// Answers a question about two texts.
pub(super) fn texts<'a>(what: Texts, a: &Value<'a>, b: &Value<'a>, meter: &mut Meter) -> Result<bool, Fault<'a>> {
    let (Value::Text(text), Value::Text(part)) = (a, b) else {
        return Err(Fault::binary(what.name(), a.kind(), b.kind()));
    };
    let (text, part) = (text.as_str(), part.as_str());
    if part.len() > text.len() {
        return Ok(false);
    }
    match what {
        Texts::Contains => {
            meter.bytes(text.len() + part.len())?;
            Ok(memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some())
        }
        Texts::StartsWith => {
            meter.bytes(part.len())?;
            Ok(text.starts_with(part))
        }
        Texts::EndsWith => {
            meter.bytes(part.len())?;
            Ok(text.ends_with(part))
        }
    }
}

/// A sum of numbers, or one value after the other.
pub(super) fn sum<'a>(what: Sum, a: &Value<'a>, b: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault<'a>> {
    match (what, a, b) {
        (Sum::Add, Value::Text(a), Value::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            meter.bytes(a.len() + b.len())?;
            Ok(Value::made(&[a, b].concat()))
        }
        (Sum::Add, Value::Bytes(a), Value::Bytes(b)) => {
            let (a, b) = (a.as_slice(), b.as_slice());
            meter.bytes(a.len() + b.len())?;
            Ok(Value::Bytes(Bytes::Made(Rc::from([a, b].concat()))))
        }
        (Sum::Add, Value::List(a), Value::List(b)) => {
            meter.items(a.len() + b.len())?;
            let both = [a, b].into_iter().flat_map(|list| (0..list.len()).map(|index| list.get(index)));
            let both: Result<Vec<_>, _> = both.filter_map(Result::transpose).collect();
            Ok(Value::List(List::Made(Rc::from(both?))))
        }
        _ => reckon(what, a, b),
    }
}
