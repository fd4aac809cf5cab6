//! A number as the text that it was written as.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The number of bytes of digits that stand in the number itself: every `i64` and `u64`, and nearly every amount.
const INLINE: usize = 22;

/// A JSON number with the digits it was written with. Only its exponent has one form, a small `e` and a sign: `1E2`
/// is kept as `1e+2`.
///
/// Two numbers are equal if their digits are: `1` and `1.0` are not. For doubles there is
/// [`same_value`](super::same_value).
///
/// ```
/// use pintle_domain::json::Number;
/// let price: Number = "12345678901234567890.10".parse()?;
/// assert_eq!(price.as_str(), "12345678901234567890.10");
/// assert_eq!(price.as_u64(), None);
/// assert_eq!(Number::from(5).as_u64(), Some(5));
/// # Ok::<(), pintle_domain::json::NoNumber>(())
/// ```
#[derive(Clone)]
pub struct Number(Digits);

/// Text that is not a JSON number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a JSON number")]
pub struct NoNumber;

#[derive(Clone)]
enum Digits {
    Inline(u8, [u8; INLINE]),
    Long(Box<str>),
}

impl Number {
    /// The number that `digits` are; they follow the grammar of JSON.
    #[inline]
    pub(super) fn of(digits: &str) -> Self {
        match memchr::memchr2(b'e', b'E', digits.as_bytes()).map(|at| digits.split_at(at)) {
            Some((mantissa, exponent)) if !exponent.starts_with("e+") && !exponent.starts_with("e-") => {
                let exponent = &exponent[1..];
                let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
                Self::verbatim(&format!("{mantissa}e{sign}{exponent}"))
            }
            Some(_) | None => Self::verbatim(digits),
        }
    }

    #[inline]
    fn verbatim(digits: &str) -> Self {
        let mut bytes = [0; INLINE];
        match bytes.get_mut(..digits.len()) {
            Some(room) => {
                room.copy_from_slice(digits.as_bytes());
                // At most 22, as there was room.
                Self(Digits::Inline(digits.len() as u8, bytes))
            }
            None => Self(Digits::Long(digits.into())),
        }
    }

    /// The number nearest to `float`, in the fewest digits; `None` of what JSON has no digits for.
    pub fn from_f64(float: f64) -> Option<Self> {
        let mut text = Text::default();
        float.is_finite().then(|| text.double(float)).map(Self::of)
    }

    /// The digits.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Digits::Inline(len, bytes) => {
                std::str::from_utf8(&bytes[..usize::from(*len)]).expect("digits are copied from a text")
            }
            Digits::Long(digits) => digits,
        }
    }

    /// The number, if it is written as an integer of this size.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_str().parse().ok()
    }

    /// The number, if it is written as an integer of this size.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_str().parse().ok()
    }

    /// The nearest double, if there is one.
    #[inline]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_str().parse().ok().filter(|float: &f64| float.is_finite())
    }

    /// Whether it is written as an integer from 0 to 2^64-1.
    pub fn is_u64(&self) -> bool {
        self.as_u64().is_some()
    }

    /// Whether it is written as an integer from -2^63 to 2^63-1.
    pub fn is_i64(&self) -> bool {
        self.as_i64().is_some()
    }

    /// Whether it is written with a fraction or an exponent.
    pub fn is_f64(&self) -> bool {
        self.as_str().bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) && self.as_f64().is_some()
    }

    /// Whether a number of the machine is the same number, however it is written; a double is what its fewest digits
    /// say, so `0.1` and `0.10` are one, and `0.10000000000000000001` is none.
    pub fn is_of_machine(&self) -> bool {
        let is_integer = self.is_u64() || self.is_i64();
        is_integer
            || self
                .as_f64()
                .is_some_and(|float| Decimal::of(self.as_str()) == Decimal::of(Text::default().double(float)))
    }

    /// The number as a type of the machine, if that writes the very same digits.
    #[inline]
    pub(super) fn plain(&self) -> Option<Plain> {
        let digits = self.as_str();
        if digits == "-0" {
            // As an integer it would lose its sign.
            return None;
        }
        if let Ok(number) = digits.parse() {
            return Some(Plain::Unsigned(number));
        }
        if let Ok(number) = digits.parse() {
            return Some(Plain::Signed(number));
        }
        let float = self.as_f64()?;
        (Text::default().double(float) == digits).then_some(Plain::Double(float))
    }
}

/// The number that digits denote: they stand behind the point, without zeros at either end, and are shifted by powers
/// of ten.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    shift: i64,
}

impl Decimal {
    /// Of an exponent beyond 64 bits only the sign is kept: no double has one.
    fn of(number: &str) -> Self {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let furthest = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
        let exponent = exponent.parse().unwrap_or(furthest).clamp(i64::MIN / 2, i64::MAX / 2);
        let (whole, fraction) =
            mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let zeros = all.len() - digits.len();
        let shift = if digits.is_empty() { 0 } else { exponent + whole.len() as i64 - zeros as i64 };
        Self { negative: mantissa.starts_with('-'), digits: digits.trim_end_matches('0').to_owned(), shift }
    }
}

/// A number of the machine.
pub(super) enum Plain {
    Unsigned(u64),
    Signed(i64),
    Double(f64),
}

/// Room for the digits of a double: serde_json writes at most 24.
#[derive(Default)]
struct Text([u8; 32]);

impl Text {
    /// The fewest digits that are `float`, which is finite.
    fn double(&mut self, float: f64) -> &str {
        let mut rest = self.0.as_mut_slice();
        serde_json::to_writer(&mut rest, &float).expect("the digits of a double have room");
        let used = 32 - rest.len();
        std::str::from_utf8(&self.0[..used]).expect("digits are ASCII")
    }
}

