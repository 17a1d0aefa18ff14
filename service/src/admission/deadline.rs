//! The deadline of a call: `grpc-timeout` of the caller, or the server's default for unary calls.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

const HEADER: &str = "grpc-timeout";
/// The maximum number of digits in the gRPC specification.
const DIGITS_MAX: usize = 8;

/// The time after which nobody waits for the answer of a call, as an extension of its request.
#[derive(Clone, Copy, Debug)]
pub struct CallDeadline(pub Instant);

/// The deadline that the caller set. An invalid value counts as no deadline.
pub fn requested(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get(HEADER)?.to_str().ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.saturating_mul(3_600))),
        "M" => Some(Duration::from_secs(number.saturating_mul(60))),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them_and_others_are_none() {
        let cases = [
            ("2S", Duration::from_secs(2)),
            ("1H", Duration::from_secs(3_600)),
            ("15m", Duration::from_millis(15)),
            ("0n", Duration::ZERO),
            ("99999999u", Duration::from_micros(99_999_999)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "S", "5", "-1S", "123456789S", "1s", "1.5S", "1é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
