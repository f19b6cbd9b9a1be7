//! Lowercase hexadecimal, of a known length. One spelling per value: capitals are refused.

/// The digits of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| digits.extend(pair(*byte)));
    String::from_utf8(digits).expect("digits are ASCII")
}

/// The digits of `bytes`, written into `digits`, which is twice as long.
pub(crate) fn encode_into<'d>(bytes: &[u8], digits: &'d mut [u8]) -> &'d str {
    for (digits, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&pair(*byte));
    }
    std::str::from_utf8(digits).expect("digits are ASCII")
}

const fn pair(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// The `N` bytes that exactly `2 N` lowercase digits stand for.
pub(crate) fn decode<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (nibble(*high)? << 4) | nibble(*low)?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_of_one_length() {
        assert_eq!(encode(&[0, 0x9f, 0xff]), "009fff");
        assert_eq!(encode_into(&[0, 0x9f, 0xff], &mut [0; 6]), "009fff");
        assert_eq!(decode("009fff"), Some([0, 0x9f, 0xff]));
        for bad in ["", "009ff", "009fff0", "009fff00", "009FFF", "00 fff", "+09fff", "é09ff"] {
            assert_eq!(decode::<3>(bad), None, "{bad}");
        }
    }
}
