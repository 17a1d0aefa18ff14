//! Times and spans for people, as kubectl writes them.

use std::time::Duration;

use decree_core::Timestamp as CoreTime;
use jiff::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// Writes a span in at most two units, and in fewer the longer the span is: `85s`, `3m20s`, `45m`, `5h12m`, `3d`.
pub(crate) fn human(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days, years) = (
        seconds / MINUTE,
        seconds / HOUR,
        seconds / DAY,
        seconds / YEAR,
    );
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=599 => two(minutes, "m", seconds % MINUTE, "s"),
        600..=10_799 => format!("{minutes}m"),
        10_800..=28_799 => two(hours, "h", minutes % 60, "m"),
        28_800..=172_799 => format!("{hours}h"),
        172_800..=691_199 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

pub(crate) fn rfc3339(text: &str) -> Result<CoreTime, String> {
    let time: Timestamp = text
        .parse()
        .map_err(|_| "must be a time of RFC 3339, such as 2026-01-31T12:00:00Z".to_owned())?;
    Ok(core_time(time))
}

/// Saturates at the years 1677 and 2262.
pub(crate) fn core_time(time: Timestamp) -> CoreTime {
    let nanos = time.as_nanosecond().clamp(i64::MIN.into(), i64::MAX.into());
    CoreTime(i64::try_from(nanos).expect("it was clamped to this range"))
}

/// RFC 3339 to the millisecond.
pub(crate) fn core_text(CoreTime(nanos): CoreTime) -> String {
    Timestamp::from_nanosecond(nanos.into())
        .map_or_else(|_| "<unknown>".to_owned(), |time| format!("{time:.3}"))
}

/// `None` if no calendar has the time.
pub(crate) fn wire_time(time: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(time.seconds, time.nanos).ok()
}

/// RFC 3339 to the millisecond.
pub(crate) fn time_text(time: Option<&prost_types::Timestamp>) -> String {
    time.and_then(wire_time)
        .map_or_else(|| "<unknown>".to_owned(), |time| format!("{time:.3}"))
}

/// The time from `time` to `now`, at least zero. `None` if no calendar has the time.
pub(crate) fn since(time: Option<&prost_types::Timestamp>, now: Timestamp) -> Option<Duration> {
    let span = now.duration_since(time.and_then(wire_time)?);
    Some(Duration::try_from(span).unwrap_or_default())
}

/// Writes the time from `time` to `now`, such as `2m ago`.
pub(crate) fn ago(time: Option<&prost_types::Timestamp>, now: Timestamp) -> String {
    since(time, now).map_or_else(String::new, |span| format!("{} ago", human(span)))
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        return format!("{large}{large_unit}");
    }
    format!("{large}{large_unit}{small}{small_unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_in_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR + DAY, "8y"),
        ] {
            assert_eq!(human(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn times_keep_their_fraction_and_their_zone_and_saturate() {
        for (text, nanos) in [
            ("1970-01-01T00:00:01.5Z", 1_500_000_000),
            ("1970-01-01T01:00:01.5+01:00", 1_500_000_000),
            ("9000-01-01T00:00:00Z", i64::MAX),
            ("0001-01-01T00:00:00Z", i64::MIN),
        ] {
            assert_eq!(rfc3339(text), Ok(CoreTime(nanos)), "{text}");
        }
        for bad in ["", "now", "2026-01-31", "2026-01-31T12:00:00", "1769860800"] {
            assert!(rfc3339(bad).is_err(), "{bad}");
        }
    }
}
