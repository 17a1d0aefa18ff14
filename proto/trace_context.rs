//! The trace context of a message.

use std::fmt;

/// The version of the written format.
const VERSION: &str = "00";
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// The position of a message in a trace: the value of the header `traceparent` of W3C Trace Context.
///
/// The value takes 25 bytes, regardless of the text that a peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The id of the trace; not zero.
    pub trace_id: [u8; 16],
    /// The id of the span whose children follow; not zero.
    pub span_id: [u8; 8],
    /// The flags. Unknown flags are kept.
    pub flags: u8,
}

impl TraceContext {
    /// The length of a written value, in bytes: the four parts of version 00 with hyphens. Values of later versions may continue after a
    /// further hyphen.
    pub const LENGTH: usize = 55;

    /// Parses a value; `None` if it is empty or invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (head, rest) = bytes.split_at_checked(Self::LENGTH)?;
        let [version] = hex(&head[..2])?;
        let goes_on = version > 0 && rest.first() == Some(&b'-');
        let hyphens = [2, 35, 52].into_iter().all(|at| head[at] == b'-');
        if version == u8::MAX || !hyphens || !(rest.is_empty() || goes_on) {
            return None;
        }
        let context = Self {
            trace_id: hex(&head[3..35])?,
            span_id: hex(&head[36..52])?,
            flags: u8::from_be_bytes(hex(&head[53..])?),
        };
        (context.trace_id != [0; 16] && context.span_id != [0; 8]).then_some(context)
    }

    /// The trace id in lower-case hexadecimal digits, the form of logs and metrics.
    #[must_use]
    pub fn trace_id_text(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace_id))
    }

    /// The span id in lower-case hexadecimal digits.
    #[must_use]
    pub fn span_id_text(self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.span_id))
    }

    /// Whether the sender records the trace.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            flags,
        } = self;
        let (trace, span) = (u128::from_be_bytes(*trace_id), u64::from_be_bytes(*span_id));
        write!(f, "{VERSION}-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

/// Parses lower-case hexadecimal digits, two for each byte.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn value_is_read_and_written_as_it_was() {
        let context = TraceContext::parse(VALID).expect("it is valid");
        assert_eq!(context.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(context.span_id[6..], [0x02, 0xb7]);
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), VALID);
        let unsampled = VALID.replace("-01", "-02");
        let context = TraceContext::parse(&unsampled).expect("it is valid");
        assert!(!context.is_sampled());
        assert_eq!(context.to_string(), unsampled);
    }

    #[test]
    fn later_version_is_read_as_far_as_it_is_known() {
        let known = TraceContext::parse(VALID);
        let later = VALID.replacen("00", "01", 1);
        assert_eq!(TraceContext::parse(&later), known);
        assert_eq!(TraceContext::parse(&format!("{later}-and more")), known);
        assert_eq!(TraceContext::parse(&format!("{later}and more")), None);
    }

    #[test]
    fn what_is_not_valid_is_ignored() {
        for text in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902\u{fc}-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
        assert_eq!(TraceContext::parse(&VALID.repeat(20_000)), None);
    }
}