impl std::str::FromStr for Number {
    type Err = NoNumber;

    fn from_str(text: &str) -> Result<Self, NoNumber> {
        if number_end(text.as_bytes(), 0) == Some(text.len()) { Ok(Self::of(text)) } else { Err(NoNumber) }
    }
}

/// Where the number ends that begins at `at`; `None` if it is none. What follows it is not looked at.
#[inline]
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let len = bytes.get(from..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (len > 0).then_some(from + len)
    };
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    let zero = bytes.get(at) == Some(&b'0');
    let whole = digits(at)?;
    if zero && whole > at + 1 {
        return None;
    }
    at = whole;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Writes the digits of integers from the last to the first.
fn integer(negative: bool, mut rest: u64) -> Number {
    let (mut bytes, mut at) = ([0; INLINE], INLINE);
    loop {
        at -= 1;
        bytes[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if negative {
        at -= 1;
        bytes[at] = b'-';
    }
    bytes.copy_within(at.., 0);
    Number(Digits::Inline((INLINE - at) as u8, bytes))
}

macro_rules! from_unsigned {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Number {
            fn from(number: $kind) -> Self {
                integer(false, number as u64)
            }
        }
    )*};
}

macro_rules! from_signed {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Number {
            fn from(number: $kind) -> Self {
                integer(number < 0, (number as i64).unsigned_abs())
            }
        }
    )*};
}

from_unsigned!(u8 u16 u32 u64 usize);
from_signed!(i8 i16 i32 i64 isize);

impl From<u128> for Number {
    fn from(number: u128) -> Self {
        Self::of(&number.to_string())
    }
}

impl From<i128> for Number {
    fn from(number: i128) -> Self {
        Self::of(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().unwrap()
    }

    #[test]
    fn digits_stay_as_they_are_and_are_read_as_numbers_of_the_machine() {
        #[track_caller]
        fn check(text: &str, expected: (Option<u64>, Option<i64>, Option<f64>)) {
            let it = number(text);
            assert_eq!(it.as_str(), text);
            assert_eq!((it.as_u64(), it.as_i64(), it.as_f64()), expected);
            assert_eq!((it.is_u64(), it.is_i64()), (expected.0.is_some(), expected.1.is_some()));
        }
        check("0", (Some(0), Some(0), Some(0.0)));
        check("-0", (None, Some(0), Some(-0.0)));
        check("18446744073709551615", (Some(u64::MAX), None, Some(u64::MAX as f64)));
        check("-9223372036854775808", (None, Some(i64::MIN), Some(i64::MIN as f64)));
        check("18446744073709551616", (None, None, Some(u64::MAX as f64)));
        check("1.0", (None, None, Some(1.0)));
        check("1e+2", (None, None, Some(100.0)));
        check("1e+999", (None, None, None));
        check("0.10000000000000000000000000000000001", (None, None, Some(0.1)));
        assert!(
            number("1.5").is_f64() && number("1e2").is_f64() && !number("1e999").is_f64() && !number("15").is_f64()
        );
    }

    #[test]
    fn exponents_have_one_form() {
        let forms = ["1E2", "1e2", "1E+2", "1e+2", "1.50E-07", "-0e0"].map(|text| number(text).to_string());
        assert_eq!(forms, ["1e+2", "1e+2", "1e+2", "1e+2", "1.50e-07", "-0e+0"]);
    }

    #[test]
    fn numbers_of_the_machine_become_their_digits() {
        let shown = [
            Number::from(u64::MAX),
            Number::from(i64::MIN),
            Number::from(0_u8),
            Number::from(-7_i32),
            Number::from(1_000_usize),
            Number::from(i128::MIN),
            Number::from_f64(0.1).unwrap(),
            Number::from_f64(1e300).unwrap(),
            Number::from_f64(-0.0).unwrap(),
            Number::from_f64(f64::MIN_POSITIVE).unwrap(),
        ]
        .map(|number| number.to_string());
        assert_eq!(
            shown,
            [
                "18446744073709551615",
                "-9223372036854775808",
                "0",
                "-7",
                "1000",
                "-170141183460469231731687303715884105728",
                "0.1",
                "1e+300",
                "-0.0",
                "2.2250738585072014e-308"
            ]
        );
        assert!(Number::from_f64(f64::NAN).is_none() && Number::from_f64(f64::INFINITY).is_none());
    }

    #[test]
    fn text_is_a_number_or_it_is_not() {
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "1 ", " 1", "NaN", "--1", "1.e2"] {
            assert_eq!(text.parse::<Number>(), Err(NoNumber), "{text}");
        }
    }

    #[test]
    fn a_number_is_of_the_machine_or_it_is_not() {
        for text in
            ["0", "-0", "-0.0", "0.10", "1e2", "100.00e-1", "1.50", "18446744073709551615", "1e22", "5e-324", "0e999"]
        {
            assert!(number(text).is_of_machine(), "{text}");
        }
        let one_more = "9007199254740992.5";
        for text in
            ["18446744073709551617", "0.10000000000000000001", "12345678901234567890.10", "1e999", "1e-999", one_more]
        {
            assert!(!number(text).is_of_machine(), "{text}");
        }
    }

    #[test]
    fn equal_digits_are_equal_numbers() {
        assert_eq!(number("5"), Number::from(5));
        assert_ne!(number("5.0"), Number::from(5));
        let long = "1".repeat(INLINE + 1);
        assert_eq!(number(&long), number(&long));
    }
}
