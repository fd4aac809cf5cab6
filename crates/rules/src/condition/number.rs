//! Numbers of three kinds on one line: compared by value, reckoned with only among their own kind.

use std::cmp::Ordering;

use super::fault::Fault;
use super::value::Value;

/// Two to the 63rd: the first double above every `int`.
const ABOVE_INT: f64 = 9_223_372_036_854_775_808.0;

/// Two to the 64th: the first double above every `uint`.
const ABOVE_UINT: f64 = 18_446_744_073_709_551_616.0;

/// The order of two numbers by value; nothing where either is not a number or is NaN.
pub(super) fn order(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => whole_to_double(i128::from(*a), *b),
        (Value::Uint(a), Value::Double(b)) => whole_to_double(i128::from(*a), *b),
        (Value::Double(a), Value::Int(b)) => whole_to_double(i128::from(*b), *a).map(Ordering::reverse),
        (Value::Double(a), Value::Uint(b)) => whole_to_double(i128::from(*b), *a).map(Ordering::reverse),
        _ => None,
    }
}

/// Exact, also where a double cannot tell two neighbours apart.
fn whole_to_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double >= ABOVE_UINT {
        return Some(Ordering::Less);
    }
    if double < -ABOVE_INT {
        return Some(Ordering::Greater);
    }
    // The two bounds above make the cut exact.
    let cut = double.trunc();
    Some(whole.cmp(&(cut as i128)).then_with(|| cut.partial_cmp(&double).unwrap_or(Ordering::Equal)))
}

/// The whole number that a double is, if it is one and an `int` can hold it.
pub(super) fn whole(double: f64) -> Option<i64> {
    (double.fract() == 0.0 && (-ABOVE_INT..ABOVE_INT).contains(&double)).then_some(double as i64)
}

/// A double cut to an `int`, where it fits.
pub(super) fn cut_to_int<'a>(double: f64) -> Result<i64, Fault<'a>> {
    // CEL refuses the lowest `int` here, as its neighbours below round to it.
    if double > -ABOVE_INT && double < ABOVE_INT { Ok(double as i64) } else { Err(RANGE_INT) }
}

/// A double cut to a `uint`, where it fits.
pub(super) fn cut_to_uint<'a>(double: f64) -> Result<u64, Fault<'a>> {
    if (0.0..ABOVE_UINT).contains(&double) { Ok(double as u64) } else { Err(RANGE_UINT) }
}

/// The number is no `int`.
pub(super) const RANGE_INT: Fault<'static> = Fault::Words("the number is out of the range of int");

/// The number is no `uint`.
pub(super) const RANGE_UINT: Fault<'static> = Fault::Words("the number is out of the range of uint");

/// An arithmetic operator on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl Sum {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Rem];

    /// The name that CEL has for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Add => "_+_",
            Self::Sub => "_-_",
            Self::Mul => "_*_",
            Self::Div => "_/_",
            Self::Rem => "_%_",
        }
    }
}

/// The sum, or what it is, of two numbers of one kind.
pub(super) fn reckon<'a>(sum: Sum, a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            by_zero(sum, *b == 0)?;
            let done = match sum {
                Sum::Add => a.checked_add(*b),
                Sum::Sub => a.checked_sub(*b),
                Sum::Mul => a.checked_mul(*b),
                Sum::Div => a.checked_div(*b),
                Sum::Rem => a.checked_rem(*b),
            };
            done.map(Value::Int).ok_or(Fault::Words("integer overflow"))
        }
        (Value::Uint(a), Value::Uint(b)) => {
            by_zero(sum, *b == 0)?;
            let done = match sum {
                Sum::Add => a.checked_add(*b),
                Sum::Sub => a.checked_sub(*b),
                Sum::Mul => a.checked_mul(*b),
                Sum::Div => a.checked_div(*b),
                Sum::Rem => a.checked_rem(*b),
            };
            done.map(Value::Uint).ok_or(Fault::Words("unsigned integer overflow"))
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match sum {
            Sum::Add => a + b,
            Sum::Sub => a - b,
            Sum::Mul => a * b,
            Sum::Div => a / b,
            Sum::Rem => return Err(no_such(sum, &Value::Double(*a), &Value::Double(*b))),
        })),
        _ => Err(no_such(sum, a, b)),
    }
}

fn no_such<'a>(sum: Sum, a: &Value<'_>, b: &Value<'_>) -> Fault<'a> {
    Fault::binary(sum.name(), a.kind(), b.kind())
}

fn by_zero<'a>(sum: Sum, zero: bool) -> Result<(), Fault<'a>> {
    match sum {
        Sum::Div if zero => Err(Fault::Words("division by zero")),
        Sum::Rem if zero => Err(Fault::Words("modulus by zero")),
        Sum::Add | Sum::Sub | Sum::Mul | Sum::Div | Sum::Rem => Ok(()),
    }
}
