//! Bytes as they are written where people compare them: in lower-case hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// `bytes` in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        digits.push(char::from(DIGITS[usize::from(byte >> 4)]));
        digits.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    digits
}

/// The bytes whose lower-case hexadecimal digits `digits` are; nothing if they are none.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: &u8| DIGITS.iter().position(|known| known == digit);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(value(high)? * 16 + value(low)?).ok(),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back_as_bytes() {
        assert_eq!(unhex("000fa5ff"), Some(vec![0, 0x0f, 0xa5, 0xff]));
        assert_eq!(unhex(""), Some(vec![]));
        assert_eq!([unhex("0"), unhex("0g"), unhex("0A"), unhex("é0")], [const { None }; 4]);
    }

    #[test]
    fn every_byte_takes_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 0x0f, 0xa5, 0xff]), "000fa5ff");
    }
}
