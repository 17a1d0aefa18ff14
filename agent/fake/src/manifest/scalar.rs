//! The value of a plain scalar, as kubectl reads it: by YAML 1.1 in the reading of go-yaml 2 (`resolve.go`).

use serde_json::{Number, Value};

/// Resolves a scalar without quotes and without a tag.
///
/// # Errors
/// The scalar is a number that JSON cannot express, such as `.inf`.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            true.into()
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            false.into()
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => {
            return Err(format!("{text} is not a number in JSON; quote it"));
        }
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    })
}

/// An integer, or a decimal fraction. Kubernetes reads whole fractions such as `1e1` as integers.
fn number(text: &str) -> Option<Number> {
    let begins = |first: u8| first.is_ascii_digit() || b"+-.".contains(&first);
    text.bytes().next().filter(|first| begins(*first))?;
    let plain = text.replace('_', "");
    if let Some(integer) = integer(&plain) {
        return Some(integer);
    }
    let is_decimal = |it: u8| it.is_ascii_digit() || b"+-.eE".contains(&it);
    if !plain.bytes().all(is_decimal) {
        return None;
    }
    // A number beyond an `f64`, such as the commit 12e45678, is a string.
    let fraction = plain.parse::<f64>().ok().filter(|it| it.is_finite())?;
    #[expect(clippy::cast_possible_truncation, reason = "compared after the cast")]
    let whole = fraction as i64;
    #[expect(clippy::cast_precision_loss, reason = "only exact values are taken")]
    let is_whole = whole as f64 == fraction && whole.unsigned_abs() < 1 << f64::MANTISSA_DIGITS;
    if is_whole {
        return Some(whole.into());
    }
    Number::from_f64(fraction)
}

/// An integer with the prefixes of Go: a leading `0` is octal too.
fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, digits) = match prefix.as_str() {
        "0x" => (16, &digits[2..]),
        "0o" => (8, &digits[2..]),
        "0b" => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    if is_negative {
        let number = i64::try_from(-i128::from(number)).ok()?;
        return Some(number.into());
    }
    Some(number.into())
}
